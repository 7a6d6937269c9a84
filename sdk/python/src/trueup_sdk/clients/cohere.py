"""The clients of Cohere, sync and async, versions 1 and 2 of its API: all make their requests through one object."""

from __future__ import annotations

import functools
import re
from contextlib import asynccontextmanager, contextmanager
from typing import Any, AsyncIterator, Dict, Iterator, Mapping, NamedTuple, Optional

from ..calls import CallRequest, OpenCall, Reading, Recorder
from ..labels import OPTION, merge_labels, own_labels, without_option
from .labeling import take_labels
from .readings import fields, number, parse, text
from .sinks import CallSink
from .tap import JSON, LINES, quietly, read_response

_METHODS = ("chat", "chat_stream", "generate", "generate_stream", "embed", "embed_stream", "rerank")
_CALLS = re.compile(r"(?:^|/)v[12]/(?:chat|generate|embed|rerank)/?$")
# The option of the client whose fields become part of the request's body.
_CARRIER = "additional_body_parameters"


class _Place(NamedTuple):
    wrapper: Any
    recorder: Recorder
    labels: Mapping[str, Any]


def is_cohere(client: Any) -> bool:
    wrapper = getattr(client, "_client_wrapper", None)
    modules = {base.__module__ for base in type(client).__mro__}
    # Clients of clouds change their requests below this one, and others bill them.
    if not modules.isdisjoint(("cohere.aws_client", "cohere.oci_client")):
        return False
    return any(module.split(".")[0] == "cohere" for module in modules) and hasattr(getattr(wrapper, "httpx_client", None), "stream")


