import asyncio
import json
import os
import threading
import unittest
from unittest import mock

import standins
from standins import AsyncOpenAI, OpenAI, Response, a_chat, a_chunk, stream_of, whole
from support import Service, a_rule, connect
from trueup_sdk import Trueup, TrueupBlockedError, with_labels

MESSAGES = [{"role": "user", "content": "Hello"}]
CREATED = 1_790_000_000
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


class Observed(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.errors = []
        self.trueup = connect(self.service, on_error=self.errors.append)
        self.addCleanup(self.trueup.shutdown, 20)

    def events(self):
        self.assertTrue(self.trueup.flush(20))
        taken, self.service.events = self.service.events, []
        return taken

    def one_event(self):
        (event,) = self.events()
        return event

    def client(self, answer, **labels):
        return self.trueup.observe(OpenAI(answer), **labels)


class Calls(Observed):
    def test_a_call_is_reported_once_with_the_providers_usage_object_and_its_retries_are_no_calls(self):
        client = self.client(lambda _: whole(a_chat()), team="growth")
        client.failures = 2
        self.assertEqual(client.chat.completions.create(model="large", messages=MESSAGES), a_chat())
        self.assertEqual(len(client.sent), 3)
        event = self.one_event()
        expected = {"usage": USAGE, "model": "large", "response_model": "large-2", "status": "ok"}
        self.assertEqual({name: event[name] for name in expected}, expected)
        self.assertEqual((event["request_id"], event["stop_reason"]), ("chatcmpl-1", "stop"))
        self.assertEqual((event["team_id"], event["_service"]["api_key_prefix"]), ("growth", "sk-test-"))
        self.assertEqual(self.errors, [])

    def test_labels_of_one_call_never_reach_the_provider(self):
        client = self.client(lambda _: whole(a_chat()))
        create = client.chat.completions.create
        create(model="large", messages=MESSAGES, trueup={"feature": "draft", "unknown": "x"})
        create(model="large", messages=MESSAGES, extra_body={"trueup": {"feature": "body"}, "seed": 7})
        client.post("/chat/completions", {"model": "large", "trueup": {"feature": "direct"}})
        bodies = [body for _, body in client.sent]
        plain = {"model": "large", "messages": MESSAGES}
        self.assertEqual(bodies, [plain, {**plain, "seed": 7}, {"model": "large"}])
        self.assertEqual([event["feature"] for event in self.events()], ["draft", "body", "direct"])

    def test_the_innermost_label_counts(self):
        client = self.client(lambda _: whole(a_chat()), team="client", feature="client")
        with with_labels(feature="context", session="s"):
            client.chat.completions.create(model="large", messages=MESSAGES, trueup={"session": "own"})
        event = self.one_event()
        self.assertEqual(
            (event["team_id"], event["feature"], event["session_id"]), ("client", "context", "own")
        )

    def test_copies_of_a_client_are_observed_and_a_client_is_observed_once(self):
        client = self.client(lambda _: whole(a_chat()))
        self.assertIs(self.trueup.observe(client), client)
        copy = client.copy(timeout=3)
        self.assertIs(self.trueup.observe(copy), copy)
        client.chat.completions.create(model="large", messages=MESSAGES)
        copy.chat.completions.create(model="large", messages=MESSAGES)
        self.assertEqual(len(self.events()), 2)

    def test_an_error_is_the_clients_own(self):
        error = ValueError("refused")
        error.status_code = 429
        client = self.client(lambda _: error)
        with self.assertRaises(ValueError) as raised:
            client.chat.completions.create(model="large", messages=MESSAGES)
        self.assertIs(raised.exception, error)
        event = self.one_event()
        self.assertEqual((event["status"], event["http_status"]), ("error", 429))

    def test_other_requests_are_no_calls(self):
        client = self.client(lambda _: whole({"data": []}))
        client.get("/models")
        client.post("/moderations", {"model": "large"})
        self.assertEqual(self.events(), [])

    def test_what_is_no_known_client_stays_as_it_is(self):
        other = object()
        self.assertIs(self.trueup.observe(other), other)
        self.assertIn("none of the known clients", str(self.errors[0]))


class UnexpectedForms(Observed):
    def test_a_request_of_an_unexpected_form_is_made_as_it_is(self):
        for body in (None, [], b"bytes", {"model": 7, "messages": object()}, {"model": "large", "stream": None}):
            client = OpenAI(lambda _: whole(a_chat()))
            client._note = lambda options: client.sent.append(options.json_data)
            self.trueup.observe(client)
            self.assertEqual(client.post("/chat/completions", body), a_chat())
            self.assertEqual(len(client.sent), 1)
            self.assertIs(client.sent[0], body)
            self.assertEqual(self.one_event()["status"], "ok")

    def test_an_answer_of_an_unexpected_form_is_returned_as_it_is_and_its_call_is_reported(self):
        for body in ([], "text", 7, {"choices": 7, "usage": [1], "id": 5}, {"choices": [None, {}], "usage": None}):
            client = self.client(lambda _, body=body: whole(body))
            self.assertEqual(client.chat.completions.create(model="large", messages=MESSAGES), body)
            event = self.one_event()
            self.assertEqual(event["status"], "ok")
            self.assertNotIn("usage", event)

    def test_a_response_whose_class_cannot_be_changed_is_returned_as_it_is(self):
        class Sealed:
            __slots__ = ("headers", "status_code")

        sealed = Sealed()
        sealed.headers, sealed.status_code = {}, 200
        client = self.client(lambda _: sealed)
        self.assertIs(client.chat.completions.create(model="large", messages=MESSAGES, stream=True), sealed)
        self.assertEqual(self.one_event()["status"], "ok")


class Streams(Observed):
    def stream(self, *events, **more):
        client = self.client(lambda _: stream_of(*events, **more))
        return client.chat.completions.create(model="large", messages=MESSAGES, stream=True)

    def test_a_whole_stream_has_the_usage_of_its_last_chunk(self):
        response = self.stream(a_chunk(), a_chunk("i", "stop"), a_chunk("", None, USAGE), "[DONE]")
        self.assertEqual(len(list(response.iter_bytes())), 4)
        event = self.one_event()
        self.assertEqual((event["status"], event["usage"], event["stop_reason"]), ("ok", USAGE, "stop"))

    def test_a_stream_that_is_left_is_cancelled_unless_its_answer_has_ended(self):
        response = self.stream(a_chunk(), a_chunk("i", "stop"), "[DONE]")
        chunks = response.iter_bytes()
        next(chunks)
        response.close()
        self.assertEqual(self.one_event()["status"], "cancelled")
        response = self.stream(a_chunk(), a_chunk("i", "stop"), "[DONE]")
        chunks = response.iter_bytes()
        next(chunks), next(chunks)
        response.close()
        self.assertEqual(self.one_event()["status"], "ok")

    def test_a_stream_that_the_application_drops_is_reported(self):
        response = self.stream(a_chunk())
        del response
        self.assertEqual(self.one_event()["status"], "cancelled")

    def test_an_error_within_a_stream_is_an_error(self):
        list(self.stream(a_chunk(), {"error": {"message": "overloaded"}}).iter_bytes())
        self.assertEqual(self.one_event()["status"], "error")
        with self.assertRaises(ConnectionError):
            list(self.stream(a_chunk(), error=ConnectionError("reset")).iter_bytes())
        self.assertEqual(self.one_event()["status"], "error")


class LaterAnswers(Observed):
    def background(self, **more):
        usage = {"input_tokens": 5, "output_tokens": 6}
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": CREATED,
            "model": "large-2",
            "background": True,
            "status": "completed",
            "usage": usage,
            **more,
        }

    def test_a_response_made_in_the_background_is_one_call_when_it_is_fetched(self):
        answers = [
            self.background(status="queued", usage=None),
            self.background(status="in_progress", usage=None),
            self.background(),
            self.background(),
        ]
        client = self.client(lambda _: whole(answers.pop(0)))
        client.post("/responses", {"model": "large", "background": True})
        for _ in range(3):
            client.get("/responses/resp_1")
        events = self.events()
        self.assertEqual([event["request_id"] for event in events], ["resp_1", "resp_1"])
        # Equal in all but nothing, so that the service counts them once.
        self.assertEqual(events[0], events[1])

    def test_results_of_a_batch_are_calls_of_the_batch(self):
        lines = [
            {"id": "r1", "custom_id": "1", "response": {"status_code": 200, "body": {**a_chat("c1"), "created": CREATED}}},
            {"id": "r2", "custom_id": "2", "response": {"status_code": 400, "body": {"error": {}}}},
            {"id": "r3", "custom_id": "3", "response": None},
        ]
        batch = {"object": "batch", "id": "batch_9", "output_file_id": "file-9", "completed_at": CREATED}
        file = Response(["\n".join(map(json.dumps, lines)).encode() + b"\nno json\n\n"], content_type="")

        def answer(options):
            return whole(batch) if options.url.startswith("/batches") else file

        client = self.client(answer)
        client.get("/batches/batch_9")
        with self.assertRaises(ValueError):
            client.get("/files/file-9/content")
        event = self.one_event()
        self.assertEqual((event["request_id"], event["is_batch"], event["batch_id"]), ("c1", True, "batch_9"))
        self.assertEqual(event["timestamp"][:10], "2026-09-21")


