"""Judges calls by the organization's rules, with a memory of the calls of this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from .money import Tokens, decimal_of, pico_of
from .prices import PriceTable

TOKEN_CEILING = "token_ceiling"
SESSION_BUDGET = "session_budget_usd"
DUPLICATE_WINDOW = "duplicate_window_seconds"
MAX_TOOL_CALLS = "max_tool_calls"
MODEL_DOWNGRADE = "model_downgrade"

_TOOL_STOPS = frozenset(("tool_use", "tool_calls", "function_call"))
# Sessions or equal calls that one rule remembers; the ones unused for longest are forgotten first.
_MEMORY_MAX = 10_000
# Scopes whose rules are remembered; applications use few.
_SCOPES_MAX = 1_000
# Sessions without a call for so long are forgotten, milliseconds.
_SESSION_IDLE_MS = 86_400_000


class Rule(NamedTuple):
    """A rule as `GET /api/v1/enforcement/config` serves it."""

    id: str
    name: Optional[str]
    type: str
    mode: str
    """`block` or `observe`."""
    team: Optional[str]
    feature: Optional[str]
    model: Optional[str]
    limit: Union[int, float]
    """By type: tokens, pico-dollars, milliseconds or calls for tools."""
    to_model: Optional[str]


class CallBefore:
    """Facts of a call before it is made. Subclasses compute the last two only where a rule needs them."""

    __slots__ = ("at", "biller", "feature", "max_output_tokens", "model", "session", "team")

    def __init__(
        self,
        *,
        at: int,
        biller: str,
        model: str,
        team: Optional[str],
        feature: Optional[str],
        session: Optional[str],
        max_output_tokens: Optional[int],
    ) -> None:
        self.at = at
        """Milliseconds since 1970."""
        self.biller = biller
        self.model = model
        """The requested model."""
        self.team = team
        self.feature = feature
        self.session = session
        self.max_output_tokens = max_output_tokens
        """None: the request has no limit."""

    def input_tokens(self) -> Optional[int]:
        """None: unknown."""
        raise NotImplementedError

    def prompt_digest(self) -> Optional[str]:
        """A digest of the prompts in order; None: there is none."""
        raise NotImplementedError


class Verdict(NamedTuple):
    """The judgement of all rules together."""

    verdict: str
    """`allowed`, `blocked` or `downgraded`."""
    rule: Optional[Rule] = None
    """The rule that blocks or downgrades."""
    model: Optional[str] = None
    """The model to which a downgraded call goes."""
    observed: Tuple[str, ...] = ()
    """Rules in mode `observe` that the call breaks, unless a rule blocks it."""


ALLOWED = Verdict("allowed")


def read_rule(given: Any) -> Optional[Rule]:
    """None: a rule of an unknown type, or one that cannot be read."""
    rule = _mapping(given)
    config, scope = _mapping(rule.get("config")), _mapping(rule.get("scope"))
    rule_id, kind, mode = rule.get("id"), rule.get("type"), rule.get("mode")
    if not isinstance(rule_id, str) or mode not in ("block", "observe"):
        return None
    model = _text(scope.get("model"))
    to_model: Optional[str] = None
    limit: Optional[Union[int, float]] = None
    if kind == TOKEN_CEILING:
        limit = _number(config.get("max_tokens"))
    elif kind == SESSION_BUDGET:
        limit = pico_of(config.get("budget_usd"))
    elif kind == DUPLICATE_WINDOW:
        seconds = _number(config.get("window_seconds"))
        limit = None if seconds is None else seconds * 1_000
    elif kind == MAX_TOOL_CALLS:
        limit = _number(config.get("max_tool_calls"))
    elif kind == MODEL_DOWNGRADE:
        to_model = _text(config.get("to_model"))
        limit = None if to_model is None or model is None else 0
    if limit is None:
        return None
    team, feature = _text(scope.get("team_id")), _text(scope.get("feature"))
    return Rule(rule_id, _text(rule.get("name")), str(kind), str(mode), team, feature, model, limit, to_model)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _number(value: Any) -> Optional[Union[int, float]]:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


class _Memory:
    """By session or by equal call, in the order of last use."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: Dict[str, Tuple[int, int]] = {}

    def value(self, key: str) -> int:
        entry = self._entries.get(key)
        return 0 if entry is None else entry[0]

    def at(self, key: str) -> Optional[int]:
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def note(self, key: str, value: int, at: int) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (value, at)
        if len(self._entries) > _MEMORY_MAX:
            self._entries.pop(next(iter(self._entries)), None)

    def forget_before(self, at: float) -> None:
        """Forgets what began before; looks at one entry more than it forgets."""
        entries = self._entries
        while entries:
            first = next(iter(entries))
            if entries[first][1] >= at:
                return
            del entries[first]


class _Standing(NamedTuple):
    rule: Rule
    text: str
    """Equal texts judge alike, so that the memory survives a change of other rules."""
    memory: _Memory


# Rules that note the calls that are made.
_NOTING = frozenset((SESSION_BUDGET, MAX_TOOL_CALLS, DUPLICATE_WINDOW))


