"""Reads AWS's event stream: https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream."""

from __future__ import annotations

import base64
import json
from typing import Iterator, Optional

_PRELUDE_BYTES = 12
_CHECKSUM_BYTES = 4
# A longer frame is none: AWS allows 16 MB of payload.
_FRAME_BYTES_MAX = 33_554_432
_ERROR = b'{"type":"error"}'


class FrameReader:
    """Cuts chunks into frames, wherever the chunks end, and returns the event in each frame as JSON."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_broken = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._is_broken:
            return
        self._rest += chunk
        while len(self._rest) >= _PRELUDE_BYTES:
            length = int.from_bytes(self._rest[0:4], "big")
            headers = int.from_bytes(self._rest[4:8], "big")
            if length > _FRAME_BYTES_MAX or length < _PRELUDE_BYTES + headers + _CHECKSUM_BYTES:
                self._is_broken = True
                self._rest.clear()
                return
            if len(self._rest) < length:
                return
            names = bytes(self._rest[_PRELUDE_BYTES : _PRELUDE_BYTES + headers])
            payload = bytes(self._rest[_PRELUDE_BYTES + headers : length - _CHECKSUM_BYTES])
            del self._rest[:length]
            event = _event_of(names, payload)
            if event is not None:
                yield event


def _event_of(headers: bytes, payload: bytes) -> Optional[bytes]:
    """The maker's own event, which is in the frame as base64; an error in the form of an event of Anthropic."""
    if b":exception-type" in headers or b":error-code" in headers:
        return _ERROR
    try:
        encoded = json.loads(payload)["bytes"]
        return base64.b64decode(encoded)
    except (ValueError, TypeError, KeyError):
        return None
