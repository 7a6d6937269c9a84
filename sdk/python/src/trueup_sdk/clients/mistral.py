"""The client of Mistral, sync and async: each part of it makes its requests through `do_request`."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Mapping, Optional

from ..calls import CallRequest, OpenCall, Recorder
from .batches import BatchPlace, KnownBatch, note_files, record_openai_item, record_openai_result
from .labeling import take_labels_as_context
from .readings import Fields, fields, items, millis_of_seconds, number, parse, text
from .sinks import LinesSink, OpenAiSink
from .tap import EVENTS, JSON, LINES, quietly, read_response

_PARTS = ("chat", "fim", "agents", "embeddings")
_METHODS = ("complete", "stream", "parse", "parse_stream", "create")
_CALLS = re.compile(r"/v1/(?:(?:chat|fim|agents)/completions|embeddings)/?$")
_JOBS = re.compile(r"/v1/batch/jobs(?:/[^/]+(?:/cancel)?)?/?$")
_FILE = re.compile(r"/v1/files/([^/]+)/content/?$")


def is_mistral(client: Any) -> bool:
    return type(client).__name__ == "Mistral" and type(client).__module__.split(".")[0] == "mistralai"


def attach_mistral(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    for name in _PARTS:
        part = getattr(client, name, None)
        if part is None or not hasattr(part, "do_request"):
            continue
        _attach(part, recorder, labels)
        take_labels_as_context(part, (*_METHODS, *(f"{method}_async" for method in _METHODS)))
    # Results of batches are files, or part of the job where it was fetched with them.
    for part in (getattr(getattr(client, "batch", None), "jobs", None), getattr(client, "files", None)):
        if hasattr(part, "do_request"):
            _attach(part, recorder, labels)


def _attach(part: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    make, make_async = part.do_request, part.do_request_async

    @functools.wraps(make)
    def do_request(*args: Any, **kwargs: Any) -> Any:
        made = _Request(kwargs, recorder, labels)
        try:
            response = make(*args, **made.arguments)
        except BaseException as error:
            made.fail(error)
            raise
        made.answered(response, is_async=False)
        return response

    @functools.wraps(make_async)
    async def do_request_async(*args: Any, **kwargs: Any) -> Any:
        made = _Request(kwargs, recorder, labels)
        try:
            response = await make_async(*args, **made.arguments)
        except BaseException as error:
            made.fail(error)
            raise
        made.answered(response, is_async=True)
        return response

    part.do_request = do_request
    part.do_request_async = do_request_async


class _Request:
    """One request, with the retries of the client: a call of a model, or one whose answer has calls of before."""

    def __init__(self, arguments: Mapping[str, Any], recorder: Recorder, labels: Mapping[str, Any]) -> None:
        """Raises TrueupBlockedError where a rule stops the call; never anything else."""
        self.arguments = arguments
        self._recorder = recorder
        self._labels = labels
        self._call: Optional[OpenCall] = None
        found: Optional[CallRequest] = None
        try:
            found = _call_of(arguments["request"], labels)
        except Exception as error:  # noqa: BLE001 - a request of an unknown form is made unseen
            recorder.report_error(error)
        if found is None:
            return
        self._call = recorder.begin(found)
        new_model = self._call.new_model
        if new_model is not None:
            request = arguments["request"]
            quietly(lambda: self._send({**found.body, "model": new_model}, request))

    def _send(self, body: Fields, request: Any) -> None:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() != "content-length"]
        changed = type(request)(
            method=request.method,
            url=request.url,
            headers=headers,
            content=json.dumps(body).encode("utf-8"),
            extensions=request.extensions,
        )
        self.arguments = {**self.arguments, "request": changed}

    def answered(self, response: Any, is_async: bool) -> None:
        if self._call is None:
            quietly(lambda: self._read_batch(response, is_async))
            return
        if response.status_code >= 400:
            self._call.end("error", None, response.status_code)
            return
        call = self._call
        kind = EVENTS if self.arguments.get("stream") is True else JSON
        try:
            read_response(response, kind, OpenAiSink(call), is_async)
        except Exception as error:  # noqa: BLE001 - an answer of an unknown form is reported without its content
            self._recorder.report_error(error)
            call.end("ok")

    def _read_batch(self, response: Any, is_async: bool) -> None:
        url = self.arguments["request"].url
        file, is_of_jobs = _FILE.search(url.path), _JOBS.search(url.path)
        if response.status_code >= 400 or not (file or is_of_jobs):
            return
        place = BatchPlace(self._recorder, self._labels, "mistral", _base_url_of(url))
        if file:
            see = functools.partial(record_openai_result, file_id=file.group(1), place=place)
            read_response(response, LINES, LinesSink(see), is_async)
        elif hasattr(response, "_content"):
            _note_jobs(parse(response.content), place)

    def fail(self, error: BaseException) -> None:
        if self._call is not None:
            self._call.fail(error)


def _note_jobs(value: Any, place: BatchPlace) -> None:
    """A job, or a list of jobs."""
    answer = fields(value) or {}
    for job in filter(None, map(fields, items(answer.get("data")) or [answer])):
        job_id = text(job.get("id"))
        if job_id is None:
            continue
        batch = KnownBatch(job_id, millis_of_seconds(job.get("completed_at")))
        note_files((job.get("output_file"), job.get("error_file")), batch)
        for item in items(job.get("outputs")):
            record_openai_item(item, batch, job_id, place)


def _call_of(request: Any, labels: Mapping[str, Any]) -> Optional[CallRequest]:
    """None: no call of a model."""
    url = request.url
    if request.method != "POST" or not _CALLS.search(url.path):
        return None
    body = fields(parse(request.content)) or {}
    return CallRequest(
        provider="mistral",
        model=text(body.get("model")) or text(body.get("agent_id")) or "unknown",
        base_url=_base_url_of(url),
        body=body,
        max_output_tokens=number(body.get("max_tokens")),
        client_labels=labels,
    )


def _base_url_of(url: Any) -> str:
    port = "" if url.port is None else f":{url.port}"
    return f"{url.scheme}://{url.host}{port}"
