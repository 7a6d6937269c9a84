"""One call from its request to its end: judged before, recorded once after."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from .configuration import Configuration
from .encoding import encode
from .errors import TrueupBlockedError, http_status_of, is_cancel
from .labels import context_labels, merge_labels
from .patterns import OpenVerdict, PatternTables, open_verdict
from .reporter import Reporter
from .rules import ALLOWED, CallBefore, Enforcer, Rule, Verdict, prevented_usd
from .texts import estimate_tokens, prompt_text
from .transport import message_of
from .usage import tokens_of
from .version import SDK_NAME

_PAYLOAD_CHARS_MAX = 262_144


class CallRequest(NamedTuple):
    """A request as a client makes it."""

    provider: str
    model: str
    base_url: Optional[str]
    """Address of the API: it names who bills the call."""
    body: Any
    """The parameters, only read: a mapping, or an object with fields."""
    max_output_tokens: Optional[int] = None
    client_labels: Optional[Mapping[str, Any]] = None
    """Of the observed client."""
    labels: Optional[Mapping[str, Any]] = None
    """Of this call."""
    key_prefix: Optional[str] = None
    """The first characters of the provider's key, for the policy on keys and environments."""


class Reading:
    """Facts of an answer; all of them may be absent. Adapters fill it while the answer arrives."""

    __slots__ = (
        "answer",
        "request_id",
        "response_id",
        "response_model",
        "service_tier",
        "stop_reason",
        "usage",
    )

    def __init__(
        self,
        *,
        request_id: Optional[str] = None,
        response_id: Optional[str] = None,
        response_model: Optional[str] = None,
        usage: Any = None,
        stop_reason: Optional[str] = None,
        service_tier: Optional[str] = None,
        answer: Any = None,
    ) -> None:
        self.request_id = request_id
        """The provider's id of the request, where an answer has no id."""
        self.response_id = response_id
        self.response_model = response_model
        self.usage = usage
        """The provider's usage object, unchanged: a mapping as the API spells it."""
        self.stop_reason = stop_reason
        self.service_tier = service_tier
        self.answer = answer
        """The answer, where payloads are captured."""

    def merge(self, more: Reading) -> None:
        """Adds what is known now; what was known before stays."""
        for name in Reading.__slots__:
            value = getattr(more, name)
            if value is not None:
                setattr(self, name, value)


class LaterCall(NamedTuple):
    """A call whose answer is read later: an item of a batch, or a response made in the background."""

    provider: str
    model: str
    base_url: Optional[str]
    reading: Reading
    at: int
    """Milliseconds since 1970; the same whenever the answer is read, so that it counts once."""
    status: str
    """`ok`, `error` or `cancelled`."""
    labels: Optional[Mapping[str, Any]] = None
    is_batch: bool = False
    batch_id: Optional[str] = None


class VerdictNote(NamedTuple):
    """Told to `on_verdict` about a call that a rule blocks, downgrades or observes."""

    verdict: str
    """`allowed`, `blocked` or `downgraded`."""
    rule_id: Optional[str]
    observed: List[str]
    """Rules in mode `observe` that the call breaks."""


class RecorderOptions(NamedTuple):
    """Settings of a connection that concern its calls."""

    labels: Mapping[str, Any]
    service: Optional[str]
    capture_payloads: bool
    on_verdict: Optional[Callable[[VerdictNote], Any]]
    on_error: Callable[[Exception], Any]


class _RequestBefore(CallBefore):
    """What rules ask, computed at most once and only where they do."""

    __slots__ = ("_body", "_digest", "_has_digest", "_has_tokens", "_tokens")

    def __init__(self, request: CallRequest, labels: Mapping[str, str], at: int) -> None:
        # As the class above does; a call with seven named arguments takes longer than all of this.
        self.at = at
        self.biller = f"{request.provider} {request.base_url or ''}"
        self.model = request.model
        self.team = labels.get("team")
        self.feature = labels.get("feature")
        self.session = labels.get("session") or None
        self.max_output_tokens = request.max_output_tokens
        self._body = request.body
        self._has_tokens = self._has_digest = False
        self._tokens: Optional[int] = None
        self._digest: Optional[str] = None

    def input_tokens(self) -> Optional[int]:
        if not self._has_tokens:
            self._tokens = estimate_tokens(self._body)
            self._has_tokens = True
        return self._tokens

    def prompt_digest(self) -> Optional[str]:
        if not self._has_digest:
            text = prompt_text(self._body)
            if text is not None:
                self._digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            self._has_digest = True
        return self._digest


