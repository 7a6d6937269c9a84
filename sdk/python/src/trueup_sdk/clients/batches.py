"""Results of batches: one line for each call, at half the price."""

from __future__ import annotations

import threading
from typing import Any, Dict, Mapping, NamedTuple, Optional

from ..calls import LaterCall, Recorder, now_ms
from .readings import fields, first_number, items, number, parse, read_anthropic, read_openai, text


class BatchPlace(NamedTuple):
    """Whose results they are."""

    recorder: Recorder
    labels: Mapping[str, Any]
    provider: str
    base_url: Optional[str]


class _Batch(NamedTuple):
    id: str
    # When the results were complete, seconds since 1970.
    completed_at: Optional[int]


_BATCHES_MAX = 10_000
_lock = threading.RLock()
# OpenAI's batches by their files of results.
_batches_by_file: Dict[str, _Batch] = {}
# When results of a batch of Anthropic were first read in this process, milliseconds: a message has no time of its own.
_first_read_at: Dict[str, int] = {}


def note_batch(value: Any) -> None:
    """Remembers to which batch a file of results belongs."""
    answer = fields(value) or {}
    listed = items(answer.get("data")) if answer.get("object") == "list" else [answer]
    for batch in filter(None, map(fields, listed)):
        batch_id = text(batch.get("id"))
        if batch.get("object") != "batch" or batch_id is None:
            continue
        for file in filter(None, (text(batch.get("output_file_id")), text(batch.get("error_file_id")))):
            with _lock:
                if len(_batches_by_file) >= _BATCHES_MAX:
                    _batches_by_file.clear()
                _batches_by_file[file] = _Batch(batch_id, number(batch.get("completed_at")))


def record_openai_result(line: bytes, file_id: str, place: BatchPlace) -> None:
    """A line of OpenAI's results; other files have other lines, which are nothing here."""
    if b'"custom_id"' not in line:
        return
    item = fields(parse(line)) or {}
    response = fields(item.get("response")) or {}
    body = fields(response.get("body"))
    request_id = text(item.get("id"))
    if request_id is None or body is None or response.get("status_code") != 200:
        return
    reading = read_openai(body)
    # A line without a model is a refused request, which costs nothing.
    if reading.response_model is None:
        return
    reading.request_id = request_id
    batch = _batches_by_file.get(file_id)
    seconds = first_number(body.get("created"), body.get("created_at"), batch.completed_at if batch else None)
    place.recorder.record_later(
        LaterCall(
            provider=place.provider,
            base_url=place.base_url,
            model=reading.response_model,
            reading=reading,
            batch_id=batch.id if batch else None,
            is_batch=True,
            at=now_ms() if seconds is None else seconds * 1_000,
            status="ok",
            labels=place.labels,
        )
    )


def record_anthropic_result(line: bytes, batch_id: str, place: BatchPlace) -> None:
    """A line of Anthropic's results."""
    result = fields((fields(parse(line)) or {}).get("result")) or {}
    if result.get("type") != "succeeded":
        return
    reading = read_anthropic(result.get("message"))
    if reading.response_model is None:
        return
    with _lock:
        if len(_first_read_at) >= _BATCHES_MAX:
            _first_read_at.clear()
        at = _first_read_at.setdefault(batch_id, now_ms())
    place.recorder.record_later(
        LaterCall(
            provider=place.provider,
            base_url=place.base_url,
            model=reading.response_model,
            reading=reading,
            batch_id=batch_id,
            is_batch=True,
            at=at,
            status="ok",
            labels=place.labels,
        )
    )
