"""
Sends events in the background. The queue has a limit in bytes; a service that does not answer costs the application
nothing but that.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections import deque
from itertools import islice
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Union

from .encoding import encode
from .process import watch_worker
from .spool import Spool
from .transport import Request, Response, Transport, message_of, retry_after_of
from .version import SDK_NAME

_EVENTS_PATH = "/api/v1/ingest/events"
_BATCH_EVENTS_MAX = 1_000
_BATCH_BYTES_MAX = 2_000_000
# Waiting events that are sent without waiting for the interval.
_EVENTS_OF_A_BURST = 1_000
# Bytes of an event in memory beside its text.
_EVENT_OVERHEAD_BYTES = 64
_BACKOFF_FIRST_SECONDS = 1.0
_BACKOFF_MAX_SECONDS = 60.0
_GZIP_BYTES_MIN = 1_024
# Level 6 takes twice the time, in which the application may wait, for bodies that are a tenth smaller.
_GZIP_LEVEL = 1
# The service takes the events later: too many requests, restarting, or a key that is being changed.
_RETRIED = frozenset((401, 403, 408, 425, 429, 500, 502, 503, 504))


class ReporterStats(NamedTuple):
    """What has become of the events of this process."""

    recorded: int = 0
    sent: int = 0
    dropped: int = 0
    """Lost because the queue was full."""
    refused: int = 0
    """Refused by the service for good."""
    waiting: int = 0
    """In memory; those in a spool wait on disk."""
    waiting_bytes: int = 0


class ReporterOptions(NamedTuple):
    """Settings of a connection that concern its sending."""

    url: str
    api_key: str
    queue_bytes_max: int
    """Bytes of waiting events in memory."""
    flush_interval_seconds: float
    request_timeout_seconds: float
    spool: Optional[Spool]
    on_error: Callable[[Exception], Any]


class _Later(NamedTuple):
    """The service has not taken a batch, but may later."""

    seconds: Optional[float]
    """How long it asks to wait; None: it does not say."""
    reason: str


class Reporter:
    """
    A queue and the thread that sends it, which starts at the first event. The lock is reentrant: a signal handler or a
    finalizer may record an event while the same thread records one.
    """

    def __init__(self, options: ReporterOptions, transport: Transport) -> None:
        self._options = options
        self._transport = transport
        self._spool = options.spool
        self._failures = 0
        self._retry_at = 0.0
        self._is_closed = False
        self._start_afresh()
        # Events of an earlier process wait for the first answer of the service.
        if self._spool is not None and not self._spool.is_empty:
            with self._lock:
                self._schedule(0)

    def _start_afresh(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: Optional[threading.Thread] = None
        self._queue: Deque[str] = deque()
        self._queue_bytes = 0
        self._recorded = self._sent = self._dropped = self._refused = 0
        # When the next sending is due, by the monotonic clock; None: nothing waits.
        self._due: Optional[float] = None
        # Flushes are numbered: the thread notes up to which one it has sent everything.
        self._asked = self._answered = 0

    def after_fork(self) -> None:
        """In a forked process: events that waited are the parent's, and its thread does not exist."""
        self._start_afresh()
        if self._spool is not None:
            self._spool.after_fork()

    @property
    def stats(self) -> ReporterStats:
        with self._lock:
            return ReporterStats(
                self._recorded, self._sent, self._dropped, self._refused, len(self._queue), self._queue_bytes
            )

    @property
    def has_waiting(self) -> bool:
        """Whether events wait, or are being sent."""
        return len(self._queue) > 0 or (self._spool is not None and not self._spool.is_empty)

    def add(self, event: Any) -> None:
        """Takes one event. Never raises, never waits for the service."""
        try:
            text = encode(event)
            is_spooled = not self._is_closed and self._put_in_spool(text)
            with self._lock:
                if self._is_closed:
                    return
                self._recorded += 1
                if not is_spooled:
                    self._enqueue(text)
                is_burst = len(self._queue) >= _EVENTS_OF_A_BURST
                self._schedule(0 if is_burst else self._options.flush_interval_seconds)
            watch_worker()
        except Exception as error:
            self._tell(error)

    def _put_in_spool(self, text: str) -> bool:
        if self._spool is None:
            return False
        try:
            self._spool.append(text)
            return True
        except Exception as error:
            self._tell(error)
            return False

    def _enqueue(self, text: str) -> None:
        size = len(text) + _EVENT_OVERHEAD_BYTES
        if self._queue_bytes + size > self._options.queue_bytes_max:
            self._dropped += 1
            if self._dropped == 1:
                self._tell(RuntimeError("the queue is full: events are being dropped"))
            return
        self._queue.append(text)
        self._queue_bytes += size

    def _schedule(self, seconds: float) -> None:
        due = max(time.monotonic() + seconds, self._retry_at)
        if self._due is None or due < self._due:
            self._due = due
            self._changed.notify_all()
        self._has_thread()

    def _has_thread(self) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return True
        try:
            thread = threading.Thread(
                target=self._run, args=(self._lock,), name="trueup-reporter", daemon=True
            )
            self._thread = thread
            thread.start()
            return True
        except RuntimeError:
            # The interpreter is ending: no thread starts any more.
            self._thread = None
            return False

    def _run(self, lock: threading.RLock) -> None:
        while True:
            with self._changed:
                while self._asked == self._answered:
                    if self._is_closed or lock is not self._lock:
                        return
                    now = time.monotonic()
                    if self._due is not None and self._due <= now:
                        break
                    self._changed.wait(None if self._due is None else self._due - now)
                asked, is_forced = self._asked, self._asked != self._answered
                self._due = None
            self._send_quietly(is_forced)
            with self._changed:
                self._answered = asked
                if self.has_waiting and not self._is_closed:
                    self._schedule(self._options.flush_interval_seconds)
                self._changed.notify_all()

    def ask(self) -> int:
        """Asks the thread to send what waits now. The answer is for `wait`."""
        with self._changed:
            self._asked += 1
            if not self._has_thread():
                self._send_quietly(True)
                self._answered = self._asked
            self._changed.notify_all()
            return self._asked

    def wait(self, asked: int, deadline: float) -> bool:
        """Waits until `deadline` by the monotonic clock. True: everything arrived, or was refused for good."""
        with self._changed:
            while self._answered < asked:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return not self.has_waiting

    def flush(self, timeout_seconds: Optional[float] = None) -> bool:
        """Sends what waits. True: everything arrived, or was refused for good, within the time."""
        if not self.has_waiting:
            return True
        limit = self._options.request_timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + limit
        return self.wait(self.ask(), deadline)

    def close(self, timeout_seconds: Optional[float] = None) -> bool:
        """Sends what waits, and takes no more events."""
        if self._is_closed:
            return not self.has_waiting
        is_sent = self.flush(timeout_seconds)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._spool is not None:
            self._spool.close()
        return is_sent

    def _send_quietly(self, is_forced: bool) -> None:
        try:
            self._send_all(is_forced)
        except Exception as error:
            self._tell(error)

    def _send_all(self, is_forced: bool) -> None:
        if not is_forced and time.monotonic() < self._retry_at:
            return
        while self.has_waiting and not self._is_closed:
            spool = self._spool
            is_from_disk = spool is not None and not spool.is_empty
            batch = (
                spool.read(_BATCH_EVENTS_MAX, _BATCH_BYTES_MAX) if spool and is_from_disk else self._batch()
            )
            if batch:
                outcome = self._post(batch)
                if isinstance(outcome, _Later):
                    self._wait_after(outcome)
                    return
                self._failures, self._retry_at = 0, 0.0
                with self._lock:
                    self._sent += outcome
                    self._refused += len(batch) - outcome
            elif not is_from_disk:
                return
            # Lines of a spool that are no events are passed over.
            if spool is not None and is_from_disk:
                spool.confirm()
            else:
                self._remove(batch)

    def _batch(self) -> List[str]:
        with self._lock:
            size = 0
            batch: List[str] = []
            for text in islice(self._queue, _BATCH_EVENTS_MAX):
                size += len(text)
                if batch and size > _BATCH_BYTES_MAX:
                    break
                batch.append(text)
            return batch

    def _remove(self, batch: List[str]) -> None:
        with self._lock:
            for text in batch:
                self._queue.popleft()
                self._queue_bytes -= len(text) + _EVENT_OVERHEAD_BYTES

    def _wait_after(self, later: _Later) -> None:
        self._failures += 1
        backoff = min(_BACKOFF_FIRST_SECONDS * 2 ** min(self._failures - 1, 16), _BACKOFF_MAX_SECONDS)
        # Processes that lost the service at once must not come back at once.
        seconds = backoff * (0.5 + random.random() / 2) if later.seconds is None else later.seconds
        self._retry_at = time.monotonic() + seconds
        if self._failures == 1:
            self._tell(RuntimeError(f"events wait: {later.reason}"))

    def _post(self, batch: List[str]) -> Union[int, _Later]:
        """The number of events that arrived; the others of the batch are refused for good."""
        headers = {
            "authorization": f"Bearer {self._options.api_key}",
            "content-type": "application/json",
            "user-agent": SDK_NAME,
        }
        try:
            body = ('{"events":[' + ",".join(batch) + "]}").encode("ascii", "backslashreplace")
            if len(body) > _GZIP_BYTES_MIN:
                body = gzip.compress(body, _GZIP_LEVEL)
                headers["content-encoding"] = "gzip"
            url = self._options.url + _EVENTS_PATH
            response = self._transport(
                Request("POST", url, headers, body, self._options.request_timeout_seconds)
            )
        except Exception as error:
            return _Later(None, f"the service does not answer ({message_of(error)})")
        if 200 <= response.status < 300:
            return len(batch) - self._rejected_of(response, len(batch))
        reason = f"the service answers {response.status}"
        if response.status in _RETRIED:
            return _Later(retry_after_of(response), reason)
        answer = response.body[:200].decode("utf-8", "replace")
        self._tell(RuntimeError(f"{len(batch)} events are refused: {reason} {answer}"))
        return 0

    def _rejected_of(self, response: Response, most: int) -> int:
        """Items that the service rejected alone; the others are stored."""
        try:
            rejected = json.loads(response.body or b"{}").get("rejected") or 0
            count = len(rejected) if isinstance(rejected, list) else int(rejected)
        except (ValueError, TypeError, AttributeError):
            return 0
        if count > 0:
            answer = response.body[:500].decode("utf-8", "replace")
            self._tell(RuntimeError(f"{count} events are rejected: {answer}"))
        return min(max(count, 0), most)

    def _tell(self, error: Exception) -> None:
        try:
            self._options.on_error(error)
        except Exception:
            # The application's own handler must not break its call.
            pass
