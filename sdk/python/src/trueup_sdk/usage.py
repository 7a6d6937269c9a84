"""Reads a provider's usage object, for session budgets. The service gets the object itself."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .money import Tokens
from .texts import fields_of

_COUNT_MAX = 2**53 - 1


def _count(usage: Mapping[str, Any], *names: str) -> Optional[int]:
    for name in names:
        value = usage.get(name)
        if value is None:
            continue
        if type(value) is int and 0 <= value <= _COUNT_MAX:
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX:
            return value
    return None


def _inner(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        fields = fields_of(usage.get(name))
        if fields is not None:
            return fields
    return {}


def tokens_of(usage: Any) -> Optional[Tokens]:
    """None: no count is known."""
    given = fields_of(usage)
    if given is None:
        return None
    tokens: Optional[Tokens] = None
    if not _NAMES_OF_GOOGLE.isdisjoint(given):
        tokens = _google_tokens(given)
    if tokens is None and not _NAMES_OF_COHERE.isdisjoint(given):
        tokens = _cohere_tokens(given)
    return _common_tokens(given) if tokens is None else tokens


# Without any of them, the usage is not of this form.
_NAMES_OF_GOOGLE = frozenset(
    ("promptTokenCount", "prompt_token_count", "candidatesTokenCount", "candidates_token_count")
)
_NAMES_OF_COHERE = frozenset(("billedUnits", "billed_units", "tokens"))


def _google_tokens(usage: Mapping[str, Any]) -> Optional[Tokens]:
    """Thoughts and tool prompts are counted beside candidates and prompt; cached content is part of the prompt."""
    prompt = _count(usage, "promptTokenCount", "prompt_token_count")
    candidates = _count(usage, "candidatesTokenCount", "candidates_token_count")
    if prompt is None and candidates is None:
        return None
    cache_read = _count(usage, "cachedContentTokenCount", "cached_content_token_count") or 0
    tools = _count(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count") or 0
    thoughts = _count(usage, "thoughtsTokenCount", "thoughts_token_count") or 0
    return _disjoint((prompt or 0) + tools, cache_read, 0, (candidates or 0) + thoughts, True)


def _cohere_tokens(usage: Mapping[str, Any]) -> Optional[Tokens]:
    for units in (_inner(usage, "billedUnits", "billed_units"), _inner(usage, "tokens")):
        given = _count(units, "inputTokens", "input_tokens")
        answered = _count(units, "outputTokens", "output_tokens")
        if given is not None or answered is not None:
            return _disjoint(given or 0, 0, 0, answered or 0, True)
    return None


def _common_tokens(usage: Mapping[str, Any]) -> Optional[Tokens]:
    """OpenAI and its kin include cached tokens in the input; Anthropic and Bedrock's Converse report them beside it."""
    details = _inner(
        usage, "prompt_tokens_details", "promptTokensDetails", "input_tokens_details", "input_token_details"
    )
    given = _count(usage, "prompt_tokens", "promptTokens", "input_tokens", "inputTokens")
    answered = _count(usage, "completion_tokens", "completionTokens", "output_tokens", "outputTokens") or 0
    if given is None:
        return None
    beside_read = _count(usage, "cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
    beside_write = _count(
        usage, "cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount"
    )
    if beside_read is not None or beside_write is not None:
        return _disjoint(given, beside_read or 0, beside_write or 0, answered, False)
    read = _count(details, "cached_tokens", "cachedTokens")
    if read is None:
        read = _count(usage, "prompt_cache_hit_tokens") or 0
    write = _count(details, "cache_write_tokens", "cache_creation_tokens") or 0
    return _disjoint(given, read, write, answered, True)


def _disjoint(given: int, cache_read: int, cache_write: int, output: int, is_whole: bool) -> Tokens:
    cached = cache_read + cache_write
    # An input that is smaller than its cached part cannot contain it.
    is_inclusive = is_whole and given >= cached
    return Tokens(given - cached if is_inclusive else given, cache_read, cache_write, output)
