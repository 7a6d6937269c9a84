import asyncio
import concurrent.futures
import dataclasses
import gc
import json
import pickle
import threading
import unittest

from support import Service, a_request, a_rule, connect, record
from trueup_sdk import TrueupBlockedError, with_labels
from trueup_sdk.calls import LaterCall, Reading


def enforcing(service, **options):
    trueup = connect(service, enforcement=True, **options)
    assert trueup.ready(20)
    return trueup


class Calls(unittest.TestCase):
    def sent(self, trueup, service):
        self.assertTrue(trueup.shutdown(20))
        return service.events

    def test_reports_a_call_with_its_labels_and_its_answer(self):
        service = Service()
        trueup = connect(service, team="growth", environment="staging", service="shop")
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
        with with_labels(session="s-1", user="u-1"):
            call = trueup.recorder.begin(
                a_request(client_labels={"feature": "search"}, labels={"user": "u-2"}, key_prefix="sk-test-")
            )
        reading = Reading(response_id="r-1", response_model="large-2", usage=usage, stop_reason="stop")
        reading.merge(Reading(service_tier="flex", stop_reason=None))
        call.end("ok", reading)
        (event,) = self.sent(trueup, service)
        self.assertRegex(event.pop("timestamp"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertGreaterEqual(event.pop("duration_ms"), 0)
        self.assertEqual(
            event,
            {
                "provider": "openai",
                "model": "large",
                "base_url": "https://api.openai.com/v1",
                "request_id": "r-1",
                "response_id": "r-1",
                "response_model": "large-2",
                "usage": usage,
                "stop_reason": "stop",
                "service_tier": "flex",
                "status": "ok",
                "team_id": "growth",
                "feature": "search",
                "session_id": "s-1",
                "user_id": "u-2",
                "_service": {
                    "sdk": "trueup-sdk-python/0.1.0",
                    "name": "shop",
                    "environment": "staging",
                    "api_key_prefix": "sk-test-",
                },
            },
        )

    def test_ends_once_whatever_is_told_first(self):
        service = Service()
        trueup = connect(service)
        call = trueup.recorder.begin(a_request())
        threads = [threading.Thread(target=call.end, args=("ok",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        call.fail(RuntimeError())
        self.assertEqual([event["status"] for event in self.sent(trueup, service)], ["ok"])

    def test_tells_errors_from_the_callers_own_end_and_finds_their_status(self):
        class OfOpenAi(Exception):
            status_code = 429

        class OfGoogle(Exception):
            code = 503

        class OfBoto(Exception):
            response = {"ResponseMetadata": {"HTTPStatusCode": 400}}

        ends = [
            (OfOpenAi(), "error", 429),
            (OfGoogle(), "error", 503),
            (OfBoto(), "error", 400),
            (ConnectionError(), "error", None),
            (asyncio.CancelledError(), "cancelled", None),
            (concurrent.futures.CancelledError(), "cancelled", None),
            (GeneratorExit(), "cancelled", None),
            (KeyboardInterrupt(), "cancelled", None),
        ]
        service = Service()
        trueup = connect(service)
        for error, _, _ in ends:
            trueup.recorder.begin(a_request()).fail(error)
        seen = [(event["status"], event.get("http_status")) for event in self.sent(trueup, service)]
        self.assertEqual(seen, [(status, http) for _, status, http in ends])

    def test_stops_a_call_and_reports_what_it_prevented(self):
        service = Service([a_rule("token_ceiling", {"max_tokens": 100})])
        notes = []
        trueup = enforcing(service, on_verdict=notes.append)
        with self.assertRaises(TrueupBlockedError) as raised:
            trueup.recorder.begin(a_request("x" * 400))
        error = raised.exception
        self.assertEqual((error.rule_id, error.rule_name, error.rule_type), ("r1", None, "token_ceiling"))
        # 100 tokens in at $3 and 10 out at $15 a million.
        self.assertEqual(error.prevented_usd, "0.00045")
        self.assertEqual(
            str(error), "Trueup stopped this call of large: it has more than 100 tokens (rule r1)"
        )
        copied = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copied), copied.prevented_usd), (str(error), "0.00045"))
        self.assertEqual([tuple(note) for note in notes], [("blocked", "r1", [])])
        (event,) = self.sent(trueup, service)
        for name, value in (
            ("status", "blocked"),
            ("blocked_rule_id", "r1"),
            ("prevented_usd", "0.00045"),
            ("input_tokens", 100),
            ("output_tokens", 10),
        ):
            self.assertEqual(event[name], value)
        self.assertNotIn("payload", event)

    def test_sends_a_call_to_the_other_model_and_says_so(self):
        service = Service(
            [
                a_rule("model_downgrade", {"to_model": "small"}, model="large"),
                a_rule("max_tool_calls", {"max_tool_calls": 0}, mode="observe", rule_id="r2"),
            ]
        )
        trueup = enforcing(service)
        with with_labels(session="s"):
            call = trueup.recorder.begin(a_request())
            self.assertEqual(call.new_model, "small")
            call.end("ok", Reading(stop_reason="tool_calls"))
            trueup.recorder.begin(a_request()).end("ok")
        first, second = self.sent(trueup, service)
        self.assertEqual((first["model"], first["_service"]["downgraded_from"]), ("small", "large"))
        self.assertEqual(first["_service"]["downgraded_by"], "r1")
        self.assertNotIn("observed_rules", first["_service"])
        self.assertEqual(second["_service"]["observed_rules"], ["r2"])

    def test_counts_the_cost_of_a_session_by_the_model_that_answered(self):
        service = Service([a_rule("session_budget_usd", {"budget_usd": "0.25"})])
        trueup = enforcing(service)
        usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
        with with_labels(session="s"):
            call = trueup.recorder.begin(a_request("1", model="unknown"))
            call.end("ok", Reading(usage=usage, response_model="small-2026-01-01"))
            with self.assertRaises(TrueupBlockedError):
                trueup.recorder.begin(a_request("2"))
        trueup.shutdown(20)

    def test_a_failing_handler_breaks_no_call(self):
        def fail(_):
            raise RuntimeError("the application's handler")

        service = Service([a_rule("token_ceiling", {"max_tokens": 1}, mode="observe")])
        trueup = enforcing(service, on_verdict=fail, on_error=fail)
        record(trueup)
        self.assertEqual(len(self.sent(trueup, service)), 1)

    def test_records_a_call_whose_answer_is_read_later(self):
        service = Service()
        trueup = connect(service, team="growth")
        reading = Reading(response_id="r-1", usage={"input_tokens": 1, "output_tokens": 2})
        trueup.recorder.record_later(
            LaterCall(
                "openai", "large", None, reading, 1_790_000_000_123, "ok", {"feature": "f"}, True, "b-1"
            )
        )
        (event,) = self.sent(trueup, service)
        self.assertEqual(event["timestamp"], "2026-09-21T14:13:20.123Z")
        self.assertEqual((event["is_batch"], event["batch_id"], event["request_id"]), (True, "b-1", "r-1"))
        self.assertEqual((event["team_id"], event["feature"]), ("growth", "f"))

    def test_sends_prompts_and_answers_only_where_it_is_told_to(self):
        silent, capturing = Service(), Service()
        trueup = connect(silent)
        call = trueup.recorder.begin(a_request("a secret"))
        call.end("ok", Reading(answer={"text": "a secret"}))
        self.assertNotIn("secret", json.dumps(self.sent(trueup, silent)))
        trueup = connect(capturing, capture_payloads=True)
        self.assertTrue(trueup.recorder.captures_payloads)

        @dataclasses.dataclass
        class Body:
            prompt: str

        for body in ({"prompt": "seen"}, Body("seen"), {"prompt": "x" * 300_000}, b"an upload"):
            trueup.recorder.begin(a_request(body=body)).end("ok", Reading(answer={"text": "answered"}))
        first, second, third, fourth = self.sent(trueup, capturing)
        self.assertEqual(first["payload"], {"prompt": "seen", "response": {"text": "answered"}})
        self.assertEqual(second["payload"], first["payload"])
        self.assertEqual(set(third["payload"]), {"_truncated", "bytes"})
        self.assertNotIn("payload", fourth)

    def test_an_event_that_a_finalizer_records_meets_no_held_lock(self):
        service = Service()
        trueup = connect(service)

        class Left:
            def __init__(self):
                self.me = self
                self.call = trueup.recorder.begin(a_request())

            def __del__(self):
                self.call.end("cancelled")

        threshold = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(300):
                Left()
                record(trueup)
        finally:
            gc.set_threshold(*threshold)
        gc.collect()
        events = self.sent(trueup, service)
        self.assertEqual(len(events), 600)
        self.assertEqual(len({event["request_id"] for event in events}), 600)


if __name__ == "__main__":
    unittest.main()