class _InScope(NamedTuple):
    """The rules of one scope of calls, in their order."""

    judging: Tuple[_Standing, ...]
    noting: Tuple[_Standing, ...]


class Enforcer:
    """The rules of now, with what each remembers. Usable from many threads."""

    def __init__(self) -> None:
        self._standing: List[_Standing] = []
        # By team, feature and model.
        self._in_scope: Dict[Tuple[Optional[str], Optional[str], str], _InScope] = {}
        self._lock = threading.RLock()

    def renew_lock(self) -> None:
        """For a forked process: a thread that does not exist there may have held the lock."""
        self._lock = threading.RLock()

    @property
    def rules(self) -> List[Rule]:
        return [one.rule for one in self._standing]

    def set_rules(self, served: Sequence[Any]) -> None:
        """The rules of the configuration in their order; unknown ones are ignored."""
        with self._lock:
            before = {one.text: one.memory for one in self._standing}
            standing: List[_Standing] = []
            for given in served:
                rule = read_rule(given)
                if rule is not None:
                    text = json.dumps(rule._replace(mode="", name=""))
                    standing.append(_Standing(rule, text, before.get(text) or _Memory()))
            self._standing = standing
            self._in_scope = {}

    def _rules_for(self, call: CallBefore) -> _InScope:
        """With the lock held."""
        scope = (call.team, call.feature, call.model)
        found = self._in_scope.get(scope)
        if found is None:
            judging = tuple(one for one in self._standing if _is_in_scope(one.rule, call))
            found = _InScope(judging, tuple(one for one in judging if one.rule.type in _NOTING))
            if len(self._in_scope) >= _SCOPES_MAX:
                self._in_scope = {}
            self._in_scope[scope] = found
        return found

    def judge(self, call: CallBefore) -> Verdict:
        """Applies the rules of the call's scope, in their order."""
        if not self._standing:
            return ALLOWED
        observed: List[str] = []
        downgrade: Optional[Rule] = None
        with self._lock:
            for rule, _, memory in self._rules_for(call).judging:
                if rule.type == MODEL_DOWNGRADE:
                    if rule.mode == "observe":
                        observed.append(rule.id)
                    elif downgrade is None:
                        downgrade = rule
                elif _breaks(rule, memory, call):
                    if rule.mode == "block":
                        return Verdict("blocked", rule)
                    observed.append(rule.id)
        if downgrade is not None:
            return Verdict("downgraded", downgrade, downgrade.to_model, tuple(observed))
        return Verdict("allowed", observed=tuple(observed)) if observed else ALLOWED

    def let_through(self, call: CallBefore, status: str, stop_reason: str, cost: Optional[int]) -> None:
        """Notes the end of a call that was made; `cost` is in pico-dollars, None: unknown."""
        if not self._standing:
            return
        with self._lock:
            for rule, _, memory in self._rules_for(call).noting:
                if rule.type == SESSION_BUDGET:
                    if call.session is not None and cost is not None and cost > 0:
                        _add_to(memory, call.session, cost, call.at)
                elif rule.type == MAX_TOOL_CALLS:
                    if call.session is not None and stop_reason in _TOOL_STOPS:
                        _add_to(memory, call.session, 1, call.at)
                elif rule.type == DUPLICATE_WINDOW and status == "ok":
                    key = _key_of(call)
                    if key is not None:
                        began = memory.at(key)
                        if began is None or call.at > began:
                            memory.note(key, 0, call.at)


def _add_to(memory: _Memory, session: str, more: int, at: int) -> None:
    memory.forget_before(at - _SESSION_IDLE_MS)
    memory.note(session, memory.value(session) + more, at)


def _breaks(rule: Rule, memory: _Memory, call: CallBefore) -> bool:
    if rule.type == TOKEN_CEILING:
        given = call.input_tokens()
        return given is not None and given + (call.max_output_tokens or 0) > rule.limit
    if rule.type == SESSION_BUDGET:
        return call.session is not None and memory.value(call.session) >= rule.limit
    if rule.type == MAX_TOOL_CALLS:
        return call.session is not None and memory.value(call.session) > rule.limit
    memory.forget_before(call.at - rule.limit)
    key = _key_of(call)
    began = None if key is None else memory.at(key)
    return began is not None and call.at - began <= rule.limit


def _key_of(call: CallBefore) -> Optional[str]:
    """The text that equal calls share."""
    digest = call.prompt_digest()
    given = None if digest is None else call.input_tokens()
    return None if given is None else f"{digest} {given} {call.biller} {call.model}"


def _is_in_scope(rule: Rule, call: CallBefore) -> bool:
    return (
        (rule.team is None or rule.team == call.team)
        and (rule.feature is None or rule.feature == call.feature)
        and (rule.model is None or rule.model == call.model)
    )


def prevented_usd(call: CallBefore, prices: PriceTable) -> Optional[str]:
    """The cost that a blocked call would have had; None: unknown tokens or a model without a price."""
    given = call.input_tokens()
    if given is None:
        return None
    pico = prices.cost(call.model, Tokens(given, 0, 0, call.max_output_tokens or 0))
    return None if pico is None else decimal_of(pico)
