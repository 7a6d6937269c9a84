"""The client of Google GenAI, sync and async: every method makes its requests through one object below it."""

from __future__ import annotations

import functools
import itertools
import re
import weakref
from datetime import datetime
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional

from ..calls import CallRequest, LaterCall, OpenCall, Reading, Recorder
from .batches import KnownBatch, batch_of, first_read_of, note_files
from .downloads import attach_downloads
from .iterate import AsyncItems, Watcher, left_as
from .labeling import take_labels_as_context
from .readings import Fields, fields, items, number, parse, text
from .tap import quietly

_CALLS = re.compile(
    r"models/([^/:]+):(generateContent|streamGenerateContent|embedContent|batchEmbedContents|predict)(?=\?|$)"
)
_BATCH = re.compile(r"(?:^|/)batches/[^/:?]+(?=\?|$)")
_FILE = re.compile(r"(?:^|/)(files/[^/:?]+):download(?=\?|$)")
_LABELED = ("generate_content", "generate_content_stream", "embed_content", "generate_images")


class _Place(NamedTuple):
    api: Any
    recorder: Recorder
    labels: Mapping[str, Any]

    def base_url(self) -> Optional[str]:
        return text(getattr(getattr(self.api, "_http_options", None), "base_url", None))


def is_google(client: Any) -> bool:
    api = getattr(client, "_api_client", None)
    return type(client).__module__.startswith("google.genai.") and hasattr(api, "request_streamed")