class OpenCall:
    """A call that was let through. Its end is recorded once, whatever is told first."""

    __slots__ = ("_open", "_recorder", "before", "began", "labels", "pattern_verdict", "request", "verdict")

    def __init__(
        self,
        recorder: Recorder,
        request: CallRequest,
        before: CallBefore,
        labels: Mapping[str, str],
        verdict: Verdict,
        pattern_verdict: Optional[OpenVerdict] = None,
    ) -> None:
        self._recorder = recorder
        self.pattern_verdict = pattern_verdict
        """On the banned patterns; None: none is made."""
        self.request = request
        self.before = before
        self.labels = labels
        self.verdict = verdict
        self.began = time.monotonic()
        # Taking the last item succeeds in one thread only.
        self._open = [True]

    @property
    def new_model(self) -> Optional[str]:
        """The model to which the call goes instead of the requested one; None: it keeps its model."""
        return self.verdict.model

    @property
    def captures_payloads(self) -> bool:
        return self._recorder.captures_payloads

    def end(self, status: str, reading: Optional[Reading] = None, http_status: Optional[int] = None) -> None:
        """The call has ended: `ok`, `error` or `cancelled`. Never raises; later ends count for nothing."""
        try:
            self._open.pop()
        except IndexError:
            return
        try:
            self._recorder.end(self, status, reading or Reading(), http_status)
        except Exception as error:
            self._recorder.report_error(error)

    def fail(self, error: BaseException, reading: Optional[Reading] = None) -> None:
        """The call ended by an error: the caller's own end is `cancelled`."""
        self.end("cancelled" if is_cancel(error) else "error", reading, http_status_of(error))


class Recorder:
    """Judges calls and records them: the seam on which the adapters of the clients are built."""

    def __init__(
        self, options: RecorderOptions, enforcer: Enforcer, configuration: Configuration, reporter: Reporter
    ) -> None:
        self._options = options
        self._enforcer = enforcer
        self._configuration = configuration
        self._reporter = reporter

    @property
    def is_silent(self) -> bool:
        """Whether it neither judges nor records."""
        return False

    @property
    def captures_payloads(self) -> bool:
        return self._options.capture_payloads

    def begin(self, request: CallRequest) -> OpenCall:
        """Raises TrueupBlockedError where a rule stops the call; never anything else."""
        labels = merge_labels(self._options.labels, request.client_labels, context_labels(), request.labels)
        before = _RequestBefore(request, labels, now_ms())
        verdict = ALLOWED
        try:
            self._configuration.keep_fresh()
            verdict = self._enforcer.judge(before)
            if verdict is not ALLOWED and self._options.on_verdict is not None:
                rule_id = None if verdict.rule is None else verdict.rule.id
                self._options.on_verdict(VerdictNote(verdict.verdict, rule_id, list(verdict.observed)))
        except Exception as error:
            self.report_error(error)
        if verdict.verdict == "blocked" and verdict.rule is not None:
            prevented: Optional[str] = None
            try:
                prevented = prevented_usd(before, self._configuration.prices)
                self._reporter.add(self._blocked_event(request, before, labels, verdict.rule, prevented))
            except Exception as error:
                self.report_error(error)
            raise TrueupBlockedError(verdict.rule, request.model, prevented)
        patterns = self._patterns
        pattern_verdict = None if patterns is None else open_verdict(patterns, request.body)
        return OpenCall(self, request, before, labels, verdict, pattern_verdict)

    @property
    def _patterns(self) -> Optional[PatternTables]:
        """None: the service sees the prompts, or there is no pattern to search for."""
        return None if self._options.capture_payloads else self._configuration.patterns

    def end(self, call: OpenCall, status: str, reading: Reading, http_status: Optional[int] = None) -> None:
        """Records the end of a call that was made. Adapters use `OpenCall.end`, which does it once."""
        request, before, labels, verdict = call.request, call.before, call.labels, call.verdict
        model = verdict.model or request.model
        stop_reason = reading.stop_reason or ("unknown" if status == "ok" else status)
        cost = self._cost_of(status, reading, model)
        self._enforcer.let_through(before, status, stop_reason, cost)
        event = self._common_fields(request.provider, request.base_url, labels, before.at)
        _add_reading(event, reading)
        event["model"] = model
        event["duration_ms"] = max(0, round((time.monotonic() - call.began) * 1_000))
        event["status"] = status
        if http_status is not None:
            event["http_status"] = http_status
        event["_service"] = self._service_of(request, labels, verdict, call.pattern_verdict)
        payload = self._payload_of(request.body, reading.answer)
        if payload is not None:
            event["payload"] = payload
        self._reporter.add(event)

    def record_later(self, call: LaterCall) -> None:
        """Records a call whose answer is read later. No rule judges it: it was made before. Never raises."""
        try:
            labels = merge_labels(self._options.labels, call.labels, context_labels())
            event = self._common_fields(call.provider, call.base_url, labels, call.at)
            _add_reading(event, call.reading)
            event["model"] = call.model
            event["status"] = call.status
            if call.is_batch:
                event["is_batch"] = True
            if call.batch_id is not None:
                event["batch_id"] = call.batch_id
            event["_service"] = self._service_of(None, labels, None)
            self._reporter.add(event)
        except Exception as error:
            self.report_error(error)

    def report_error(self, error: BaseException) -> None:
        """Passes what failed in the background to the application's handler. Never raises."""
        try:
            self._options.on_error(error if isinstance(error, Exception) else Exception(message_of(error)))
        except Exception:
            # The application's own handler must not break its call.
            pass

    def _cost_of(self, status: str, reading: Reading, model: str) -> Optional[int]:
        tokens = tokens_of(reading.usage)
        if tokens is None:
            return 0 if status == "error" else None
        prices = self._configuration.prices
        answered = reading.response_model
        return prices.cost(answered if answered is not None and prices.find(answered) else model, tokens)

    def _blocked_event(
        self,
        request: CallRequest,
        before: CallBefore,
        labels: Mapping[str, str],
        rule: Rule,
        prevented: Optional[str],
    ) -> Dict[str, Any]:
        event = self._common_fields(request.provider, request.base_url, labels, before.at)
        event.update(model=request.model, request_id=_new_id(), status="blocked", blocked_rule_id=rule.id)
        for name, value in (
            ("prevented_usd", prevented),
            ("input_tokens", before.input_tokens()),
            ("output_tokens", before.max_output_tokens),
            ("payload", self._payload_of(request.body, None)),
        ):
            if value is not None:
                event[name] = value
        patterns = self._patterns
        pattern_verdict = None if patterns is None else OpenVerdict(patterns, request.body)
        event["_service"] = self._service_of(request, labels, None, pattern_verdict)
        return event

    @staticmethod
    def _common_fields(
        provider: str, base_url: Optional[str], labels: Mapping[str, str], at: int
    ) -> Dict[str, Any]:
        """Fields of an event that are absent are not sent."""
        event: Dict[str, Any] = {"provider": provider, "timestamp": _iso_time(at)}
        if base_url is not None:
            event["base_url"] = base_url
        for label, name in _LABEL_FIELDS:
            value = labels.get(label)
            if value is not None:
                event[name] = value
        return event

    def _service_of(
        self,
        request: Optional[CallRequest],
        labels: Mapping[str, str],
        verdict: Optional[Verdict],
        pattern_verdict: Optional[OpenVerdict] = None,
    ) -> Dict[str, Any]:
        service: Dict[str, Any] = {"sdk": SDK_NAME}
        if self._options.service is not None:
            service["name"] = self._options.service
        environment = labels.get("environment")
        if environment is not None:
            service["environment"] = environment
        if request is not None and request.key_prefix is not None:
            service["api_key_prefix"] = request.key_prefix
        if verdict is not None and verdict is not ALLOWED:
            if verdict.observed:
                service["observed_rules"] = list(verdict.observed)
            if verdict.verdict == "downgraded" and request is not None and verdict.rule is not None:
                service["downgraded_from"] = request.model
                service["downgraded_by"] = verdict.rule.id
        if pattern_verdict is not None:
            try:
                service["policy_verdict"] = pattern_verdict.get()
            except Exception as error:
                # A prompt that cannot be read has no verdict, and is reported all the same.
                self.report_error(error)
        return service

    def _payload_of(self, body: Any, answer: Any) -> Any:
        if not self._options.capture_payloads:
            return None
        try:
            text = encode(body)
            payload = json.loads(text)
            if not isinstance(payload, dict):
                return None
            if answer is not None:
                payload["response"] = json.loads(encode(answer))
            chars = len(text) if answer is None else len(encode(payload))
            return {"_truncated": True, "bytes": chars} if chars > _PAYLOAD_CHARS_MAX else payload
        except Exception:
            # A body that is no JSON, such as an upload.
            return None


