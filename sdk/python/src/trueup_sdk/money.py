"""Exact money: pico-dollars (1e-12 USD) as integers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

_PICO_DIGITS = 12
_TOKENS_PER_RATE_UNIT = 1_000_000
_DECIMAL = re.compile(r"([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?")


def pico_of(usd: Any) -> Optional[int]:
    """Dollars as a JSON number or a decimal text; None: negative or no number."""
    if isinstance(usd, bool) or not isinstance(usd, (int, float, str)):
        return None
    match = _DECIMAL.fullmatch(str(usd).strip())
    if match is None:
        return None
    whole, fraction, exponent = match.group(1) or "", match.group(2) or "", match.group(3)
    if whole + fraction == "":
        return None
    shift = _PICO_DIGITS - len(fraction) + int(exponent or 0)
    digits = int(whole + fraction)
    return digits * 10**shift if shift >= 0 else _divide_half_even(digits, 10**-shift)


def decimal_of(pico: int) -> str:
    """The exact decimal text, without trailing zeros."""
    digits = str(pico).rjust(_PICO_DIGITS + 1, "0")
    whole, fraction = digits[:-_PICO_DIGITS], digits[-_PICO_DIGITS:].rstrip("0")
    return whole if fraction == "" else f"{whole}.{fraction}"


class Tokens(NamedTuple):
    """Tokens in disjoint classes; reasoning is part of the output."""

    input: int
    cache_read: int
    cache_write: int
    output: int


class Rates(NamedTuple):
    """USD per million tokens, in pico-dollars."""

    input: int
    cache_read: int
    cache_write: int
    output: int


def cost_of(tokens: Tokens, rates: Rates, is_batch: bool = False) -> int:
    """The cost in pico-dollars, rounded once, half to even; a batch costs half."""
    product = (
        tokens.input * rates.input
        + tokens.cache_read * rates.cache_read
        + tokens.cache_write * rates.cache_write
        + tokens.output * rates.output
    )
    return _divide_half_even(product, _TOKENS_PER_RATE_UNIT * 2 if is_batch else _TOKENS_PER_RATE_UNIT)


def _divide_half_even(numerator: int, divisor: int) -> int:
    quotient, rest = divmod(numerator, divisor)
    twice = rest * 2
    if twice < divisor:
        return quotient
    return quotient + 1 if twice > divisor or quotient % 2 == 1 else quotient
