"""Reads the answers of the providers: one reader for each form of answer."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from ..calls import Reading

Fields = Dict[str, Any]


def text(value: Any) -> Optional[str]:
    """None: no text, or an empty one."""
    return value if isinstance(value, str) and value != "" else None


def fields(value: Any) -> Optional[Fields]:
    """None: no JSON object."""
    return value if isinstance(value, dict) else None


def items(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def number(value: Any) -> Optional[int]:
    """A whole number; None: no number."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == value and abs(value) != float("inf") else None


def millis_of_seconds(value: Any) -> Optional[int]:
    """Milliseconds; None: no number."""
    seconds = number(value)
    return None if seconds is None else seconds * 1_000


def first_number(*values: Any) -> Optional[int]:
    """The first of the values that is a number."""
    for value in values:
        found = number(value)
        if found is not None:
            return found
    return None


def parse(body: Any) -> Any:
    """None: no JSON."""
    try:
        return json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None


def read_openai(value: Any) -> Reading:
    """Chat completions, completions, embeddings, images and transcriptions of OpenAI and of its kin."""
    answer = fields(value)
    if answer is None:
        return Reading()
    inner = fields(answer.get("response"))
    if answer.get("object") == "response":
        return _read_response(answer)
    if inner is not None and inner.get("object") == "response":
        return _read_response(inner)
    reason: Optional[str] = None
    for choice in items(answer.get("choices")):
        reason = text((fields(choice) or {}).get("finish_reason"))
        if reason is not None:
            break
    return Reading(
        response_id=text(answer.get("id")),
        response_model=text(answer.get("model")),
        usage=fields(answer.get("usage")),
        stop_reason=reason,
        service_tier=text(answer.get("service_tier")),
    )


# Stop reasons of responses that have ended.
_ENDS = {"completed": "stop", "incomplete": "incomplete", "failed": "error", "cancelled": "cancelled"}
_CALLS_FOR_TOOLS = ("function_call", "custom_tool_call")


def _read_response(answer: Fields) -> Reading:
    """The Responses API: a call for a tool is an item of the output."""
    asks_for_tool = any(
        (fields(item) or {}).get("type") in _CALLS_FOR_TOOLS for item in items(answer.get("output"))
    )
    reason = text((fields(answer.get("incomplete_details")) or {}).get("reason"))
    ended = _ENDS.get(text(answer.get("status")) or "")
    return Reading(
        response_id=text(answer.get("id")),
        response_model=text(answer.get("model")),
        usage=fields(answer.get("usage")),
        stop_reason="tool_calls" if asks_for_tool else reason or ended,
        service_tier=text(answer.get("service_tier")),
    )


def read_anthropic(value: Any, before: Optional[Reading] = None) -> Reading:
    """Anthropic's messages: whole, or the first and the last event of a stream."""
    event = fields(value)
    if event is None:
        return Reading()
    message = fields(event.get("message"))
    if message is None:
        message = {} if event.get("type") == "message_delta" else event
    usage = fields(event.get("usage")) or fields(message.get("usage"))
    merged: Optional[Fields] = None
    if usage is not None:
        # The last event has the final counts; those that it omits are of the first.
        known = dict(before.usage) if before is not None and before.usage is not None else {}
        merged = {**known, **{name: count for name, count in usage.items() if count is not None}}
    return Reading(
        response_id=text(message.get("id")),
        response_model=text(message.get("model")),
        usage=merged,
        stop_reason=text((fields(event.get("delta")) or {}).get("stop_reason")) or text(message.get("stop_reason")),
        service_tier=text((usage or {}).get("service_tier")),
    )
