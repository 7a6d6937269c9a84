"""Requests to the service: one connection each, by the standard library."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import IO, Any, Callable, Mapping, NamedTuple, Optional

# A longer answer is not read, bytes.
_ANSWER_BYTES_MAX = 33_554_432
_RETRY_AFTER_SECONDS_MAX = 3_600


class Request(NamedTuple):
    """A request to the service."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Optional[bytes]
    timeout_seconds: float


class Response(NamedTuple):
    """The answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Transport = Callable[[Request], Response]
"""Makes a request. Raises any exception where the service does not answer."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The key must not follow to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


_opener: Optional[urllib.request.OpenerDirector] = None


def send(request: Request) -> Response:
    """The transport of the standard library. It uses the proxies of the environment."""
    global _opener
    if _opener is None:
        _opener = urllib.request.build_opener(_NoRedirects)
    if not request.url.startswith(("http://", "https://")):
        raise ValueError(f"{request.url} is no address of http or https")
    made = urllib.request.Request(
        request.url, data=request.body, headers=dict(request.headers), method=request.method
    )
    try:
        with _opener.open(made, timeout=request.timeout_seconds) as answer:
            return _read(answer.status, answer.headers, answer)
    except urllib.error.HTTPError as error:
        with error:
            return _read(error.code, error.headers, error)


def _read(status: int, headers: Message, answer: Any) -> Response:
    return Response(
        status, {name.lower(): value for name, value in headers.items()}, answer.read(_ANSWER_BYTES_MAX)
    )


def retry_after_of(response: Response) -> Optional[float]:
    """Seconds of `Retry-After`, given in seconds or as a date; at most an hour. None: there is none."""
    text = response.headers.get("retry-after")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    # A comparison that is false for NaN too.
    return min(max(seconds, 0.0), _RETRY_AFTER_SECONDS_MAX) if seconds == seconds else None


def message_of(error: BaseException) -> str:
    """The text of an error, never empty."""
    return str(error) or type(error).__name__