class Rules(Observed):
    def setUp(self):
        super().setUp()
        rules = [
            a_rule("token_ceiling", {"max_tokens": 50}, rule_id="ceiling"),
            a_rule("model_downgrade", {"to_model": "small"}, rule_id="down", model="large"),
        ]
        self.service = Service(rules)
        self.trueup = connect(self.service, enforcement=True, on_error=self.errors.append)
        self.assertTrue(self.trueup.ready(20))

    def test_a_blocked_call_is_never_sent(self):
        client = self.client(lambda _: whole(a_chat()))
        with self.assertRaises(TrueupBlockedError) as raised:
            client.chat.completions.create(model="large", messages=[{"role": "user", "content": "x" * 400}])
        self.assertEqual((raised.exception.rule_id, client.sent), ("ceiling", []))
        self.assertEqual(self.one_event()["status"], "blocked")

    def test_a_blocked_call_of_an_async_client_is_never_sent(self):
        client = self.trueup.observe(AsyncOpenAI(lambda _: whole(a_chat())))
        too_long = [{"role": "user", "content": "x" * 400}]
        with self.assertRaises(TrueupBlockedError):
            asyncio.run(client.chat.completions.create(model="large", messages=too_long, stream=True))
        self.assertEqual(client.sent, [])

    def test_a_downgraded_call_reaches_the_provider_with_the_other_model(self):
        client = self.client(lambda _: whole(a_chat()))
        body = {"model": "large", "messages": MESSAGES}
        options = standins.Options("post", "/chat/completions", body)
        client.request(dict, options)
        client.chat.completions.create(messages=MESSAGES, model="ignored", extra_body={"model": "large"})
        self.assertEqual([sent["model"] for _, sent in client.sent], ["small", "small"])
        # The caller's own objects keep their model.
        self.assertEqual((options.json_data is body, body["model"]), (True, "large"))
        for event in self.events():
            self.assertEqual(event["model"], "small")
            self.assertEqual(event["_service"]["downgraded_from"], "large")


