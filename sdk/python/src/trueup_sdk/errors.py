"""Errors that end calls: a rule's, the caller's own, and those of providers."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any, Optional

from .rules import DUPLICATE_WINDOW, MAX_TOOL_CALLS, SESSION_BUDGET, TOKEN_CEILING, Rule


class TrueupBlockedError(Exception):
    """A call that a rule has stopped: it did not reach the provider."""

    def __init__(self, rule: Rule, model: str, prevented: Optional[str]) -> None:
        super().__init__(
            f"Trueup stopped this call of {model}: {_sentence_of(rule)} (rule {rule.name or rule.id})"
        )
        self.rule_id = rule.id
        self.rule_name = rule.name
        self.rule_type = rule.type
        self.prevented_usd = prevented
        """Dollars as a decimal text; None: unknown."""
        self._made_of = (rule, model, prevented)

    def __reduce__(self) -> Any:
        # Errors travel between processes.
        return (type(self), self._made_of)


def _sentence_of(rule: Rule) -> str:
    if rule.type == TOKEN_CEILING:
        return f"it has more than {rule.limit} tokens"
    if rule.type == SESSION_BUDGET:
        return "its session has spent its budget"
    if rule.type == DUPLICATE_WINDOW:
        return f"an equal call began less than {rule.limit / 1_000:g} seconds ago"
    if rule.type == MAX_TOOL_CALLS:
        return f"its session has asked for tools more than {rule.limit} times"
    return f"it goes to {rule.to_model}"


_CANCELS = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
)


def is_cancel(error: BaseException) -> bool:
    """Whether the caller ended the call itself."""
    # trio and curio have classes of their own.
    return isinstance(error, _CANCELS) or type(error).__name__ in (
        "Cancelled",
        "CancelledError",
        "TaskCancelled",
    )


def http_status_of(error: BaseException) -> Optional[int]:
    """The status with which the provider refused the call; None: the error has none."""
    response = getattr(error, "response", None)
    # boto3 has the answer as a mapping.
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None
    for status in (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None,
        getattr(response, "status_code", None),
    ):
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
            return status
    return None
