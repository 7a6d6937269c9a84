"""
The texts of a request, for the estimate of its tokens and for recognising equal calls. Nothing is kept of them.

Characters are counted in UTF-16 units, so that the JavaScript package has the same estimate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, List, Optional

# Fields that count as input, of every provider's request, as the APIs and as the Python clients spell them.
_INPUT_FIELDS = frozenset(
    (
        "messages",
        "input",
        "prompt",
        "contents",
        "content",
        "system",
        "instructions",
        "tools",
        "functions",
        "texts",
        "inputs",
        "message",
        "chatHistory",
        "chat_history",
        "preamble",
        "documents",
        "query",
        "config",
        "toolConfig",
        "tool_config",
        "inputText",
    )
)
# Of these, the ones with prompts.
_PROMPT_FIELDS = (
    "messages",
    "input",
    "prompt",
    "contents",
    "content",
    "texts",
    "inputs",
    "message",
    "inputText",
)
# No text of the request: names, and images, audio and files, which are not counted.
_NO_TEXT = frozenset(
    (
        "role",
        "type",
        "data",
        "image_url",
        "file_data",
        "bytes",
        "inlineData",
        "inline_data",
        "url",
        "imageUrl",
        "audio",
        "image",
    )
)
_PROMPT_PARTS = (
    "content",
    "parts",
    "text",
    "message",
    "output",
    "functionResponse",
    "function_response",
    "toolResult",
    "json",
)
_SYSTEM_ROLES = frozenset(("system", "developer", "SYSTEM"))
_CHARS_OF_A_TOKEN = 4
_DEPTH_MAX = 12
# Between prompts; no keyboard types it.
_SEPARATOR = "\u001f"
# What JavaScript's `trim` removes.
_BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def fields_of(value: Any) -> Optional[Mapping[str, Any]]:
    """The fields of a mapping, of a model of pydantic or of a dataclass; None: it has none."""
    # Most bodies are dictionaries, and asking for the abstract class takes longer than for the class itself.
    if value is None or type(value) is dict or isinstance(value, Mapping):
        return value
    if (
        hasattr(value, "model_fields_set")
        or hasattr(value, "__fields_set__")
        or dataclasses.is_dataclass(value)
    ):
        fields = getattr(value, "__dict__", None)
        if isinstance(fields, dict):
            return fields
    return None


def estimate_tokens(body: Any) -> Optional[int]:
    """About a quarter of the characters; None: the request has no text."""
    fields = fields_of(body)
    if fields is None:
        return None
    chars = 0
    for name, value in fields.items():
        if name in _INPUT_FIELDS:
            chars += _chars_of(value, 0)
    return None if chars == 0 else -(-chars // _CHARS_OF_A_TOKEN)


def _chars_of(value: Any, depth: int) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-16-le", "surrogatepass")) // 2
    if value is None or isinstance(value, bool):
        return 0
    # Embeddings take tokens instead of texts.
    if isinstance(value, (int, float)):
        return _CHARS_OF_A_TOKEN
    if depth > _DEPTH_MAX:
        return 0
    chars = 0
    if isinstance(value, (list, tuple)):
        for item in value:
            chars += _chars_of(item, depth + 1)
        return chars
    fields = fields_of(value)
    if fields is None:
        return 0
    for name, inner in fields.items():
        if name not in _NO_TEXT and not isinstance(inner, (int, float)):
            chars += _chars_of(inner, depth + 1)
    return chars


def prompt_text(body: Any) -> Optional[str]:
    """The prompts in order, without the instructions of the application; None: there is none."""
    fields = fields_of(body)
    if fields is None:
        return None
    found: List[str] = []
    for name in _PROMPT_FIELDS:
        _collect(fields.get(name), found, 0)
    return _SEPARATOR.join(found) if found else None


def _collect(value: Any, found: List[str], depth: int) -> None:
    if isinstance(value, str):
        if value.strip(_BLANKS) != "":
            found.append(value)
        return
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        found.append(str(int(value)) if isinstance(value, float) and value.is_integer() else str(value))
        return
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found, depth + 1)
        return
    fields = fields_of(value)
    if fields is None:
        return
    role = fields.get("role")
    if isinstance(role, str) and role in _SYSTEM_ROLES:
        return
    for name in _PROMPT_PARTS:
        _collect(fields.get(name), found, depth + 1)
