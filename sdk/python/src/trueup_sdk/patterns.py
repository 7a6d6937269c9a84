"""
Searches prompts for the organization's banned patterns in this process, so that the verdict alone leaves it. The service
has compiled the patterns to tables: a search is one look-up for each character and table, whatever the patterns are.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .process import renew_after_fork
from .prompts import prompts_of

# Prompts of one call that are searched.
_PROMPTS_MAX = 1_000
_ALPHABET_SIZE = 98
_STATES_MAX = 65_536
# Searched prompts whose result is remembered by a digest: each call of a conversation repeats those before.
_REMEMBERED_MAX = 10_000

_Match = Optional[Tuple[int, int]]
"""The pattern and the place of its match."""


class _Automaton(NamedTuple):
    columns: bytes
    """The column of each character code."""
    begin: List[Any]
    """
    The row of the first state. A row has the next row by column, then the pattern of which a match begins here, then
    the same at the beginning of the prompt; -1: none.
    """


class PatternTables:
    """The tables of `GET /api/v1/enforcement/patterns`. Raises ValueError for tables that cannot be used."""

    def __init__(self, served: Mapping[str, Any]) -> None:
        version, patterns, automata = served.get("version"), served.get("patterns"), served.get("automata")
        if not isinstance(version, str) or not isinstance(patterns, list) or not isinstance(automata, list):
            raise ValueError("the patterns have an unknown form")
        self.version = version
        self._ids = {one["index"]: one["id"] for one in patterns}
        self._automata = [_read_automaton(automaton) for automaton in automata]
        self._is_complete = not served.get("not_evaluated")
        self._remembered: Dict[bytes, _Match] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no pattern to search for, nor one that cannot be."""
        return not self._automata and self._is_complete

    def judge(self, body: Any) -> Dict[str, Any]:
        """The verdict for the service: the first prompt that a pattern matches, and of its patterns the first."""
        prompts = prompts_of(body)
        for prompt in prompts[:_PROMPTS_MAX]:
            match = self._search_once(prompt)
            if match is not None:
                index, offset = match
                return {
                    "version": self.version,
                    "pattern_index": index,
                    "pattern_id": self._ids.get(index, ""),
                    "match_offset": offset,
                    "complete": self._is_complete,
                }
        is_complete = self._is_complete and len(prompts) <= _PROMPTS_MAX
        return {"version": self.version, "pattern_index": None, "complete": is_complete}

    def _search_once(self, text: str) -> _Match:
        key = hashlib.blake2b(text.encode("ascii"), digest_size=16).digest()
        if key in self._remembered:
            return self._remembered[key]
        match = self.search(text)
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered = {}
        self._remembered[key] = match
        return match

    def search(self, text: str) -> _Match:
        """The first pattern in the searched part of a prompt, and its place; None: none."""
        best: Optional[int] = None
        offset = 0
        # Read from its end, which finds the beginnings of matches.
        codes = text[::-1].encode("ascii")
        for columns, row in self._automata:
            at = len(codes)
            for column in codes.translate(columns):
                row = row[column]
                begun = row[-2]
                if begun >= 0 and (best is None or begun <= best):
                    best, offset = begun, at
                at -= 1
            begun = row[-1]
            if begun >= 0 and (best is None or begun <= best):
                best, offset = begun, 0
        return None if best is None else (best, offset)


def _read_automaton(served: Any) -> _Automaton:
    """Checks every number, so that a search cannot leave the tables."""
    given = served if isinstance(served, Mapping) else {}
    classes, following = _numbers(given.get("classes")), _numbers(given.get("next"))
    begins, begins_first = _numbers(given.get("begins")), _numbers(given.get("begins_first"))
    states = len(begins)
    width = len(following) // states if states else 0
    is_sound = (
        0 < states <= _STATES_MAX
        and len(classes) == _ALPHABET_SIZE
        and len(begins_first) == states
        and 0 < width <= _ALPHABET_SIZE
        and width * states == len(following)
        and all(0 <= column < width for column in classes)
        and all(0 <= state < states for state in following)
    )
    if not is_sound:
        raise ValueError("a table of patterns has an unknown form")
    columns = bytearray(256)
    # Tab, line feed and carriage return, then the printable characters.
    for place, column in enumerate(classes):
        columns[place + 29 if place >= 3 else (9, 10, 13)[place]] = column
    rows: List[List[Any]] = [[] for _ in range(states)]
    for state, row in enumerate(rows):
        row.extend(rows[following[state * width + column]] for column in range(width))
        row.extend((begins[state], begins_first[state]))
    return _Automaton(bytes(columns), rows[0])


def _numbers(value: Any) -> List[int]:
    is_sound = isinstance(value, list) and all(type(item) is int for item in value)
    return value if is_sound else []


class OpenVerdict:
    """The verdict on one call, which a thread makes while the provider works, or at the latest the call's end."""

    __slots__ = ("_body", "_tables", "_verdict")

    def __init__(self, tables: PatternTables, body: Any) -> None:
        self._tables = tables
        self._body = body
        self._verdict: Optional[Dict[str, Any]] = None

    def get(self) -> Dict[str, Any]:
        """Two threads may make it at once, with the same result."""
        if self._verdict is None:
            self._verdict = self._tables.judge(self._body)
        return self._verdict


class _Judge:
    """The thread that makes verdicts; it starts with the first one."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[OpenVerdict] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def take(self, verdict: OpenVerdict) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="trueup-patterns", daemon=True)
                    self._thread.start()
        self._waiting.put(verdict)

    def _run(self) -> None:
        waiting = self._waiting
        while True:
            verdict = waiting.get()
            try:
                verdict.get()
            except Exception:
                # The end of the call meets the same error and reports it.
                pass
            # Otherwise the last call's prompts stay until the next call.
            del verdict


_judge = _Judge()
renew_after_fork(_judge)


def open_verdict(tables: PatternTables, body: Any) -> OpenVerdict:
    """Begins the verdict on a call."""
    verdict = OpenVerdict(tables, body)
    try:
        _judge.take(verdict)
    except RuntimeError:
        # The interpreter is ending: the call's end makes it.
        pass
    return verdict
