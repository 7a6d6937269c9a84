"""Connections to the service, and the clients that they observe."""

from __future__ import annotations

import asyncio
import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, Type, TypeVar, TypedDict, Union

from .calls import Recorder, RecorderOptions, SilentRecorder, VerdictNote
from .clients.attach import attach
from .configuration import Configuration
from .labels import NAMES, Labels
from .process import flush_at_end, forget, renew_after_fork
from .reporter import Reporter, ReporterOptions, ReporterStats
from .rules import Enforcer
from .spool import Spool
from .transport import Transport, message_of, send

if TYPE_CHECKING:
    from typing_extensions import Unpack

Client = TypeVar("Client")

_QUEUE_BYTES_MAX = 12_000_000
_SPOOL_BYTES_MAX = 104_857_600
_SILENT = SilentRecorder()
_FLUSH_INTERVAL_SECONDS = 1.0
_REQUEST_TIMEOUT_SECONDS = 10.0
_EXIT_TIMEOUT_SECONDS = 2.0
# Longest first load of the rules that `ready` waits for.
_READY_SECONDS = 5.0


class SpoolOptions(TypedDict, total=False):
    """A folder in which events wait, and the bytes of all its files together (104,857,600)."""

    folder: str
    bytes_max: int


class TrueupOptions(TypedDict, total=False):
    """Settings of a connection. README.md describes each."""

    url: Optional[str]
    api_key: Optional[str]
    service: Optional[str]
    enforcement: bool
    capture_payloads: bool
    policy_verdicts: bool
    spool: Union[str, "os.PathLike[str]", SpoolOptions, None]
    queue_bytes_max: int
    flush_interval_seconds: float
    request_timeout_seconds: float
    exit_timeout_seconds: float
    flush_at_exit: bool
    transport: Optional[Transport]
    on_error: Optional[Callable[[Exception], Any]]
    on_verdict: Optional[Callable[[VerdictNote], Any]]


class LabeledOptions(TrueupOptions, Labels, total=False):
    """Settings of a connection, and labels."""


