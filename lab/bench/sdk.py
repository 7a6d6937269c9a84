"""
The Python package in `npm run bench:sdk`: what it takes to judge and record a call with rules on, without the adapter of
a client, and what a whole call of OpenAI's client takes more with it; and 10,000 calls while the service is away. Prints
one JSON object a line: `{"name", "value", "limit", "unit"}`. `SERVICE_URL` serves rules and prices.
"""

import gc
import importlib
import json
import os
import statistics
import tempfile
import time
import tracemalloc

from trueup_sdk import Trueup, with_labels
from trueup_sdk.calls import CallRequest, Reading
from trueup_sdk.clients import stainless, tap
from trueup_sdk.transport import Response

CALLS = 10_000
WARM_UP_CALLS = 3_000
ROUNDS = 3
WHOLE_CALLS = 1_500
WHOLE_ROUNDS = 5
# Calls without and with the package alternate in short blocks, since the machine's speed changes within seconds.
BLOCK_CALLS = 50
BLOCKS = 100
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


ANSWER = json.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-4o-mini",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "word " * 100},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": USAGE,
    }
).encode()


def a_client():
    """OpenAI's client, whose provider answers at once, without a network; None: it is not installed."""
    try:
        import openai
    except ImportError:
        return None
    # Versions differ in the package that they send their requests by.
    base = next(one for one in openai.DefaultHttpxClient.__mro__ if one.__name__ == "Client")
    httpx = importlib.import_module(base.__module__.split(".")[0])

    def answer(_request):
        return httpx.Response(200, content=ANSWER, headers={"content-type": "application/json"})

    return openai.OpenAI(api_key="sk-bench", http_client=httpx.Client(transport=httpx.MockTransport(answer)))


def time_whole_calls(client, calls):
    """
    Microseconds of processor time of each call, sorted, of the thread that makes it: the package sends events in another
    thread, and the machine's other work does not count.
    """
    times = []
    for _ in range(calls):
        began = time.thread_time_ns()
        client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES, max_tokens=100)
        times.append((time.thread_time_ns() - began) / 1_000)
    return sorted(times)


def time_adapter():
    """
    Times the package's own work in each call of OpenAI's client: before its request, when its answer has arrived, when
    the client has parsed it, and after it. Returns the function that ends it and returns the sorted microseconds of
    processor time.
    """
    parts = [(stainless._Request, name) for name in ("__init__", "answered", "returned")]
    parts.append((tap.SharedJson, "_read"))
    kept = [(owner, name, getattr(owner, name)) for owner, name in parts]
    times = []

    def timed(name, work):
        def run(*args):
            began = time.thread_time_ns()
            try:
                return work(*args)
            finally:
                spent = (time.thread_time_ns() - began) / 1_000
                if name == "__init__":
                    times.append(spent)
                else:
                    times[-1] += spent

        return run

    for owner, name, work in kept:
        setattr(owner, name, timed(name, work))

    def finish():
        for owner, name, work in kept:
            setattr(owner, name, work)
        return sorted(times)

    return finish


def bench_whole_calls():
    """
    Whole calls are compared by the medians of neighbouring blocks: the far end of their times is the machine's other
    work, with and without the package. The far end of the package's own work is measured inside it.
    """
    plain, observed = a_client(), a_client()
    if plain is None or observed is None:
        check("calls of OpenAI's client, which is not installed (pip install openai), that were measured", 0, 0, "calls")
        return
    trueup = Trueup(url=os.environ["SERVICE_URL"], api_key="tru_bench", flush_at_exit=False)
    if not trueup.ready(20):
        raise SystemExit("no rules")
    trueup.observe(observed)
    without, more, own = [], [], []
    with with_labels(session="s", team="a"):
        time_whole_calls(plain, WHOLE_CALLS)
        time_whole_calls(observed, WHOLE_CALLS)
        for _ in range(BLOCKS):
            without.append(statistics.median(time_whole_calls(plain, BLOCK_CALLS)))
            more.append(statistics.median(time_whole_calls(observed, BLOCK_CALLS)) - without[-1])
        for _ in range(WHOLE_ROUNDS):
            finish = time_adapter()
            time_whole_calls(observed, WHOLE_CALLS)
            times = finish()
            own.append(times[int(len(times) * 0.99)])
            trueup.flush()
    trueup.shutdown()
    # Other work of the machine only adds: the best of some rounds is the package's own.
    name = "a whole call of OpenAI's client, processor time"
    label = f"{name}, median, more than without ({statistics.median(without):.0f} µs)"
    check(label, round(statistics.median(more), 1), OVERHEAD_US_MAX, "µs")
    check(f"{name}, the package's own work, p99", round(min(own), 1), OVERHEAD_US_MAX, "µs")


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
bench_whole_calls()
bench_away(None)
bench_spool()
