"""
The official clients of OpenAI (with Azure's and those for other hosts) and of Anthropic (with Bedrock's and Vertex's).

Every method of theirs makes its request through `request` of the client, which retries within: a call is one `request`.
`_process_response` gets the answer of the attempt that succeeded, before anything has read it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import Any, Callable, Dict, Optional, Tuple
from urllib.parse import urlsplit

from ..calls import CallRequest, LaterCall, OpenCall, Reading, Recorder
from ..labels import OPTION, merge_labels, own_labels, without_option
from .batches import BatchPlace, note_batch, record_anthropic_result, record_openai_result
from .labeling import take_labels
from .readings import fields, first_number, number, parse, read_openai, text
from .sinks import ENDED, AnthropicSink, JsonSink, LinesSink, OpenAiSink
from .tap import EVENTS, JSON, LINES, SharedJson, Sink, quietly, read_response, share_json

# Calls of a model, by the end of their path.
_CALLS_OF_OPENAI = re.compile(
    r"/(?:chat/completions|completions|responses|responses/compact|embeddings"
    r"|audio/(?:transcriptions|translations|speech)|images/(?:generations|edits|variations))/?$"
)
_CALLS_OF_ANTHROPIC = re.compile(r"/v1/(?:messages|complete)/?$")
_RESULTS_OF_ANTHROPIC = re.compile(r"/v1/messages/batches/([^/]+)/results/?$")
_BATCHES_OF_OPENAI = re.compile(r"^/batches(?:/[^/]+(?:/cancel)?)?/?$")
_FILE_OF_OPENAI = re.compile(r"/files/([^/]+)/content/?$")
_RESPONSE_OF_OPENAI = re.compile(r"/responses/[^/]+/?$")
_HOSTS = (
    (re.compile(r"(?:^|\.)api\.openai\.com$"), "openai"),
    (re.compile(r"\.(?:openai|cognitiveservices)\.azure\.com$"), "azure_openai"),
    (re.compile(r"^api\.anthropic\.com$"), "anthropic"),
    (re.compile(r"^api\.x\.ai$"), "xai"),
    (re.compile(r"^api\.mistral\.ai$"), "mistral"),
    (re.compile(r"^bedrock-(?:runtime|mantle)[a-z0-9.-]*$"), "aws_bedrock"),
    (re.compile(r"(?:^|[.-])aiplatform\.googleapis\.com$|^generativelanguage\.googleapis\.com$"), "google"),
)
# Clients that are named after the one who bills, where a gateway hides the host.
_CLASSES = (("Azure", "azure_openai"), ("Bedrock", "aws_bedrock"), ("Vertex", "google"))
_KEY_PREFIX_CHARS = 8
# Parts of the clients whose methods take labels of one call.
_PARTS_OF_OPENAI = (
    ("chat", "completions"),
    ("completions",),
    ("responses",),
    ("embeddings",),
    ("audio", "transcriptions"),
    ("audio", "translations"),
    ("audio", "speech"),
    ("images",),
)
_PARTS_OF_ANTHROPIC = (("messages",), ("completions",), ("beta", "messages"))
_METHODS = ("create", "parse", "compact", "generate", "edit", "create_variation")
# The request of a helper is made when its result is entered.
_HELPERS = ("stream", "tool_runner")


def is_stainless(client: Any) -> bool:
    return _base_of(client) is not None


def _base_of(client: Any) -> Optional[str]:
    """The class of the generator, such as `openai._base_client.AsyncAPIClient`; None: the client is another."""
    for base in type(client).__mro__:
        if base.__name__ in ("SyncAPIClient", "AsyncAPIClient") and base.__module__ in (
            "openai._base_client",
            "anthropic._base_client",
        ):
            return f"{base.__module__}.{base.__name__}"
    return None


def attach_stainless(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    base = _base_of(client) or ""
    place = _Place(client, base.startswith("anthropic"), "Async" in base, recorder, labels)
    (_attach_async if place.is_async else _attach_sync)(client, place)
    for name in ("copy", "with_options"):
        copy = getattr(client, name, None)
        if copy is not None:
            setattr(client, name, _observing(copy, recorder, labels))
    for path in _PARTS_OF_ANTHROPIC if place.is_anthropic else _PARTS_OF_OPENAI:
        try:
            _take_labels(functools.reduce(getattr, path, client))
        except Exception:  # noqa: BLE001, PERF203 - a version without this part
            continue


class _Place:
    """An observed client, and the one for whom it is observed."""

    def __init__(
        self, client: Any, is_anthropic: bool, is_async: bool, recorder: Recorder, labels: Mapping[str, Any]
    ) -> None:
        self.is_anthropic = is_anthropic
        self.is_async = is_async
        self.recorder = recorder
        self.labels = labels
        self._client = client
        self._known: Tuple[Any, Optional[str], str] = (None, None, "")

    def base_url(self) -> Optional[str]:
        return self.address()[0]

    def provider(self) -> str:
        return self.address()[1]

    def address(self) -> Tuple[Optional[str], str]:
        """The client's address as a text, and the provider there. It may change between calls."""
        url = getattr(self._client, "base_url", None)
        if url is not self._known[0] or not self._known[2]:
            self._known = (url, None if url is None else str(url), self._provider_at(str(url or "")))
        return self._known[1:]

    def _provider_at(self, url: str) -> str:
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            host = ""
        for pattern, provider in _HOSTS:
            if pattern.search(host):
                return provider
        for base in type(self._client).__mro__:
            for name, provider in _CLASSES:
                if name in base.__name__:
                    return provider
        return "anthropic" if self.is_anthropic else "openai"

    def key_prefix(self) -> Optional[str]:
        key = getattr(self._client, "api_key", None)
        return key[:_KEY_PREFIX_CHARS] if isinstance(key, str) and key else None

    def batch(self) -> BatchPlace:
        return BatchPlace(self.recorder, self.labels, self.provider(), self.base_url())


