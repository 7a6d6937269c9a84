"""
The prompts of a request as the service reads them from a captured payload, so that a verdict of this package is the
service's own. sdk/patternCases.json has the cases of both.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, Sequence

from .texts import fields_of

# Characters of a prompt that are searched, once foreign ones are stripped.
_SCANNED_CHARS = 512
# Fields of a request with prompts.
_PROMPT_FIELDS = frozenset(
    ("prompt", "input", "messages", "contents", "texts", "inputs", "message", "inputText")
)
# Fields of messages and parts with more of them, or with text.
_CONTAINERS = ("messages", "input", "prompt", "contents", "parts", "content", "text", "message")
# Types of parts with a tool's result: of Anthropic, of Responses, of OpenTelemetry and of the AI SDK.
_RESULT_TYPES = frozenset(
    (
        "tool_result",
        "function_call_output",
        "custom_tool_call_output",
        "tool_call_response",
        "tool-result",
    )
)
# Their fields with the result.
_RESULT_FIELDS = ("content", "output", "result", "response")
# Parts without a type that hold a tool's result, of Bedrock and of Google, and the field with the result.
_RESULT_HOLDERS = (
    ("toolResult", "content"),
    ("functionResponse", "response"),
    ("function_response", "response"),
)
_SYSTEM_ROLES = frozenset(("system", "developer"))
_DEPTH_MAX = 8
_FOREIGN = re.compile(r"[^\t\n\r\x20-\x7e]")
# Whether anything is left of a text without foreign characters and white space.
_VISIBLE = re.compile(r"[\x21-\x7e]")
# A text whose first visible character begins an object or a list of JSON.
_LIKE_JSON = re.compile(r"[^\x21-\x7e]*[{\[]")

# The texts in their order, each once.
_Found = Dict[str, None]


def prompts_of(body: Any) -> List[str]:
    """The searched part of each text, without the application's instructions, stripped, each once."""
    found: _Found = {}
    fields = fields_of(body)
    if fields is not None:
        for name, value in fields.items():
            if name in _PROMPT_FIELDS:
                _collect_content(value, found, 0)
    return list(found)


def _add(text: str, found: _Found) -> None:
    if _VISIBLE.search(text) is None:
        return
    head = text[:_SCANNED_CHARS]
    # Without foreign characters the head is the searched part, and a long prompt is not read to its end.
    found[_FOREIGN.sub("", text)[:_SCANNED_CHARS] if _FOREIGN.search(head) else head] = None


def _collect_content(value: Any, found: _Found, depth: int) -> None:
    """Text, the JSON text of a value, a message, or a list of them."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, str):
        parsed = _parse(_FOREIGN.sub("", value)) if _LIKE_JSON.match(value) else None
        if parsed is None or not _collect_known(parsed, found, depth + 1):
            _add(value, found)
    else:
        _collect_known(value, found, depth + 1)


def _collect_known(value: Any, found: _Found, depth: int) -> bool:
    """Whether the form is known. JSON of another form is one prompt as it is."""
    if depth > _DEPTH_MAX:
        return False
    if isinstance(value, (list, tuple)):
        return _collect_items(value, found, depth)
    fields = fields_of(value)
    return fields is not None and _collect_fields(fields, found, depth)


def _collect_fields(fields: Mapping[str, Any], found: _Found, depth: int) -> bool:
    role, kind = fields.get("role"), fields.get("type")
    if isinstance(role, str) and role.lower() in _SYSTEM_ROLES:
        return True
    if isinstance(kind, str) and kind != "message":
        _collect_part(fields, kind, found)
        return True
    is_known = False
    for name in _CONTAINERS:
        inner = fields.get(name)
        if inner is None:
            continue
        if isinstance(inner, str) and name != "messages":
            _add(inner, found)
        else:
            _collect_content(inner, found, depth + 1)
        is_known = True
    for name, field in _RESULT_HOLDERS:
        holder = fields_of(fields.get(name))
        if holder is None:
            continue
        _collect_result(holder.get(field), found, 0)
        is_known = True
    return is_known


def _collect_part(part: Mapping[str, Any], kind: str, found: _Found) -> None:
    if kind in _RESULT_TYPES:
        for name in _RESULT_FIELDS:
            _collect_result(part.get(name), found, 0)
        return
    text = _first_of(part, "text", "content")
    if kind.endswith("text") and isinstance(text, str):
        _add(text, found)


def _collect_result(value: Any, found: _Found, depth: int) -> None:
    """A tool's result: a text, parts with texts, or JSON, whose texts are one prompt."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, str):
        _add(value, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect_result(item, found, depth + 1)
    else:
        part = fields_of(value)
        if part is not None:
            _collect_result_part(part, found, depth)


def _collect_result_part(part: Mapping[str, Any], found: _Found, depth: int) -> None:
    kind = part.get("type")
    if not isinstance(kind, str):
        if not _is_media(part):
            _add("\n".join(_texts_of(part, 0)), found)
        return
    text = _first_of(part, "text", "content", "value")
    if kind.endswith("json"):
        _add("\n".join(_texts_of(part.get("value"), 0)), found)
    elif isinstance(text, (list, tuple)):
        _collect_result(text, found, depth + 1)
    elif kind.endswith("text") and isinstance(text, str):
        _add(text, found)


def _first_of(part: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if part.get(name) is not None:
            return part[name]
    return None


def _is_media(part: Mapping[str, Any]) -> bool:
    """Whether it is one of Bedrock's images, videos and documents in results."""
    media = (fields_of(part.get(name)) for name in ("image", "video", "document"))
    return any(one is not None and "source" in one for one in media)


def _texts_of(value: Any, depth: int) -> List[str]:
    """All texts of a JSON value, without the names of its fields."""
    if isinstance(value, str):
        return [value]
    if depth > _DEPTH_MAX:
        return []
    if not isinstance(value, (list, tuple)):
        fields = fields_of(value)
        if fields is None:
            return []
        value = list(fields.values())
    return [text for inner in value for text in _texts_of(inner, depth + 1)]


def _collect_items(items: Sequence[Any], found: _Found, depth: int) -> bool:
    is_known = len(items) == 0
    for item in items:
        if isinstance(item, str):
            _add(item, found)
            is_known = True
        elif _collect_known(item, found, depth + 1):
            is_known = True
    return is_known


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _parse(text: str) -> Any:
    """None: it is no JSON after all."""
    try:
        # A long integer is no error, and its value does not matter.
        return json.loads(text, parse_constant=_refuse, parse_int=float)
    except (ValueError, RecursionError):
        return None
