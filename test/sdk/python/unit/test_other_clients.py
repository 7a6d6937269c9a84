import asyncio
import gc
import json
import unittest
from types import SimpleNamespace

from support import Service, a_rule, connect
from trueup_sdk import TrueupBlockedError, labeled, with_labels

GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
    "responseId": "g-1",
}
CALL_FOR_TOOL = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}
FIRST = {"candidates": [{"content": {"parts": [{"text": "H"}]}}], "responseId": "g-1"}


class Api:
    """As much of the object below Google's client as the adapter meets."""

    def __init__(self, answers):
        self.answers = answers
        self.sent = []

    def _parts(self, path, body):
        self.sent.append((path, body))
        return [SimpleNamespace(body=json.dumps(answer)) for answer in self.answers]

    def request(self, method, path, body, options=None):
        return self._parts(path, body)[-1]

    def request_streamed(self, method, path, body, options=None):
        yield from self._parts(path, body)

    async def async_request(self, method, path, body, options=None):
        return self._parts(path, body)[-1]

    async def async_request_streamed(self, method, path, body, options=None):
        async def parts():
            for part in self._parts(path, body):
                yield part

        return parts()


class Models:
    def __init__(self, api):
        self._api = api

    def generate_content(self, *, model, contents):
        return self._api.request("post", f"models/{model}:generateContent", {"contents": contents})

    def generate_content_stream(self, *, model, contents):
        yield from self._api.request_streamed(
            "post", f"models/{model}:streamGenerateContent?alt=sse", {"contents": contents}
        )


class AsyncModels(Models):
    async def generate_content_stream(self, *, model, contents):
        async def parts():
            path = f"models/{model}:streamGenerateContent?alt=sse"
            async for part in await self._api.async_request_streamed("post", path, {"contents": contents}):
                yield part

        return parts()


class Client:
    def __init__(self, *answers):
        self._api_client = Api(answers)
        self.models = Models(self._api_client)
        self.aio = SimpleNamespace(models=AsyncModels(self._api_client))


Client.__module__ = "google.genai.client"


class Bedrock:
    """As much of boto3's client as the adapter meets."""

    def __init__(self):
        service = SimpleNamespace(service_name="bedrock-runtime")
        self.meta = SimpleNamespace(service_model=service)
        self.sent = []

    def _make_api_call(self, operation_name, api_params):
        self.sent.append((operation_name, api_params))
        return {"usage": {"inputTokens": 3, "outputTokens": 2}, "stopReason": "end_turn"}

    def converse(self, **params):
        return self._make_api_call("Converse", params)


class CoroutineBedrock(Bedrock):
    async def _make_api_call(self, operation_name, api_params):
        return super()._make_api_call(operation_name, api_params)


class OtherClients(unittest.TestCase):
    def setUp(self):
        self.errors = []
        self.service = Service(
            [
                a_rule("token_ceiling", {"max_tokens": 50}, rule_id="ceiling"),
                a_rule("model_downgrade", {"to_model": "small"}, rule_id="down", model="large"),
            ]
        )
        self.trueup = connect(self.service, enforcement=True, on_error=self.errors.append)
        self.assertTrue(self.trueup.ready(20))
        self.addCleanup(self.trueup.shutdown, 20)

    def one_event(self):
        self.assertTrue(self.trueup.flush(20))
        (event,) = self.service.events
        self.service.events = []
        return event

    def test_a_stream_of_google_keeps_the_labels_of_where_it_was_asked_for(self):
        client = self.trueup.observe(Client(FIRST, CALL_FOR_TOOL, GEMINI))
        with with_labels(session="s"):
            stream = client.models.generate_content_stream(model="m", contents="x", trueup={"feature": "f"})
        self.assertEqual(client._api_client.sent, [])
        self.assertEqual(len(list(stream)), 3)
        event = self.one_event()
        self.assertEqual((event["session_id"], event["feature"]), ("s", "f"))
        # The call for a tool is in an earlier part than the end.
        self.assertEqual((event["stop_reason"], event["usage"]), ("tool_calls", GEMINI["usageMetadata"]))
        stream = labeled(client.models.generate_content_stream, feature="g")(model="m", contents="x")
        list(stream)
        self.assertEqual(self.one_event()["feature"], "g")

    def test_a_stream_of_google_that_is_left_or_dropped_is_cancelled(self):
        client = self.trueup.observe(Client(FIRST, GEMINI))
        for leave in (lambda stream: stream.close(), lambda stream: None):
            stream = client.models.generate_content_stream(model="m", contents="x")
            next(stream)
            leave(stream)
            del stream
            gc.collect()
            self.assertEqual(self.one_event()["status"], "cancelled")

    def test_an_async_stream_of_google_that_is_dropped_is_cancelled(self):
        client = self.trueup.observe(Client(FIRST, GEMINI))

        async def drop():
            stream = await client.aio.models.generate_content_stream(model="m", contents="x")
            async for _ in stream:
                break
            await stream.aclose()

        asyncio.run(drop())
        gc.collect()
        self.assertEqual(self.one_event()["status"], "cancelled")

    def test_google_is_asked_for_the_other_model_and_never_with_a_blocked_call(self):
        client = self.trueup.observe(Client(GEMINI))
        client.models.generate_content(model="large", contents="x")
        list(client.models.generate_content_stream(model="large", contents="x"))
        for call in (
            lambda: client.models.generate_content(model="m", contents="x" * 400),
            lambda: list(client.models.generate_content_stream(model="m", contents="x" * 400)),
        ):
            with self.assertRaises(TrueupBlockedError):
                call()
        paths = [path for path, _ in client._api_client.sent]
        self.assertEqual(paths, ["models/small:generateContent", "models/small:streamGenerateContent?alt=sse"])

    def test_bedrock_sees_neither_labels_nor_blocked_calls(self):
        client = self.trueup.observe(Bedrock())
        messages = [{"role": "user", "content": [{"text": "x"}]}]
        client.converse(modelId="large", messages=messages, trueup={"feature": "f"})
        with self.assertRaises(TrueupBlockedError):
            client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "x" * 400}]}])
        self.assertEqual(client.sent, [("Converse", {"modelId": "small", "messages": messages})])

    def test_clients_that_are_like_known_ones_stay_unobserved(self):
        client = self.trueup.observe(CoroutineBedrock())
        self.assertNotIn("_make_api_call", vars(client))
        self.assertIn("none of the known clients", str(self.errors[0]))


if __name__ == "__main__":
    unittest.main()
