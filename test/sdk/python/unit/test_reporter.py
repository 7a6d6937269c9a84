import asyncio
import email.utils
import enum
import http.server
import json
import threading
import time
import unittest

from support import Service, connect, eventually, record, threads_since
from trueup_sdk import Trueup
from trueup_sdk.transport import Request, Response, retry_after_of, send


def refusal(status, **headers):
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"refused")


class Reporting(unittest.TestCase):
    def test_starts_no_thread_before_the_first_event(self):
        before = set(threading.enumerate())
        trueup = connect(Service())
        self.assertEqual(threads_since(before), set())
        record(trueup)
        self.assertEqual([thread.daemon for thread in threads_since(before)], [True])
        trueup.shutdown(20)
        eventually(lambda: threads_since(before) == set())

    def test_sends_after_the_interval_and_at_once_after_a_burst(self):
        service = Service()
        trueup = connect(service, flush_interval_seconds=0.05)
        record(trueup)
        eventually(lambda: len(service.events) == 1)
        patient = Service()
        other = connect(patient)
        for _ in range(1_000):
            record(other)
        eventually(lambda: len(patient.events) == 1_000)
        for connection in (trueup, other):
            connection.shutdown(20)

    def test_sends_batches_of_at_most_a_thousand_events_and_compresses_them(self):
        service = Service()
        service.is_away = True
        trueup = connect(service)
        for _ in range(2_500):
            record(trueup)
        service.is_away = False
        self.assertTrue(trueup.flush(20))
        arrived = [request for request in service.posts if request.headers.get("content-encoding") == "gzip"]
        self.assertEqual(len(service.events), 2_500)
        self.assertGreaterEqual(len(arrived), 3)
        self.assertEqual(arrived[-1].headers["authorization"], "Bearer tru_test")
        self.assertEqual(trueup.stats.sent, 2_500)
        self.assertEqual(trueup.stats.waiting_bytes, 0)
        trueup.shutdown(20)

    def test_keeps_events_while_the_service_is_away_and_tells_once(self):
        service, errors = Service(), []
        service.is_away = True
        trueup = connect(service, on_error=errors.append)
        record(trueup)
        for _ in range(3):
            self.assertFalse(trueup.flush(20))
        self.assertEqual(
            [str(error) for error in errors],
            ["events wait: the service does not answer (connection refused)"],
        )
        service.is_away = False
        self.assertTrue(trueup.flush(20))
        self.assertEqual(len(service.events), 1)
        service.is_away = True
        record(trueup)
        trueup.flush(20)
        self.assertEqual(len(errors), 2)
        trueup.shutdown(1)

    def test_a_refused_key_is_told_once_and_its_events_are_sent_when_it_is_taken(self):
        service, errors = Service(), []
        service.answers = [refusal(401), refusal(403), refusal(401)]
        trueup = connect(service, on_error=errors.append)
        record(trueup)
        for _ in range(3):
            self.assertFalse(trueup.flush(20))
        self.assertEqual([str(error) for error in errors], ["events wait: the service answers 401"])
        self.assertTrue(trueup.flush(20))
        self.assertEqual(len(service.events), 1)
        trueup.shutdown(20)

    def test_waits_as_long_as_the_service_asks_for(self):
        service = Service()
        service.answers = [refusal(429, retry_after="0.3")]
        trueup = connect(service, flush_interval_seconds=0.01)
        record(trueup)
        eventually(lambda: len(service.posts) == 1)
        first = time.monotonic()
        eventually(lambda: len(service.posts) == 2)
        self.assertGreaterEqual(time.monotonic() - first, 0.25)
        self.assertEqual(len(service.events), 1)
        trueup.shutdown(20)

    def test_drops_events_that_the_service_refuses_for_good(self):
        service, errors = Service(), []
        service.answers = [refusal(400), Response(202, {}, b'{"rejected":[{"index":0}]}')]
        trueup = connect(service, on_error=errors.append)
        record(trueup)
        self.assertTrue(trueup.flush(20))
        record(trueup)
        self.assertTrue(trueup.flush(20))
        self.assertEqual((trueup.stats.sent, trueup.stats.refused), (0, 2))
        self.assertEqual(len(errors), 2)
        trueup.shutdown(20)

    def test_drops_what_does_not_fit_into_the_queue_and_counts_it(self):
        service, errors = Service(), []
        service.is_away = True
        trueup = connect(service, queue_bytes_max=2_000, on_error=errors.append)
        for _ in range(10):
            record(trueup)
        stats = trueup.stats
        self.assertGreater(stats.dropped, 0)
        self.assertEqual(stats.recorded, 10)
        self.assertEqual(stats.waiting + stats.dropped, 10)
        self.assertLessEqual(stats.waiting_bytes, 2_000)
        self.assertEqual([str(error) for error in errors], ["the queue is full: events are being dropped"])
        trueup.shutdown(1)

    def test_loses_no_event_of_many_threads(self):
        service = Service()
        trueup = connect(service, flush_interval_seconds=0.001)

        def work():
            for _ in range(500):
                record(trueup)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(trueup.shutdown(30))
        self.assertEqual(len(service.events), 4_000)
        self.assertEqual(len({event["request_id"] for event in service.events}), 4_000)

    def test_never_blocks_the_event_loop(self):
        service = Service()

        def slow(request):
            time.sleep(0.5)
            return service(request)

        async def work():
            trueup = connect(slow, enforcement=True, flush_interval_seconds=0.001)
            longest, began = 0.0, time.monotonic()
            ready = asyncio.ensure_future(trueup.ready_async(20))
            while time.monotonic() - began < 1.5:
                record(trueup)
                before = time.monotonic()
                await asyncio.sleep(0.001)
                longest = max(longest, time.monotonic() - before)
            self.assertTrue(await ready)
            self.assertTrue(await trueup.flush_async(20))
            self.assertTrue(await trueup.shutdown_async(20))
            return longest

        self.assertLess(asyncio.run(work()), 0.4)

    def test_an_event_with_values_that_json_lacks_is_sent_all_the_same(self):
        class Kind(enum.Enum):
            A = "a"

        service = Service()
        trueup = connect(service)
        inner = {
            "not_a_number": float("nan"),
            "infinite": float("inf"),
            "kind": Kind.A,
            "bytes": b"x",
            "half": "\ud800",
        }
        loop = {}
        loop["loop"] = loop
        record(trueup, usage={"prompt_tokens": 1, "inner": inner})
        record(trueup, usage={"prompt_tokens": 1, "loop": loop})
        record(trueup)
        self.assertTrue(trueup.shutdown(20))
        self.assertEqual(len(service.events), 3)
        self.assertIsNone(service.events[0]["usage"]["inner"]["not_a_number"])

    def test_nothing_is_taken_after_the_end(self):
        service = Service()
        trueup = connect(service)
        record(trueup)
        self.assertTrue(trueup.shutdown(20))
        record(trueup)
        self.assertTrue(trueup.shutdown(20))
        self.assertEqual(trueup.stats.recorded, 1)
        self.assertEqual(len(service.events), 1)


