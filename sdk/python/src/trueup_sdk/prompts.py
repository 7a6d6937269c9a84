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
        text = fields.get("text")
        if text is None:
            text = fields.get("content")
        if kind.endswith("text") and isinstance(text, str):
            _add(text, found)
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
    return is_known


def _collect_items(items: Sequence[Any], found: _Found, depth: int) -> bool:
    is_known = len(items) == 0
    for item in items:
        if isinstance(item, str):
            _add(item, found)
            is_known = True
        elif _collect_known(item, found, depth):
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