class Concurrency(Observed):
    def test_labels_of_concurrent_tasks_never_mix(self):
        async def answer(options):
            for _ in range(options.json_data["turns"]):
                await asyncio.sleep(0)
            return whole(a_chat(options.json_data["user"]))

        client = self.trueup.observe(AsyncOpenAI(answer))

        async def one(index):
            body = {"model": "large", "messages": MESSAGES, "turns": index % 7, "user": f"u-{index}"}
            with with_labels(session=f"s-{index}"):
                await asyncio.sleep(0)
                own = {"trueup": {"feature": f"f-{index}"}} if index % 2 else {}
                return await client.chat.completions.create(**body, **own)

        async def all_of_them():
            return await asyncio.gather(*(one(index) for index in range(200)))

        answers = asyncio.run(all_of_them())
        self.assertEqual([answer["id"] for answer in answers], [f"u-{index}" for index in range(200)])
        events = {event["request_id"]: event for event in self.events()}
        self.assertEqual(len(events), 200)
        for index in range(200):
            event = events[f"u-{index}"]
            self.assertEqual(event["session_id"], f"s-{index}")
            self.assertEqual(event.get("feature"), f"f-{index}" if index % 2 else None)

    def test_labels_of_threads_never_mix(self):
        gate = threading.Barrier(8)

        def answer(options):
            gate.wait(20)
            return whole(a_chat(options.json_data["user"]))

        client = self.client(answer)

        def one(index):
            with with_labels(session=f"s-{index}"):
                client.chat.completions.create(model="large", messages=MESSAGES, user=f"u-{index}")

        threads = [threading.Thread(target=one, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        pairs = {(event["request_id"], event["session_id"]) for event in self.events()}
        self.assertEqual(pairs, {(f"u-{index}", f"s-{index}") for index in range(8)})

    def test_a_task_that_is_cancelled_while_it_waits_for_its_answer_has_cancelled_its_call(self):
        client = self.trueup.observe(AsyncOpenAI(lambda _: asyncio.sleep(60)))

        async def cancel():
            task = asyncio.ensure_future(client.chat.completions.create(model="large", messages=MESSAGES))
            await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        self.assertEqual(self.one_event()["status"], "cancelled")


class WithoutAnAddress(unittest.TestCase):
    def test_a_call_with_labels_is_made_as_one_without_them(self):
        with mock.patch.dict(os.environ, {}, clear=True):
            trueup = Trueup()
        self.assertIsNone(trueup.recorder)
        client = OpenAI(lambda _: whole(a_chat()))
        for _ in range(3):
            self.assertIs(trueup.observe(client), client)
        body = {"model": "large", "messages": MESSAGES}
        answer = client.chat.completions.create(**body, trueup={"feature": "draft"})
        self.assertEqual((answer, client.sent), (a_chat(), [("/chat/completions", body)]))
        self.assertIsNotNone(trueup.observe(object()))

    def test_its_clients_can_be_observed_later(self):
        with mock.patch.dict(os.environ, {}, clear=True):
            client = Trueup().observe(OpenAI(lambda _: whole(a_chat())))
        service = Service()
        trueup = connect(service)
        for _ in range(2):
            trueup.observe(client)
        client.chat.completions.create(model="large", messages=MESSAGES, trueup={"feature": "draft"})
        self.assertTrue(trueup.shutdown(20))
        (event,) = service.events
        self.assertEqual(event["feature"], "draft")


if __name__ == "__main__":
    unittest.main()