class Trueup:
    """
    One connection to the service, for any number of clients. Without an address or a key it observes nothing, and says
    so to `on_error`.
    """

    def __init__(self, **options: Unpack[LabeledOptions]) -> None:
        url = (options.get("url") or os.environ.get("TRUEUP_URL") or "").rstrip("/")
        api_key = options.get("api_key") or os.environ.get("TRUEUP_KEY") or ""
        on_error = options.get("on_error") or _ignore
        has_rules, has_patterns = options.get("enforcement", True), options.get("policy_verdicts") is True
        # Whether rules or patterns are fetched.
        self._is_configured = has_rules or has_patterns
        self._recorder: Optional[Recorder] = None
        self._reporter: Optional[Reporter] = None
        self._configuration: Optional[Configuration] = None
        if url == "" or api_key == "":
            on_error(
                ValueError("trueup_sdk observes nothing: set url and api_key, or TRUEUP_URL and TRUEUP_KEY")
            )
            return
        transport = options.get("transport") or send
        timeout = options.get("request_timeout_seconds", _REQUEST_TIMEOUT_SECONDS)
        reporter = Reporter(
            ReporterOptions(
                url=url,
                api_key=api_key,
                queue_bytes_max=options.get("queue_bytes_max", _QUEUE_BYTES_MAX),
                flush_interval_seconds=options.get("flush_interval_seconds", _FLUSH_INTERVAL_SECONDS),
                request_timeout_seconds=timeout,
                spool=_open_spool(options.get("spool"), on_error),
                on_error=on_error,
            ),
            transport,
        )
        enforcer = Enforcer()
        configuration = Configuration(
            url=url,
            api_key=api_key,
            request_timeout_seconds=timeout,
            on_error=on_error,
            enforcer=enforcer,
            transport=transport,
            has_rules=has_rules,
            has_patterns=has_patterns,
        )
        labels: Dict[str, Any] = {"environment": os.environ.get("TRUEUP_ENVIRONMENT")}
        labels.update((name, value) for name, value in options.items() if name in NAMES and value is not None)
        service = (
            options.get("service") or os.environ.get("TRUEUP_SERVICE") or os.environ.get("OTEL_SERVICE_NAME")
        )
        self._recorder = Recorder(
            RecorderOptions(
                labels=labels,
                service=service,
                capture_payloads=options.get("capture_payloads") is True,
                on_verdict=options.get("on_verdict"),
                on_error=on_error,
            ),
            enforcer,
            configuration,
            reporter,
        )
        self._reporter = reporter
        self._configuration = configuration
        renew_after_fork(reporter)
        renew_after_fork(configuration)
        if self._is_configured:
            configuration.keep_fresh()
        if options.get("flush_at_exit", True):
            flush_at_end(reporter, options.get("exit_timeout_seconds", _EXIT_TIMEOUT_SECONDS))

    @property
    def recorder(self) -> Optional[Recorder]:
        """The seam for adapters of clients; None: nothing is observed."""
        return self._recorder

    def observe(self, client: Client, **labels: Unpack[Labels]) -> Client:
        """
        Reports the calls of an official client and applies the rules to them. The client stays the same object. A
        client that is not known is reported to `on_error` and stays unobserved.
        """
        # Without an address the option of one call must still not reach the client, which would refuse it.
        recorder = self._recorder or _SILENT
        try:
            attach(client, recorder, labels)
        except Exception as error:
            recorder.report_error(RuntimeError(f"the client is not observed: {message_of(error)}"))
        return client

    def ready(self, timeout_seconds: float = _READY_SECONDS) -> bool:
        """True: the first rules and patterns are there. Calls before them are not judged. It blocks: see `ready_async`."""
        return (
            self._configuration is not None
            and self._is_configured
            and self._configuration.ready(timeout_seconds)
        )

    def refresh(self, timeout_seconds: Optional[float] = None) -> bool:
        """Asks for the rules and patterns now. True: the service has answered."""
        return (
            self._configuration is not None
            and self._is_configured
            and self._configuration.refresh(timeout_seconds)
        )

    def flush(self, timeout_seconds: Optional[float] = None) -> bool:
        """Sends what waits. True: nothing waits any more. It blocks: see `flush_async`."""
        return self._reporter is None or self._reporter.flush(timeout_seconds)

    def shutdown(self, timeout_seconds: Optional[float] = None) -> bool:
        """Sends what waits and stops. True: nothing waits any more. Later calls are made and not recorded."""
        if self._configuration is not None:
            self._configuration.close()
        if self._reporter is None:
            return True
        is_sent = self._reporter.close(timeout_seconds)
        forget(self._reporter)
        return is_sent

    async def ready_async(self, timeout_seconds: float = _READY_SECONDS) -> bool:
        """As `ready`, without blocking the event loop."""
        return await _in_thread(self.ready, timeout_seconds)

    async def flush_async(self, timeout_seconds: Optional[float] = None) -> bool:
        """As `flush`, without blocking the event loop."""
        return await _in_thread(self.flush, timeout_seconds)

    async def shutdown_async(self, timeout_seconds: Optional[float] = None) -> bool:
        """As `shutdown`, without blocking the event loop."""
        return await _in_thread(self.shutdown, timeout_seconds)

    @property
    def stats(self) -> ReporterStats:
        """What has become of the events of this process."""
        return ReporterStats() if self._reporter is None else self._reporter.stats

    def __enter__(self) -> Trueup:
        return self

    def __exit__(
        self,
        error_type: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.shutdown()


def _ignore(error: Exception) -> None:
    """By default nothing is printed."""


def _open_spool(given: Any, on_error: Callable[[Exception], Any]) -> Optional[Spool]:
    if given is None:
        return None
    options: Dict[str, Any] = given if isinstance(given, dict) else {"folder": os.fspath(given)}
    try:
        return Spool(options["folder"], options.get("bytes_max", _SPOOL_BYTES_MAX))
    except Exception as error:
        on_error(RuntimeError(f"events wait in memory, not in the spool: {message_of(error)}"))
        return None


async def _in_thread(work: Callable[[Any], bool], timeout_seconds: Any) -> bool:
    return await asyncio.get_running_loop().run_in_executor(None, work, timeout_seconds)


# Connections that `observe` has made, by address and key.
_shared: Dict[Tuple[str, str], Trueup] = {}
_shared_lock = threading.Lock()


def observe(client: Client, **options: Unpack[LabeledOptions]) -> Client:
    """
    Reports the calls of an official client. Options beside the labels count for the first client of an address and key;
    later ones share its connection.
    """
    url = options.get("url") or os.environ.get("TRUEUP_URL") or ""
    key = (url, options.get("api_key") or os.environ.get("TRUEUP_KEY") or "")
    labels: Any = {name: value for name, value in options.items() if name in NAMES}
    with _shared_lock:
        trueup = _shared.get(key)
        if trueup is None:
            settings: Any = {name: value for name, value in options.items() if name not in NAMES}
            trueup = _shared[key] = Trueup(**settings)
    return trueup.observe(client, **labels)


def flush(timeout_seconds: Optional[float] = None) -> bool:
    """Sends what waits in every connection that `observe` has made."""
    return all([trueup.flush(timeout_seconds) for trueup in list(_shared.values())])


def ready(timeout_seconds: float = _READY_SECONDS) -> bool:
    """Waits for the rules of every connection that `observe` has made."""
    return all([trueup.ready(timeout_seconds) for trueup in list(_shared.values())])


def shutdown(timeout_seconds: Optional[float] = None) -> bool:
    """Sends what waits in every connection that `observe` has made, and stops them."""
    with _shared_lock:
        connections = list(_shared.values())
        _shared.clear()
    return all([trueup.shutdown(timeout_seconds) for trueup in connections])


async def flush_async(timeout_seconds: Optional[float] = None) -> bool:
    """As `flush`, without blocking the event loop."""
    return await _in_thread(flush, timeout_seconds)


async def ready_async(timeout_seconds: float = _READY_SECONDS) -> bool:
    """As `ready`, without blocking the event loop."""
    return await _in_thread(ready, timeout_seconds)


async def shutdown_async(timeout_seconds: Optional[float] = None) -> bool:
    """As `shutdown`, without blocking the event loop."""
    return await _in_thread(shutdown, timeout_seconds)