class SilentRecorder(Recorder):
    """Of a connection without an address: it only takes the labels away that the provider must not see."""

    def __init__(self) -> None:
        """It has no parts."""

    @property
    def is_silent(self) -> bool:
        return True

    @property
    def captures_payloads(self) -> bool:
        return False

    def begin(self, request: CallRequest) -> OpenCall:
        return OpenCall(self, request, _RequestBefore(request, {}, 0), {}, ALLOWED)

    def end(
        self, call: OpenCall, status: str, reading: Reading, http_status: Optional[int] = None
    ) -> None:
        """Nothing is recorded."""

    def record_later(self, call: LaterCall) -> None:
        """Nothing is recorded."""

    def report_error(self, error: BaseException) -> None:
        """Nobody is told."""


_LABEL_FIELDS = (
    ("session", "session_id"),
    ("team", "team_id"),
    ("feature", "feature"),
    ("user", "user_id"),
    ("project", "project_id"),
)


def _add_reading(event: Dict[str, Any], reading: Reading) -> None:
    event["request_id"] = reading.response_id or reading.request_id or _new_id()
    for name in ("response_id", "response_model", "usage", "stop_reason", "service_tier"):
        value = getattr(reading, name)
        if value is not None:
            event[name] = value


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _iso_time(at: int) -> str:
    seconds, millis = divmod(at, 1_000)
    return f"{_iso_second(seconds)}.{millis:03d}Z"


@functools.lru_cache(maxsize=16)
def _iso_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}"


def _new_id() -> str:
    return f"trueup-{os.urandom(16).hex()}"
