"""The end of this process, and its forks."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any, List, Optional, Protocol, Tuple

if TYPE_CHECKING:
    from .reporter import Reporter


class Forked(Protocol):
    """A part with threads or locks, which a forked process does not have."""

    def after_fork(self) -> None: ...


_forked: "weakref.WeakSet[Any]" = weakref.WeakSet()
# Connections whose events the end of the process sends, each with the seconds that it waits.
_flushed: List[Tuple[Reporter, float]] = []
_is_watching = False
# Whether this process, if it is a worker, is watched for its end.
_is_worker_watched = False
_earlier_handler: Any = None


def renew_after_fork(part: Forked) -> None:
    """Calls `part.after_fork()` in each forked process, as long as the part lives."""
    _forked.add(part)


def _after_fork() -> None:
    global _is_worker_watched
    _is_worker_watched = False
    for part in list(_forked):
        try:
            part.after_fork()
        except Exception:
            # The forked process goes on without reports rather than not at all.
            pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def flush_at_end(reporter: Reporter, timeout_seconds: float) -> None:
    """Sends what waits when the interpreter ends, and on SIGTERM where Python has set no other handler since."""
    _flushed.append((reporter, timeout_seconds))
    _watch_end()


def forget(reporter: Reporter) -> None:
    """The reporter is closed."""
    _flushed[:] = [entry for entry in _flushed if entry[0] is not reporter]


def _watch_end() -> None:
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    atexit.register(_flush_all)
    _watch_signal()


def watch_worker() -> None:
    """
    Called with each event: workers that multiprocessing has forked end without the functions of atexit, and forget at
    their start what was registered for their end before.
    """
    global _is_worker_watched
    if _is_worker_watched or not _flushed:
        return
    _is_worker_watched = True
    multiprocessing = sys.modules.get("multiprocessing")
    util = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None and util is not None and multiprocessing.parent_process() is not None:
        util.Finalize(None, _flush_all, exitpriority=-100)


def _flush_all() -> None:
    now = time.monotonic()
    asked = []
    for reporter, timeout_seconds in list(_flushed):
        try:
            if reporter.has_waiting:
                asked.append((reporter, reporter.ask(), now + timeout_seconds))
        except Exception:
            # One connection must not keep the others from sending.
            pass
    for reporter, number, deadline in asked:
        reporter.wait(number, deadline)


def _watch_signal() -> None:
    global _earlier_handler
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        earlier = signal.getsignal(signal.SIGTERM)
        # An ignored signal stays ignored, and a handler that is not Python's stays alone.
        if earlier is None or earlier == signal.SIG_IGN:
            return
        _earlier_handler = earlier
        signal.signal(signal.SIGTERM, _on_signal)
    except ValueError:
        # Not the main interpreter.
        pass


def _on_signal(number: int, frame: Optional[FrameType]) -> None:
    """
    The main thread may hold any lock here, so that another thread sends. A signal that nobody else handles ends the
    process as before, after that; a second one ends it at once. Otherwise the application's handler decides.
    """
    if callable(_earlier_handler):
        _start(_flush_all)
        _earlier_handler(number, frame)
        return
    signal.signal(number, signal.SIG_DFL)
    if not _start(lambda: _flush_and_end(number)):
        os.kill(os.getpid(), number)


def _start(work: Any) -> bool:
    try:
        _thread.start_new_thread(work, ())
        return True
    except RuntimeError:
        return False


def _flush_and_end(number: int) -> None:
    try:
        _flush_all()
    finally:
        os.kill(os.getpid(), number)
