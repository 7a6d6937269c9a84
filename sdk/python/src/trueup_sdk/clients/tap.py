"""
Reads along with the reader of an HTTP response: same chunks, same order, nothing held back and nothing read ahead.

The response is one of httpx, or of a library with the same interface. Every way to read its body ends in `iter_bytes`
or `aiter_bytes`. Until its end the response belongs to a subclass of its class, which reads along in these methods: so
nothing refers to it, and a stream that the application drops is freed as without this package.
"""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Set, Tuple

from .frames import FrameReader
from .iterate import AsyncItems, Watcher
from .readings import parse

# A longer answer is not read along, bytes.
BODY_BYTES_MAX = 33_554_432

JSON = "json"
EVENTS = "events"
LINES = "lines"
FRAMES = "frames"

DONE = "done"
LEFT = "left"
FAILED = "failed"


class Sink:
    """Takes what a reader sees. Each method may be missing what the body does not have."""

    def json(self, value: Any) -> None:
        """A whole JSON answer."""

    def line(self, data: bytes) -> None:
        """One event of a stream, or one line of a list: its data."""

    def end(self, how: str, error: Optional[BaseException] = None) -> None:
        """The body has ended: `done` by itself, `left` by its reader, or `failed` by an error."""


def quietly(work: Callable[[], Any]) -> None:
    """Runs work that reads along: whatever it meets, the application's call goes on."""
    try:
        work()
    except Exception:  # noqa: BLE001 - an answer of an unknown form is reported without its content
        pass


