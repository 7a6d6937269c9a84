"""Keeps the rules, the prices and the banned patterns fresh. Without an answer the last known ones hold."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any, Callable, Dict, Optional

from .patterns import PatternTables
from .prices import PriceTable
from .rules import Enforcer
from .transport import Request, Response, Transport, message_of, retry_after_of
from .version import SDK_NAME

_CONFIG_PATH = "/api/v1/enforcement/config"
_PRICES_PATH = "/api/v1/pricing/table"
_PATTERNS_PATH = "/api/v1/enforcement/patterns"
_POLL_SECONDS = 60.0
_POLL_SECONDS_MIN = 5.0
# Processes must not poll at once: up to this share of the interval is added.
_POLL_JITTER = 0.1
_PRICES_SECONDS = 3_600


class Configuration:
    """Polls the service in a thread, which starts with the first use and again in a forked process."""

    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        request_timeout_seconds: float,
        on_error: Callable[[Exception], Any],
        enforcer: Enforcer,
        transport: Transport,
        has_rules: bool,
        has_patterns: bool,
    ) -> None:
        """`has_rules`: rules and prices are fetched. `has_patterns`: banned patterns are."""
        self.prices = PriceTable()
        self.patterns: Optional[PatternTables] = None
        """None: not wanted, not fetched yet, or the organization has none."""
        self._has_rules = has_rules
        self._has_patterns = has_patterns
        self._url = url
        self._api_key = api_key
        self._timeout_seconds = request_timeout_seconds
        self._on_error = on_error
        self._enforcer = enforcer
        self._transport = transport
        self._is_enabled = has_rules or has_patterns
        self._etags: Dict[str, str] = {}
        self._prices_at: Optional[float] = None
        self._is_loaded = False
        self._was_reached = True
        self._due = 0.0
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._thread: Optional[threading.Thread] = None
        # Loads are numbered; one is under way where more have begun than ended.
        self._begun = self._ended = 0
        self._is_wanted = False
        self._outcome = False

    def after_fork(self) -> None:
        """In a forked process: rules and prices stay, and the next call starts a thread."""
        self._start_afresh()
        self._enforcer.renew_lock()

    def keep_fresh(self) -> None:
        """Starts the thread where there is none. Never waits."""
        if self._thread is None and self._is_enabled:
            with self._changed:
                self._has_thread()

    def _has_thread(self) -> bool:
        if not self._is_enabled:
            return False
        if self._thread is not None and self._thread.is_alive():
            return True
        thread = threading.Thread(target=self._run, args=(self._changed,), name="trueup-rules", daemon=True)
        self._thread = thread
        try:
            thread.start()
            return True
        except RuntimeError:
            # The interpreter is ending: no thread starts any more.
            return False

    def _run(self, changed: threading.Condition) -> None:
        while True:
            with changed:
                while self._is_enabled and changed is self._changed and not self._is_wanted:
                    left = self._due - time.monotonic()
                    if left <= 0:
                        break
                    changed.wait(left)
                if not self._is_enabled or changed is not self._changed:
                    return
                self._is_wanted = False
                self._begun += 1
            outcome = self._load()
            with changed:
                self._ended, self._outcome = self._begun, outcome
                self._is_loaded = self._is_loaded or outcome
                changed.notify_all()

    def refresh(self, timeout_seconds: Optional[float] = None) -> bool:
        """Asks for the rules now. True: the service has answered with them within the time."""
        limit = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + limit
        with self._changed:
            if not self._has_thread():
                return False
            awaited = self._begun
            if self._begun == self._ended:
                self._is_wanted = True
                awaited += 1
                self._changed.notify_all()
            while self._ended < awaited:
                left = deadline - time.monotonic()
                if left <= 0 or not self._is_enabled:
                    return False
                self._changed.wait(left)
            return self._outcome

    def ready(self, timeout_seconds: float) -> bool:
        """True: the first rules are there, within the time."""
        with self._changed:
            return self._is_loaded or self.refresh(timeout_seconds)

    def close(self) -> None:
        """Ends the thread; the rules stay as they are."""
        with self._changed:
            self._is_enabled = False
            self._changed.notify_all()

    def _load(self) -> bool:
        poll_seconds = _POLL_SECONDS
        is_loaded = False
        try:
            answers = []
            if self._has_rules:
                answers.append(self._load_rules())
            if self._has_patterns:
                answers.append(self._load_patterns())
            for answer in answers:
                asked = _object_of(answer).get("poll_seconds")
                if isinstance(asked, (int, float)) and asked > 0:
                    poll_seconds = max(float(asked), _POLL_SECONDS_MIN)
                poll_seconds = max(poll_seconds, retry_after_of(answer) or 0.0)
            refused = [answer.status for answer in answers if answer.status not in (200, 304)]
            is_loaded = not refused
            if is_loaded:
                if self._has_rules:
                    self._load_prices_if_due()
                self._was_reached = True
            else:
                self._tell(f"rules are not refreshed: the service answers {refused[0]}")
        except Exception as error:
            self._tell(f"rules are not refreshed: {message_of(error)}")
        self._due = time.monotonic() + poll_seconds * (1 + random.random() * _POLL_JITTER)
        return is_loaded

    def _load_rules(self) -> Response:
        answer = self._get(_CONFIG_PATH, True)
        rules = _object_of(answer).get("rules")
        if isinstance(rules, list):
            self._enforcer.set_rules(rules)
            self._note_etag(_CONFIG_PATH, answer)
        return answer

    def _load_patterns(self) -> Response:
        answer = self._get(_PATTERNS_PATH, True)
        if answer.status == 200:
            tables = PatternTables(_object_of(answer))
            self.patterns = None if tables.is_empty else tables
            self._note_etag(_PATTERNS_PATH, answer)
        return answer

    def _load_prices_if_due(self) -> None:
        now = time.monotonic()
        if self._prices_at is not None and now - self._prices_at < _PRICES_SECONDS:
            return
        table = self._get(_PRICES_PATH, False)
        if table.status == 200:
            self.prices = PriceTable(_object_of(table).get("pricing"))
            self._note_etag(_PRICES_PATH, table)
        if table.status in (200, 304):
            self._prices_at = now

    def _get(self, path: str, is_authorized: bool) -> Response:
        headers = {"user-agent": SDK_NAME}
        if is_authorized:
            headers["authorization"] = f"Bearer {self._api_key}"
        if path in self._etags:
            headers["if-none-match"] = self._etags[path]
        return self._transport(Request("GET", self._url + path, headers, None, self._timeout_seconds))

    def _note_etag(self, path: str, response: Response) -> None:
        etag = response.headers.get("etag")
        if etag is None:
            self._etags.pop(path, None)
        else:
            self._etags[path] = etag

    def _tell(self, message: str) -> None:
        """Once for each time that the service is lost."""
        if not self._was_reached:
            return
        self._was_reached = False
        try:
            self._on_error(RuntimeError(message))
        except Exception:
            # The application's own handler must not break its call.
            pass


def _object_of(response: Response) -> Dict[str, Any]:
    """The JSON object of an answer with status 200; empty where there is none."""
    body = json.loads(response.body) if response.status == 200 else None
    return body if isinstance(body, dict) else {}