def attach_cohere(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    place = _Place(client._client_wrapper, recorder, labels)
    http = place.wrapper.httpx_client
    if "Async" in type(http).__name__:
        _attach_async(http, place)
    else:
        _attach_sync(http, place)
    # An embedding is made in threads, and a stream when it is read: outside of this moment's context.
    take_labels(client, _METHODS, _in_request_options, is_later=True)
    # The older client has the newer API inside.
    inner = getattr(client, "v2", None)
    if inner is not None:
        take_labels(inner, _METHODS, _in_request_options, is_later=True)


def _in_request_options(kwargs: Dict[str, Any], labels: Dict[str, str]) -> Dict[str, Any]:
    """The labels travel in the options of the request, from which it removes them."""
    options: Mapping[str, Any] = kwargs.get("request_options") or {}
    carried: Mapping[str, Any] = options.get(_CARRIER) or {}
    carried = {**carried, OPTION: merge_labels(labels, own_labels(carried))}
    return {**kwargs, "request_options": {**options, _CARRIER: carried}}


def _attach_sync(http: Any, place: _Place) -> None:
    make, open_stream = http.request, http.stream

    @functools.wraps(make)
    def request(path: Any = None, *args: Any, **kwargs: Any) -> Any:
        # A retry of the client, which is no call of its own.
        if "retries" in kwargs:
            return make(path, *args, **kwargs)
        made = _Request(place, path, kwargs)
        try:
            response = make(path, *args, **made.arguments)
        except BaseException as error:
            made.fail(error)
            raise
        made.answered(response, is_stream=False, is_async=False)
        return response

    @functools.wraps(open_stream)
    @contextmanager
    def stream(path: Any = None, *args: Any, **kwargs: Any) -> Iterator[Any]:
        made = _Request(place, path, kwargs)
        try:
            with open_stream(path, *args, **made.arguments) as response:
                made.answered(response, is_stream=True, is_async=False)
                yield response
        except BaseException as error:
            made.fail(error)
            raise

    http.request = request
    http.stream = stream


def _attach_async(http: Any, place: _Place) -> None:
    make, open_stream = http.request, http.stream

    @functools.wraps(make)
    async def request(path: Any = None, *args: Any, **kwargs: Any) -> Any:
        if "retries" in kwargs:
            return await make(path, *args, **kwargs)
        made = _Request(place, path, kwargs)
        try:
            response = await make(path, *args, **made.arguments)
        except BaseException as error:
            made.fail(error)
            raise
        made.answered(response, is_stream=False, is_async=True)
        return response

    @functools.wraps(open_stream)
    @asynccontextmanager
    async def stream(path: Any = None, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        made = _Request(place, path, kwargs)
        try:
            async with open_stream(path, *args, **made.arguments) as response:
                made.answered(response, is_stream=True, is_async=True)
                yield response
        except BaseException as error:
            made.fail(error)
            raise

    http.request = request
    http.stream = stream


class _Request:
    """One request, with the retries of the client."""

    def __init__(self, place: _Place, path: Any, arguments: Dict[str, Any]) -> None:
        """Raises TrueupBlockedError where a rule stops the call; never anything else."""
        self.arguments = arguments
        self._place = place
        self._call: Optional[OpenCall] = None
        found: Optional[CallRequest] = None
        try:
            found = self._call_of(path)
        except Exception as error:  # noqa: BLE001 - a request of an unknown form is made unseen
            place.recorder.report_error(error)
        if found is None:
            return
        self._call = place.recorder.begin(found)
        new_model = self._call.new_model
        if new_model is not None:
            quietly(lambda: self._send_to(new_model))

    def _call_of(self, path: Any) -> Optional[CallRequest]:
        """None: no call of a model."""
        options: Mapping[str, Any] = self.arguments.get("request_options") or {}
        carried: Mapping[str, Any] = options.get(_CARRIER) or {}
        labels = own_labels(carried)
        if OPTION in carried:
            self._carry(without_option(carried))
        if self.arguments.get("method") != "POST" or not _CALLS.search(str(path)):
            return None
        omitted = self.arguments.get("omit")
        json = fields(self.arguments.get("json")) or {}
        body = {name: value for name, value in json.items() if value is not omitted and value is not None}
        body.update(without_option(carried))
        return CallRequest(
            provider="cohere",
            model=text(body.get("model")) or "unknown",
            base_url=text(self._place.wrapper.get_base_url()),
            body=body,
            max_output_tokens=number(body.get("max_tokens")),
            client_labels=self._place.labels,
            labels=labels,
        )

    def _carry(self, carried: Mapping[str, Any]) -> None:
        options = dict(self.arguments.get("request_options") or {})
        if carried:
            options[_CARRIER] = carried
        else:
            options.pop(_CARRIER, None)
        self.arguments = {**self.arguments, "request_options": options or None}

    def _send_to(self, model: str) -> None:
        options: Mapping[str, Any] = self.arguments.get("request_options") or {}
        carried: Mapping[str, Any] = options.get(_CARRIER) or {}
        if "model" in carried:
            self._carry({**carried, "model": model})
        else:
            self.arguments = {**self.arguments, "json": {**(self.arguments.get("json") or {}), "model": model}}

    def answered(self, response: Any, is_stream: bool, is_async: bool) -> None:
        call = self._call
        if call is None:
            return
        if response.status_code >= 400:
            # The client reads the error first, and then raises it.
            if not is_stream:
                call.end("error", None, response.status_code)
            return
        try:
            read_response(response, LINES if is_stream else JSON, _CohereSink(call), is_async)
        except Exception as error:  # noqa: BLE001 - an answer of an unknown form is reported without its content
            self._place.recorder.report_error(error)
            call.end("ok")

    def fail(self, error: BaseException) -> None:
        if self._call is not None:
            self._call.fail(error)


class _CohereSink(CallSink):
    """Streams are server-sent events in version 2, and lines in version 1."""

    def json(self, value: Any) -> None:
        self.reading.merge(read_cohere(value))
        if self.call.captures_payloads:
            self.reading.answer = value

    def line(self, data: bytes) -> None:
        if data.startswith(b"data:"):
            data = data[5:]
        if b'"message-' in data or b'"stream-' in data:
            self.reading.merge(read_cohere(parse(data)))


def read_cohere(value: Any) -> Reading:
    """An answer, or an event of a stream: usage is billed units beside the tokens that were counted."""
    given = fields(value)
    if given is None:
        return Reading()
    is_start = given.get("type") == "message-start" or given.get("event_type") == "stream-start"
    answer = fields(given.get("delta")) or fields(given.get("response")) or given
    finish = text(answer.get("finish_reason")) or text(given.get("finish_reason"))
    usage = fields(answer.get("usage")) or fields(answer.get("meta")) or {}
    counted = {name: usage[name] for name in ("billed_units", "tokens") if fields(usage.get(name)) is not None}
    generation = text(given.get("generation_id")) if is_start else text(answer.get("generation_id"))
    return Reading(
        response_id=text(given.get("id")) or generation,
        usage=counted or None,
        stop_reason="tool_calls" if finish == "TOOL_CALL" else finish,
    )
