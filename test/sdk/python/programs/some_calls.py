"""
Records calls and ends as it is told by `END`: `return`, `raise`, `exit`, `os_exit`, `flush` (then os_exit) or `stay`.
`HANDLER` is `before` or `after`: the application has a handler of SIGTERM of its own, set before or after the package.
`FORK` makes further calls in a child: `os`, a start method of multiprocessing, `pool` or `executor`. Prints a line when
the calls are made.
"""

import concurrent.futures
import multiprocessing
import os
import signal
import sys
import threading
import time

from trueup_sdk import Trueup
from trueup_sdk.calls import CallRequest, Reading

URL = os.environ["SERVICE_URL"]
CALLS = int(os.environ.get("CALLS", "0"))
END = os.environ.get("END", "return")
FORK = os.environ.get("FORK")


def handle(number, frame):
    # Not by print, which the signal may have interrupted and which then refuses to begin again.
    os.write(1, b"handled\n")
    sys.exit(7)


def connect():
    return Trueup(
        url=URL,
        api_key="tru_test",
        enforcement=False,
        # Only the end sends.
        flush_interval_seconds=float(os.environ.get("INTERVAL", "60")),
        spool=os.environ.get("SPOOL"),
    )


def record(trueup, calls):
    for index in range(calls):
        request = CallRequest("openai", "gpt-4o", None, {"messages": [{"role": "user", "content": "Hi"}]})
        call = trueup.recorder.begin(request)
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        # Two processes never share an id, and no call of one process shares another's.
        call.end("ok", Reading(response_id=f"{os.getpid()}-{index}-{time.monotonic_ns()}", usage=usage))


def in_child(_=None):
    record(trueup, CALLS)


def make_children():
    if FORK == "os":
        child = os.fork()
        if child == 0:
            in_child()
            # As gunicorn's workers end.
            sys.exit(0)
        os.waitpid(child, 0)
    elif FORK in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(FORK).Process(target=in_child)
        child.start()
        child.join()
    elif FORK == "pool":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(in_child, [0])
    elif FORK == "executor":
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            list(executor.map(in_child, [0]))


def record_for_ever():
    while True:
        record(trueup, 1)


if os.environ.get("HANDLER") == "before":
    signal.signal(signal.SIGTERM, handle)
trueup = connect()
if os.environ.get("HANDLER") == "after":
    signal.signal(signal.SIGTERM, handle)

if __name__ == "__main__":
    record(trueup, CALLS)
    make_children()
    for _ in range(int(os.environ.get("BUSY_THREADS", "0"))):
        threading.Thread(target=record_for_ever, daemon=True).start()
    print(f"made {CALLS}", flush=True)
    if os.environ.get("BUSY_THREADS"):
        record_for_ever()
    if END == "flush":
        print(f"flushed {trueup.flush(5)}", flush=True)
    if END in ("flush", "os_exit"):
        os._exit(0)
    if END == "raise":
        raise RuntimeError("the application has failed")
    if END == "exit":
        sys.exit(3)
    while END == "stay":
        time.sleep(1)