def attach_google(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    api = client._api_client
    place = _Place(api, recorder, labels)
    make, make_async = api.request, api.async_request
    make_stream, make_stream_async = api.request_streamed, api.async_request_streamed

    @functools.wraps(make)
    def request(http_method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        made = _Request(place, http_method, path, args, kwargs)
        try:
            answer = make(http_method, made.path, *args, **kwargs)
        except BaseException as error:
            made.failed(error)
            raise
        made.whole(answer)
        return answer

    @functools.wraps(make_async)
    async def async_request(http_method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        made = _Request(place, http_method, path, args, kwargs)
        try:
            answer = await make_async(http_method, made.path, *args, **kwargs)
        except BaseException as error:
            made.failed(error)
            raise
        made.whole(answer)
        return answer

    @functools.wraps(make_stream)
    def request_streamed(http_method: str, path: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
        made = _Request(place, http_method, path, args, kwargs)
        try:
            for chunk in make_stream(http_method, made.path, *args, **kwargs):
                made.see(chunk)
                yield chunk
        except GeneratorExit:
            made.left()
            raise
        except BaseException as error:
            made.failed(error)
            raise
        made.done()

    @functools.wraps(make_stream_async)
    async def async_request_streamed(http_method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        made = _Request(place, http_method, path, args, kwargs)
        try:
            chunks = await make_stream_async(http_method, made.path, *args, **kwargs)
        except BaseException as error:
            made.failed(error)
            raise
        items = AsyncItems(chunks, made)
        # A reader that never comes back.
        weakref.finalize(items, made.left).atexit = False
        return items

    api.request = request
    api.async_request = async_request
    api.request_streamed = request_streamed
    api.async_request_streamed = async_request_streamed
    take_labels_as_context(client.models, _LABELED)
    quietly(lambda: take_labels_as_context(client.aio.models, _LABELED))
    attach_downloads(api, lambda path: _results_of(path, place))


class _Request(Watcher):
    """One request of the client: a call of a model, or one whose answer has calls of before."""

    def __init__(
        self, place: _Place, http_method: str, path: str, args: Any, kwargs: Mapping[str, Any]
    ) -> None:
        """Raises TrueupBlockedError where a rule stops the call; never anything else."""
        self.path = path
        self._place = place
        self._reading = Reading()
        self._asks_for_tool = False
        self._call: Optional[OpenCall] = None
        self._is_get = http_method.lower() == "get"
        match = _CALLS.search(path)
        if match is None or http_method.lower() != "post":
            return
        model = match.group(1)
        try:
            body = fields(args[0] if args else kwargs.get("request_dict")) or {}
            config = fields(body.get("generationConfig")) or {}
            request = CallRequest(
                provider="google",
                model=model,
                base_url=place.base_url(),
                body=body,
                max_output_tokens=number(config.get("maxOutputTokens")),
                client_labels=place.labels,
            )
        except Exception as error:  # noqa: BLE001 - a request of an unknown form is made unseen
            place.recorder.report_error(error)
            return
        self._call = place.recorder.begin(request)
        if self._call.new_model is not None:
            self.path = path.replace(f"models/{model}:", f"models/{self._call.new_model}:")

    def whole(self, answer: Any) -> None:
        """The answer has arrived whole."""
        if self._call is not None:
            self.see(answer, is_whole=True)
            self.done()
        elif self._is_get and _BATCH.search(self.path):
            quietly(lambda: _record_batch(parse(answer.body), self._place))

    def see(self, item: Any, is_whole: bool = False) -> None:
        if self._call is not None:
            quietly(lambda: self._merge(parse(item.body), is_whole))

    def _merge(self, value: Any, is_whole: bool) -> None:
        reading = read_google(value)
        # A later part of a stream ends it with another reason.
        self._asks_for_tool = self._asks_for_tool or reading.stop_reason == "tool_calls"
        self._reading.merge(reading)
        if self._asks_for_tool:
            self._reading.stop_reason = "tool_calls"
        if is_whole and self._call is not None and self._call.captures_payloads:
            self._reading.answer = value

    def done(self) -> None:
        if self._call is not None:
            self._call.end("ok", self._reading)

    def left(self) -> None:
        if self._call is not None:
            self._call.end(left_as(self._reading), self._reading)

    def failed(self, error: BaseException) -> None:
        if self._call is not None:
            self._call.fail(error, self._reading)


def _record_batch(value: Any, place: _Place) -> None:
    """A batch with its answers in it, or in a file; fetched again, each of them counts once."""
    job = fields(value) or {}
    metadata = fields(job.get("metadata")) or {}
    output = fields(metadata.get("output")) or fields(job.get("response")) or {}
    name = text(job.get("name"))
    at = _millis_of(text(metadata.get("endTime")) or text(metadata.get("updateTime")))
    if name is None or at is None:
        return
    model = re.sub(r"^models/", "", text(metadata.get("model")) or "") or None
    batch = KnownBatch(name, at, model)
    note_files((output.get("responsesFile"),), batch)
    inlined = fields(output.get("inlinedResponses")) or {}
    for index, item in enumerate(items(inlined.get("inlinedResponses"))):
        _record_item(item, f"{name}/{index}", batch, at, place)


def _results_of(path: str, place: _Place) -> Optional[Callable[[bytes], None]]:
    """Takes the lines of the file that this request downloads; None: the request downloads none."""
    match = _FILE.search(path)
    if match is None:
        return None
    file = match.group(1)
    indexes = itertools.count()

    def see(line: bytes) -> None:
        request_id = f"{file}/{next(indexes)}"
        if b'"usageMetadata"' in line:
            batch = batch_of(file)
            at = batch.completed_at if batch else None
            _record_item(parse(line), request_id, batch, at or first_read_of(file), place)

    return see


def _record_item(value: Any, request_id: str, batch: Optional[KnownBatch], at: int, place: _Place) -> None:
    """One answer of a batch. One that failed has no usage and costs nothing."""
    reading = read_google((fields(value) or {}).get("response"))
    if reading.usage is None:
        return
    reading.request_id = request_id
    place.recorder.record_later(
        LaterCall(
            provider="google",
            model=reading.response_model or (batch.model if batch else None) or "unknown",
            base_url=place.base_url(),
            reading=reading,
            batch_id=batch.id if batch else None,
            is_batch=True,
            at=at,
            status="ok",
            labels=place.labels,
        )
    )


def _millis_of(time: Optional[str]) -> Optional[int]:
    """Milliseconds since 1970 of a time as RFC 3339 writes it in UTC; None: it is none."""
    match = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|\+00:00)$", time or "")
    if match is None:
        return None
    seconds = int(datetime.fromisoformat(f"{match.group(1)}+00:00").timestamp())
    return seconds * 1_000 + int((match.group(2) or "0")[:3].ljust(3, "0"))


def read_google(value: Any) -> Reading:
    """An answer, or a part of one."""
    answer: Optional[Fields] = fields(value)
    if answer is None:
        return Reading()
    candidates = items(answer.get("candidates"))
    candidate: Dict[str, Any] = fields(candidates[0] if candidates else None) or {}
    parts = items((fields(candidate.get("content")) or {}).get("parts"))
    asks_for_tool = any(fields((fields(part) or {}).get("functionCall")) is not None for part in parts)
    return Reading(
        response_id=text(answer.get("responseId")),
        response_model=text(answer.get("modelVersion")),
        usage=fields(answer.get("usageMetadata")),
        # Google ends a call for a tool with STOP.
        stop_reason="tool_calls" if asks_for_tool else text(candidate.get("finishReason")),
    )