class Tap:
    """The state of one body that is read along."""

    def __init__(self, kind: str, sink: Sink) -> None:
        self._kind = kind
        self.sink = sink
        self._parts: List[bytes] = []
        self._size = 0
        self._frames = FrameReader() if kind == FRAMES else None
        # Reads of the body that run now: a response closes itself inside of its last one.
        self.depth = 0
        self.is_ended = False
        # A forked process ends its copies of the parent's streams, which the parent records.
        self._process = os.getpid()
        _note_open(self)

    def feed(self, chunk: bytes) -> None:
        try:
            if self._frames is not None:
                for event in self._frames.feed(chunk):
                    self.sink.line(event)
            elif self._kind == JSON:
                self._keep(chunk)
            elif b"\n" not in chunk:
                self._keep(chunk)
            else:
                *lines, rest = (b"".join(self._parts) + chunk).split(b"\n")
                self._parts = [rest] if rest else []
                self._size = len(rest)
                for line in lines:
                    self._feed_line(line)
        except Exception:  # noqa: BLE001 - an answer of an unknown form is reported without its content
            pass

    def _keep(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= BODY_BYTES_MAX:
            self._parts.append(chunk)
        else:
            self._parts.clear()

    def _feed_line(self, line: bytes) -> None:
        if self._kind == EVENTS:
            if line.startswith(b"data:"):
                self.sink.line(line[5:].strip())
        elif line.strip():
            self.sink.line(line)

    def done(self) -> None:
        if self.is_ended:
            return
        quietly(self._finish)
        self._end(DONE)

    def _finish(self) -> None:
        rest = b"".join(self._parts)
        self._parts.clear()
        if not rest:
            return
        if self._kind != JSON:
            self._feed_line(rest)
            return
        value = parse(rest)
        if value is not None:
            self.sink.json(value)

    def left(self) -> None:
        self._end(LEFT)

    def failed(self, error: BaseException) -> None:
        self._end(FAILED, error)

    def _end(self, how: str, error: Optional[BaseException] = None) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        _open.discard(self)
        if self._process == os.getpid():
            quietly(lambda: self.sink.end(how, error))


_open: Set[Tap] = set()
_is_watched = False


def _note_open(tap: Tap) -> None:
    global _is_watched
    _open.add(tap)
    if not _is_watched:
        _is_watched = True
        # Later than the sending of what waits was registered, hence before it.
        atexit.register(_leave_all)


def _leave_all() -> None:
    """The process ends, and with it the streams that it has not read to their end."""
    for tap in list(_open):
        tap.left()


def read_whole(body: bytes, kind: str, sink: Sink) -> None:
    """Reads a body that has arrived already."""
    tap = Tap(kind, sink)
    tap.feed(body)
    tap.done()


class SharedJson:
    """
    Reads a JSON answer when its client parses it, so that it is parsed once; or at `finish`, where the client leaves it
    unparsed.
    """

    __slots__ = ("_body", "_response", "_sink")

    def __init__(self, response: Any, body: bytes, sink: Sink) -> None:
        self._response = response
        self._body = body
        self._sink: Optional[Sink] = sink
        response.__dict__["json"] = self._json

    def _json(self, *args: Any, **kwargs: Any) -> Any:
        self._release()
        value = self._response.json(*args, **kwargs)
        # With arguments the client may ask for other types of numbers.
        if not args and not kwargs:
            self._read(value)
        return value

    def finish(self) -> None:
        """The client has returned, or has failed."""
        self._release()
        if self._sink is not None:
            self._read(parse(self._body))

    def _release(self) -> None:
        self._response.__dict__.pop("json", None)

    def _read(self, value: Any) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            _read_value(value, sink)


def _read_value(value: Any, sink: Sink) -> None:
    try:
        if value is not None:
            sink.json(value)
    except Exception:  # noqa: BLE001 - an answer of an unknown form is reported without its content
        pass
    try:
        sink.end(DONE)
    except Exception:  # noqa: BLE001 - the application's call goes on
        pass


# How a body of JSON begins, and no body of events.
_JSON_STARTS = (b"{", b"[")


def share_json(response: Any, sink: Sink) -> Optional[SharedJson]:
    """
    For a client that parses a response of JSON by the `json` of the response, before the application sees either. None:
    the body has not arrived, or is of another form.
    """
    # The headers need not be read, which takes longer than the first character of the body.
    if not hasattr(response, "_content"):
        return None
    body: bytes = response.content
    if not body.startswith(_JSON_STARTS) or len(body) > BODY_BYTES_MAX:
        return None
    return SharedJson(response, body, sink)


def read_response(response: Any, kind: str, sink: Sink, is_async: bool) -> None:
    """Reads a response of httpx, now where its body has arrived already, else along with its reader."""
    if kind == JSON and hasattr(response, "_content"):
        body: bytes = response.content
        # The usual answer: its headers need not be read, which takes longer than its first character.
        if body.startswith(_JSON_STARTS) and len(body) <= BODY_BYTES_MAX:
            _read_value(parse(body), sink)
            return
    content_type = str(response.headers.get("content-type", ""))
    if kind == JSON and "text/event-stream" in content_type:
        kind = EVENTS
    elif kind == EVENTS and content_type.startswith("application/vnd.amazon.eventstream"):
        kind = FRAMES
    if hasattr(response, "_content"):
        read_whole(response.content, kind, sink)
    else:
        change_class(response, Tap(kind, sink), _async_methods if is_async else _methods)


TAP = "_trueup_tap"
_classes: Dict[Tuple[type, Any], type] = {}


def change_class(target: Any, tap: Tap, methods_of: Callable[[Any], Dict[str, Any]]) -> None:
    """Gives an object methods that read along, until `release`. Raises TypeError where its class cannot be changed."""
    base = type(target)
    changed = _classes.get((base, methods_of))
    if changed is None:
        body = {"__slots__": (), "__module__": base.__module__, "__qualname__": base.__qualname__}
        made = type(base.__name__, (base,), {**body, **methods_of(base)})
        changed = _classes.setdefault((base, methods_of), made)
    target.__class__ = changed
    target.__dict__[TAP] = tap
    # A stream that is dropped unread, or whose reader never comes back.
    finalizer = weakref.finalize(target, tap.left)
    finalizer.atexit = False


def release(target: Any, base: type) -> None:
    """After its end an object is as it was. Until then a method of this module may still run on it."""
    tap = target.__dict__.get(TAP)
    if tap is not None and tap.is_ended:
        del target.__dict__[TAP]
        target.__class__ = base


def _methods(base: Any) -> Dict[str, Any]:
    # A method that was taken from the response before its end may be called after it, and finds no tap then.
    def iter_bytes(self: Any, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        chunks: Iterator[bytes] = base.iter_bytes(self, *args, **kwargs)
        return _read(self, base, chunks, is_seen=True) if TAP in self.__dict__ else chunks

    def iter_raw(self: Any, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        chunks: Iterator[bytes] = base.iter_raw(self, *args, **kwargs)
        tap: Optional[Tap] = self.__dict__.get(TAP)
        # Called by the method above, which sees the same bytes decoded.
        return chunks if tap is None or tap.depth > 0 else _read(self, base, chunks, is_seen=False)

    def close(self: Any) -> None:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        base.close(self)
        if tap is not None and tap.depth == 0:
            tap.left()
            release(self, base)

    return {"iter_bytes": iter_bytes, "iter_raw": iter_raw, "close": close}


def _async_methods(base: Any) -> Dict[str, Any]:
    def aiter_bytes(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        chunks: AsyncIterator[bytes] = base.aiter_bytes(self, *args, **kwargs)
        return AsyncItems(chunks, _ResponseWatcher(self, base, True)) if TAP in self.__dict__ else chunks

    def aiter_raw(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        chunks: AsyncIterator[bytes] = base.aiter_raw(self, *args, **kwargs)
        tap: Optional[Tap] = self.__dict__.get(TAP)
        if tap is None or tap.depth > 0:
            return chunks
        return AsyncItems(chunks, _ResponseWatcher(self, base, False))

    async def aclose(self: Any) -> None:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        await base.aclose(self)
        if tap is not None and tap.depth == 0:
            tap.left()
            release(self, base)

    return {"aiter_bytes": aiter_bytes, "aiter_raw": aiter_raw, "aclose": aclose}


def _tap_of(response: Any) -> Tap:
    """The response may have ended since its reader asked for its chunks."""
    tap: Optional[Tap] = response.__dict__.get(TAP)
    return Tap(LINES, Sink()) if tap is None else tap


def _read(response: Any, base: type, chunks: Iterator[bytes], is_seen: bool) -> Iterator[bytes]:
    tap = _tap_of(response)
    try:
        while True:
            tap.depth += 1
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            finally:
                tap.depth -= 1
            if is_seen:
                tap.feed(chunk)
            yield chunk
        tap.done()
    except GeneratorExit:
        _close(chunks)
        tap.left()
        raise
    except BaseException as error:
        _close(chunks)
        tap.failed(error)
        raise
    finally:
        release(response, base)


def _close(chunks: Any) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


class _ResponseWatcher(Watcher):
    def __init__(self, response: Any, base: type, is_seen: bool) -> None:
        self._response = response
        self._base = base
        self._is_seen = is_seen
        self._tap = _tap_of(response)

    def asked(self) -> None:
        self._tap.depth += 1

    def answered(self) -> None:
        self._tap.depth -= 1

    def see(self, item: Any) -> None:
        if self._is_seen:
            self._tap.feed(item)

    def done(self) -> None:
        self._tap.done()
        release(self._response, self._base)

    def left(self) -> None:
        self._tap.left()
        release(self._response, self._base)

    def failed(self, error: BaseException) -> None:
        self._tap.failed(error)
        release(self._response, self._base)
