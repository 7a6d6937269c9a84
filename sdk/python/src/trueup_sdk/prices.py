"""The service's price table: one price for each model family (`GET /api/v1/pricing/table`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Dict, Optional

from .money import Rates, Tokens, cost_of, pico_of

_PATTERNS_OF_FAMILY = tuple(
    re.compile(pattern)
    for pattern in (
        # Paths and prefixes: `models/`, an ARN, `openai/`.
        r"^.*/",
        # Bedrock: the region of an inference profile, the maker, the version.
        r"^(?:us-gov|us|eu|apac|au|jp|in|ca|sa|global)\.",
        r"^[a-z0-9]+\.(?=[a-z])",
        r":[0-9]+(?::[0-9]+k)?\Z",
        r"-v[0-9]+\Z",
        # Google's numbers of stable versions.
        r"-00[0-9]\Z",
        # Dates, as providers write them.
        r"@(?:default|latest|[0-9]{8})\Z",
        r"-latest\Z",
        r"-20[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])\Z",
        r"-(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])\Z",
        r"-(?:2[3-9]|3[0-9])(?:0[1-9]|1[0-2])\Z",
        r"-(?:0[1-9]|1[0-2])-20[0-9]{2}\Z",
    )
)
_FINE_TUNED = re.compile(r"(ft:[^:]+):")
_MODEL_CHARS_MAX = 512
# Remembered ids; applications use few.
_REMEMBERED_MAX = 1_000


class PriceTable:
    """Prices by model family. `pricing` is that field of the table; entries that are no prices are left out."""

    def __init__(self, pricing: Any = None) -> None:
        self._rates: Dict[str, Rates] = {}
        self._known: Dict[str, Optional[Rates]] = {}
        if not isinstance(pricing, Mapping):
            return
        for family, row in pricing.items():
            if not isinstance(row, Mapping):
                continue
            given, answered = pico_of(row.get("in_per_mtok")), pico_of(row.get("out_per_mtok"))
            if given is None or answered is None:
                continue
            read, write = pico_of(row.get("cache_read")), pico_of(row.get("cache_creation"))
            self._rates[family] = Rates(
                given, given if read is None else read, given if write is None else write, answered
            )

    def cost(self, model: str, tokens: Tokens, is_batch: bool = False) -> Optional[int]:
        """Pico-dollars. None: the model has no price, which does not mean free."""
        rates = self.find(model)
        return None if rates is None else cost_of(tokens, rates, is_batch)

    def find(self, model: str) -> Optional[Rates]:
        """The rates of the model's family; None: it has no price."""
        if model in self._known:
            return self._known[model]
        found = self._find_afresh(model)
        if len(self._known) >= _REMEMBERED_MAX:
            self._known = {}
        self._known[model] = found
        return found

    def _find_afresh(self, model: str) -> Optional[Rates]:
        if len(model) > _MODEL_CHARS_MAX:
            return None
        key = model.strip()
        name = key.lower()
        fine_tuned = _FINE_TUNED.match(name)
        found = self._rates.get(key) or self._rates.get(name)
        if found is None and fine_tuned is not None:
            found = self._rates.get(fine_tuned.group(1))
        if found is not None:
            return found
        if name.startswith("ft:"):
            return None
        name = re.sub(r"^gpt-35-", "gpt-3.5-", name)
        for pattern in _PATTERNS_OF_FAMILY:
            rates = self._rates.get(name)
            if rates is not None:
                return rates
            name = pattern.sub("", name) or name
        return self._rates.get(name)
