import contextlib
import json
import os
import pathlib
import threading
import time
import unittest

from support import Service, a_request, a_rule, connect, eventually, record, threads_since
from trueup_sdk import Trueup, TrueupBlockedError
from trueup_sdk import trueup as connections
from trueup_sdk.calls import Reading
from trueup_sdk.transport import Response

CASES = pathlib.Path(__file__).resolve().parents[4] / "sdk" / "patternCases.json"
CASE = json.loads(CASES.read_text(encoding="utf-8"))["lists"][0]
PATTERNS = CASE["served"]
BANNED = next(search for search in CASE["searches"] if search["pattern_index"] is not None)
CEILING = a_rule("token_ceiling", {"max_tokens": 100})


class Rules(unittest.TestCase):
    def connect(self, service, **options):
        trueup = connect(service, enforcement=True, **options)
        self.addCleanup(trueup.shutdown, 1)
        return trueup

    def is_blocked(self, trueup):
        try:
            trueup.recorder.begin(a_request("x" * 404)).end("ok")
            return False
        except TrueupBlockedError:
            return True

    def test_asks_again_with_the_version_that_it_has(self):
        service = Service([CEILING])
        trueup = self.connect(service)
        self.assertTrue(trueup.ready(20))
        self.assertTrue(trueup.refresh(20))
        asked = [r.headers.get("if-none-match") for r in service.requests if r.url.endswith("config")]
        self.assertEqual(asked, [None, '"1"'])
        self.assertTrue(self.is_blocked(trueup))
        # Prices are public, and are asked for once an hour.
        prices = [r for r in service.requests if r.url.endswith("table")]
        self.assertEqual(len(prices), 1)
        self.assertNotIn("authorization", prices[0].headers)

    def test_follows_a_change_and_keeps_the_memory_of_an_equal_rule(self):
        service = Service([a_rule("max_tool_calls", {"max_tool_calls": 0}, mode="observe")])
        trueup = self.connect(service, session="s")
        self.assertTrue(trueup.ready(20))
        trueup.recorder.begin(a_request()).end("ok", Reading(stop_reason="tool_use"))
        service.rules = [a_rule("max_tool_calls", {"max_tool_calls": 0}, rule_id="r1")]
        service.version = 2
        self.assertTrue(trueup.refresh(20))
        self.assertTrue(self.is_blocked(trueup))

    def test_keeps_the_last_rules_while_the_service_is_away_and_tells_once(self):
        service, errors = Service([CEILING]), []
        trueup = self.connect(service, on_error=errors.append)
        self.assertTrue(trueup.ready(20))
        service.is_away = True
        self.assertFalse(trueup.refresh(20))
        self.assertFalse(trueup.refresh(20))
        self.assertTrue(self.is_blocked(trueup))
        self.assertEqual([str(e) for e in errors], ["rules are not refreshed: connection refused"])

    def test_makes_every_call_before_the_first_rules_have_arrived(self):
        service = Service([CEILING])
        service.is_away = True
        trueup = self.connect(service)
        self.assertFalse(trueup.ready(20))
        self.assertFalse(self.is_blocked(trueup))
        service.is_away = False
        self.assertTrue(trueup.ready(20))
        self.assertTrue(self.is_blocked(trueup))

    def test_an_unreadable_answer_changes_no_rule(self):
        for body in (b"", b"[]", b"{}", b'{"rules":{}}', b"<html>"):
            service = Service([CEILING])
            trueup = self.connect(service)
            self.assertTrue(trueup.ready(20))
            service.config_answers = [Response(200, {}, body)]
            trueup.refresh(20)
            self.assertTrue(self.is_blocked(trueup), body)

    def test_ignores_rules_of_an_unknown_type_or_form(self):
        unknown = [
            None,
            7,
            {},
            a_rule("other", {}),
            a_rule("token_ceiling", {"max_tokens": "x"}),
            a_rule("token_ceiling", {"max_tokens": 1}, mode="warn"),
        ]
        service = Service([*unknown, CEILING])
        trueup = self.connect(service)
        self.assertTrue(trueup.ready(20))
        self.assertTrue(self.is_blocked(trueup))
        self.assertFalse(record(trueup) is None)

    def test_does_not_wait_longer_than_asked(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def stuck(request):
            release.wait(20)
            raise OSError("late")

        trueup = self.connect(stuck)
        began = time.monotonic()
        self.assertFalse(trueup.ready(0.1))
        self.assertFalse(trueup.refresh(0.1))
        self.assertFalse(self.is_blocked(trueup))
        self.assertLess(time.monotonic() - began, 5)

    def test_without_enforcement_no_rule_is_fetched(self):
        service = Service([CEILING])
        trueup = connect(service)
        self.assertFalse(trueup.ready(1))
        self.assertFalse(trueup.refresh(1))
        self.assertFalse(self.is_blocked(trueup))
        self.assertEqual([r for r in service.requests if r.method == "GET"], [])
        trueup.shutdown(20)


@unittest.skipUnless(hasattr(os, "fork"), "the system has no forks")
class Forks(unittest.TestCase):
    def in_child(self, work):
        """Runs it in a forked process, which ends without the parent's tests, and returns what it returns."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                result = work()
            except BaseException as error:
                result = repr(error)
            os.write(writing, json.dumps(result).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            result = json.loads(answer.read())
        os.waitpid(child, 0)
        return result

    def test_a_forked_process_knows_the_rules_and_patterns_and_has_threads_of_its_own(self):
        service = Service([CEILING])
        service.patterns = PATTERNS
        trueup = connect(service, enforcement=True, policy_verdicts=True)
        self.addCleanup(trueup.shutdown, 1)
        self.assertTrue(trueup.ready(20))
        record(trueup)

        def work():
            threads = threading.active_count()
            with self.assertRaises(TrueupBlockedError):
                trueup.recorder.begin(a_request("x" * 404))
            call = trueup.recorder.begin(a_request(BANNED["text"]))
            eventually(lambda: call.pattern_verdict._verdict is not None)
            call.end("ok")
            sent = trueup.refresh(20) and trueup.flush(20)
            return [threads, sent, [event["status"] for event in service.events], trueup.stats.recorded]

        # The parent's event still waits in the parent.
        self.assertEqual(self.in_child(work), [1, True, ["blocked", "ok"], 2])
        self.assertEqual(trueup.stats.waiting, 1)

    def test_a_fork_while_threads_record_leaves_no_held_lock(self):
        service = Service()
        trueup = connect(service, flush_interval_seconds=0.001)
        self.addCleanup(trueup.shutdown, 1)
        is_over = threading.Event()

        def work():
            while not is_over.is_set():
                record(trueup)

        def work_in_child():
            # The stand-in's own lock may be held.
            service.lock = threading.Lock()
            record(trueup)
            return trueup.flush(20)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                self.assertIs(self.in_child(work_in_child), True)
        finally:
            is_over.set()
            for thread in threads:
                thread.join()


class Patterns(unittest.TestCase):
    def test_a_thread_makes_the_verdict_while_the_provider_works(self):
        service = Service()
        service.patterns = PATTERNS
        trueup = connect(service, policy_verdicts=True)
        self.assertTrue(trueup.ready(20))
        call = trueup.recorder.begin(a_request(BANNED["text"]))
        eventually(lambda: call.pattern_verdict._verdict is not None)
        call.end("ok")
        self.assertTrue(trueup.shutdown(20))
        index = BANNED["pattern_index"]
        verdict = {
            "version": PATTERNS["version"],
            "pattern_index": index,
            "pattern_id": PATTERNS["patterns"][index]["id"],
            "match_offset": BANNED["match_offset"],
            "complete": True,
        }
        self.assertEqual(service.events[0]["_service"]["policy_verdict"], verdict)

    def test_tables_that_cannot_be_used_change_nothing_and_are_reported(self):
        service, errors = Service(), []
        service.patterns = {**PATTERNS, "automata": [{}]}
        trueup = connect(service, policy_verdicts=True, on_error=errors.append)
        self.assertFalse(trueup.ready(20))
        record(trueup)
        self.assertTrue(trueup.shutdown(20))
        self.assertNotIn("policy_verdict", service.events[0]["_service"])
        self.assertIn("unknown form", str(errors[0]))


class Client:
    """A client that no adapter knows."""


class Connections(unittest.TestCase):
    def setUp(self):
        self.addCleanup(connections.shutdown, 1)

    def test_without_an_address_or_a_key_nothing_is_observed(self):
        errors = []
        trueup = Trueup(on_error=errors.append)
        client = Client()
        self.assertIs(trueup.observe(client), client)
        self.assertEqual(
            (trueup.ready(), trueup.refresh(), trueup.flush(), trueup.shutdown()), (False, False, True, True)
        )
        self.assertEqual(trueup.stats.recorded, 0)
        self.assertIn("observes nothing", str(errors[0]))

    def test_a_client_that_is_not_known_stays_as_it_is_and_is_told(self):
        errors = []
        trueup = connect(Service(), on_error=errors.append)
        client = Client()
        self.assertIs(trueup.observe(client, team="growth"), client)
        self.assertEqual(
            [str(e) for e in errors], ["the client is not observed: Client is none of the known clients"]
        )
        self.assertEqual(vars(client), {})

    def test_clients_of_one_address_and_key_share_a_connection(self):
        service = Service()
        options = {"url": "http://service.test", "api_key": "a", "transport": service, "flush_at_exit": False}
        client = Client()
        for key in ("a", "a", "b"):
            self.assertIs(connections.observe(client, **{**options, "api_key": key}, team="growth"), client)
        self.assertEqual(len(connections._shared), 2)
        self.assertTrue(connections.ready(20))
        self.assertTrue(connections.flush(20))
        self.assertTrue(connections.shutdown(20))
        self.assertEqual(connections._shared, {})

    def test_the_thread_of_the_rules_ends_with_the_connection(self):
        before = set(threading.enumerate())
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(connect(Service(), enforcement=True))
            self.assertEqual(len(threads_since(before)), 3)
        eventually(lambda: threads_since(before) == set())


if __name__ == "__main__":
    unittest.main()