# The request whose answer `_process_response` gets next in this context.
_current: ContextVar[Optional[_Request]] = ContextVar("trueup_request", default=None)


def _attach_sync(client: Any, place: _Place) -> None:
    make, process = client.request, client._process_response

    @functools.wraps(make)
    def request(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        made = _Request(place, options, kwargs.get("stream") is True)
        token = _current.set(made)
        try:
            result = make(cast_to, made.options, *args, **kwargs)
        except BaseException as error:
            made.fail(error)
            raise
        finally:
            _leave(token)
        made.returned()
        return result

    @functools.wraps(process)
    def process_response(*args: Any, **kwargs: Any) -> Any:
        _answered(kwargs)
        return process(*args, **kwargs)

    client.request = request
    client._process_response = process_response


def _attach_async(client: Any, place: _Place) -> None:
    make, process = client.request, client._process_response

    @functools.wraps(make)
    async def request(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        made = _Request(place, options, kwargs.get("stream") is True)
        token = _current.set(made)
        try:
            result = await make(cast_to, made.options, *args, **kwargs)
        except BaseException as error:
            made.fail(error)
            raise
        finally:
            _leave(token)
        made.returned()
        return result

    @functools.wraps(process)
    async def process_response(*args: Any, **kwargs: Any) -> Any:
        _answered(kwargs)
        return await process(*args, **kwargs)

    client.request = request
    client._process_response = process_response


def _leave(token: Token[Optional[_Request]]) -> None:
    try:
        _current.reset(token)
    except ValueError:
        # A coroutine that is closed elsewhere leaves in another context, which never had this request.
        pass


def _answered(arguments: Mapping[str, Any]) -> None:
    request = _current.get()
    if request is not None:
        try:
            request.answered(arguments.get("response"))
        except Exception:  # noqa: BLE001 - an answer of an unknown form is reported without its content
            pass


def _observing(copy: Any, recorder: Recorder, labels: Mapping[str, Any]) -> Any:
    from .attach import attach

    @functools.wraps(copy)
    def copied(*args: Any, **kwargs: Any) -> Any:
        client = copy(*args, **kwargs)
        quietly(lambda: attach(client, recorder, labels))
        return client

    return copied


def _take_labels(part: Any) -> None:
    take_labels(part, _METHODS, _in_extra_body)
    take_labels(part, _HELPERS, _in_extra_body, is_later=True)


def _in_extra_body(kwargs: Dict[str, Any], labels: Dict[str, str]) -> Dict[str, Any]:
    """The labels travel in the extra body, from which `request` removes them."""
    extra = kwargs.get("extra_body")
    if extra is not None and not isinstance(extra, Mapping):
        return kwargs
    return {**kwargs, "extra_body": {**(extra or {}), OPTION: merge_labels(labels, own_labels(extra))}}


class _Request:
    """One request of a client: a call of a model, or one whose answer has calls of before."""

    def __init__(self, place: _Place, options: Any, is_stream: bool) -> None:
        """Raises TrueupBlockedError where a rule stops the call; never anything else."""
        self.options = options
        self._place = place
        self._is_stream = is_stream
        self._call: Optional[OpenCall] = None
        self._is_tapped = False
        self._shared: Optional[SharedJson] = None
        self._path = ""
        self._method = ""
        try:
            self._method = options.method.lower()
            self._path = options.url.split("?", 1)[0]
        except Exception:  # noqa: BLE001 - a request of an unknown form is made unseen
            return
        calls = _CALLS_OF_ANTHROPIC if place.is_anthropic else _CALLS_OF_OPENAI
        if self._method == "post" and calls.search(self._path):
            self._begin()

    def _begin(self) -> None:
        body: Any = None
        try:
            options = self.options
            extra = fields(getattr(options, "extra_json", None))
            given = fields(options.json_data) or {}
            labels = merge_labels(own_labels(given), own_labels(extra))
            if OPTION in given or (extra is not None and OPTION in extra):
                self.options = _changed(
                    options, json_data=without_option(options.json_data), extra_json=without_option(extra) or None
                )
            body = without_option({**given, **extra} if extra else given)
            base_url, provider = self._place.address()
            request = CallRequest(
                provider=provider,
                model=text(body.get("model")) or "unknown",
                base_url=base_url,
                body=body,
                max_output_tokens=first_number(
                    body.get("max_completion_tokens"), body.get("max_output_tokens"), body.get("max_tokens")
                ),
                client_labels=self._place.labels,
                labels=labels,
                key_prefix=self._place.key_prefix(),
            )
        except Exception as error:  # noqa: BLE001 - a request of an unknown form is made unseen
            self._place.recorder.report_error(error)
            return
        self._call = self._place.recorder.begin(request)
        new_model = self._call.new_model
        if new_model is not None:
            quietly(lambda: self._send_to(new_model))

    def _send_to(self, model: str) -> None:
        extra = fields(getattr(self.options, "extra_json", None))
        if extra is not None and "model" in extra:
            self.options = _changed(self.options, extra_json={**extra, "model": model})
        else:
            self.options = _changed(self.options, json_data={**(self.options.json_data or {}), "model": model})

    def answered(self, response: Any) -> None:
        """The last attempt has its answer, which nothing has read yet beyond its bytes."""
        if response is None or self._is_tapped or response.status_code >= 400:
            return
        found = self._found()
        if found is None:
            return
        kind, sink = found
        if self._call is not None and self._path.rstrip("/").endswith("/audio/speech"):
            self._call.end("ok")
        else:
            self._shared = share_json(response, sink) if kind == JSON else None
            if self._shared is None:
                read_response(response, kind, sink, self._place.is_async)
        self._is_tapped = True

    def _found(self) -> Optional[Tuple[str, Sink]]:
        """The form of the body, and what takes it; None: nothing is read."""
        place = self._place
        if self._call is not None:
            sink = AnthropicSink(self._call) if place.is_anthropic else OpenAiSink(self._call)
            return (EVENTS if self._is_stream else JSON), sink
        if self._method != "get" and not _BATCHES_OF_OPENAI.search(self._path):
            return None
        if place.is_anthropic:
            results = _RESULTS_OF_ANTHROPIC.search(self._path)
            if results is None:
                return None
            return LINES, LinesSink(functools.partial(_record_anthropic, results.group(1), place.batch()))
        file = _FILE_OF_OPENAI.search(self._path)
        if file is not None:
            return LINES, LinesSink(functools.partial(_record_openai, file.group(1), place.batch()))
        if _BATCHES_OF_OPENAI.search(self._path):
            return JSON, JsonSink(note_batch)
        if _RESPONSE_OF_OPENAI.search(self._path):
            if self._is_stream:
                return EVENTS, LinesSink(functools.partial(_record_background_event, place))
            return JSON, JsonSink(functools.partial(_record_background, place))
        return None

    def fail(self, error: BaseException) -> None:
        if self._shared is not None:
            # The provider has answered: the client cannot read the answer.
            self._shared.finish()
        if self._call is not None:
            self._call.fail(error)

    def returned(self) -> None:
        """An answer that no response has brought, such as one of a cache, is a call without usage."""
        if self._shared is not None:
            self._shared.finish()
        elif self._call is not None and not self._is_tapped:
            self._call.end("ok")


def _changed(options: Any, **changes: Any) -> Any:
    """A copy of the options; the ones that were given stay as they are."""
    copy = options.model_copy() if hasattr(options, "model_copy") else options.copy()
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


def _record_openai(file_id: str, place: BatchPlace, line: bytes) -> None:
    record_openai_result(line, file_id, place)


def _record_anthropic(batch_id: str, place: BatchPlace, line: bytes) -> None:
    record_anthropic_result(line, batch_id, place)


def _record_background_event(place: _Place, data: bytes) -> None:
    if ENDED.search(data):
        _record_background(place, (fields(parse(data)) or {}).get("response"))


def _record_background(place: _Place, value: Any) -> None:
    """A response that was made in the background, when it is fetched at its end; fetched again it counts once."""
    answer = fields(value) or {}
    created_at = number(answer.get("created_at"))
    if answer.get("object") != "response" or answer.get("background") is not True:
        return
    if fields(answer.get("usage")) is None or created_at is None:
        return
    reading = read_openai(answer)
    place.recorder.record_later(
        LaterCall(
            provider=place.provider(),
            base_url=place.base_url(),
            model=reading.response_model or "unknown",
            reading=reading,
            at=created_at * 1_000,
            status={"failed": "error", "cancelled": "cancelled"}.get(str(answer.get("status")), "ok"),
            labels=place.labels,
        )
    )
