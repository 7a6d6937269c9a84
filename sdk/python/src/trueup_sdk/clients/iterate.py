"""Reads along with the reader of a stream that a client has already decoded."""

from __future__ import annotations

from ..calls import Reading


def left_as(reading: Reading) -> str:
    """A reader that leaves after the answer's end has only not waited for the end of the stream."""
    return "cancelled" if reading.stop_reason is None else "ok"