class Requests(unittest.TestCase):
    """The transport of the standard library, against a real server."""

    def setUp(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                seen.append((self.path, self.headers["authorization"], body))
                if self.path.startswith("/moved"):
                    self.send_response(307)
                    self.send_header("Location", "/elsewhere")
                else:
                    self.send_response(418)
                    self.send_header("Retry-After", "7")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"no")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def post(self, path):
        return send(Request("POST", self.url + path, {"authorization": "Bearer k"}, b"{}", 10))

    def test_returns_the_answer_of_any_status_with_its_headers(self):
        answer = self.post("/x")
        self.assertEqual((answer.status, answer.body), (418, b"no"))
        self.assertEqual(retry_after_of(answer), 7)

    def test_sends_the_key_to_no_other_address(self):
        self.assertEqual(self.post("/moved").status, 307)
        self.assertEqual([path for path, _, _ in self.seen], ["/moved"])

    def test_sends_to_http_and_https_alone(self):
        errors = []
        trueup = Trueup(url="file:///etc", api_key="k", flush_at_exit=False, on_error=errors.append)
        self.assertFalse(trueup.ready(20))
        self.assertIn("no address of http", str(errors[0]))
        trueup.shutdown(1)

    def test_reads_retry_after_in_seconds_or_as_a_date(self):
        def read(text):
            return retry_after_of(Response(429, {"retry-after": text}, b""))

        soon = read(email.utils.formatdate(time.time() + 30, usegmt=True))
        self.assertTrue(28 <= soon <= 31, soon)
        self.assertEqual(
            [read(text) for text in ("2", "0.5", "-3", "99999", "soon", "nan")],
            [2, 0.5, 0, 3_600, None, None],
        )
        self.assertIsNone(retry_after_of(Response(429, {}, b"")))

    def test_reports_over_the_network(self):
        with Trueup(url=self.url, api_key="tru_x", enforcement=False, flush_at_exit=False) as trueup:
            record(trueup)
        ((path, authorization, body),) = self.seen
        self.assertEqual((path, authorization), ("/api/v1/ingest/events", "Bearer tru_x"))
        self.assertEqual(len(json.loads(body)["events"]), 1)


if __name__ == "__main__":
    unittest.main()
