"""JSON texts of events."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

from .texts import fields_of

_DEPTH_MAX = 64


def encode(value: Any) -> str:
    """Compact JSON in ASCII. Objects of the clients become their fields; a number that JSON lacks becomes null."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError):
        return _ENCODER.encode(_clean(value, 0))


def _plain(value: Any) -> Any:
    fields = fields_of(value)
    if fields is not None:
        return {str(name): inner for name, inner in fields.items() if not str(name).startswith("_")}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return str(value)


def _clean(value: Any, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_clean(item, depth + 1) for item in value]
    plain = value if isinstance(value, Mapping) else _plain(value)
    if isinstance(plain, Mapping):
        return {str(name): _clean(inner, depth + 1) for name, inner in plain.items()}
    return _clean(plain, depth + 1)


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_plain, allow_nan=False)
