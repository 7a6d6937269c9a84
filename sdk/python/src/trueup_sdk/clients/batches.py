"""Results of batches: one line for each call, at half the price."""

from __future__ import annotations

import threading
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional

from ..calls import LaterCall, Recorder, now_ms
from .readings import fields, first_number, items, millis_of_seconds, parse, read_anthropic, read_openai, text


class BatchPlace(NamedTuple):
    """Whose results they are."""

    recorder: Recorder
    labels: Mapping[str, Any]
    provider: str
    base_url: Optional[str]


class KnownBatch(NamedTuple):
    """What results do not name themselves."""

    id: str
    completed_at: Optional[int]
    """When the results were complete, milliseconds since 1970."""
    model: Optional[str] = None
    """The model of all its calls."""


_BATCHES_MAX = 10_000
_lock = threading.RLock()
_batches_by_file: Dict[str, KnownBatch] = {}
# When results without a time of their own were first read in this process, milliseconds, by batch or file.
_first_read_at: Dict[str, int] = {}


def note_files(files: Iterable[Any], batch: KnownBatch) -> None:
    """Remembers to which batch files of results belong; values that are no text are left out."""
    for file in filter(None, map(text, files)):
        with _lock:
            if len(_batches_by_file) >= _BATCHES_MAX:
                _batches_by_file.clear()
            _batches_by_file[file] = batch


def batch_of(file_id: str) -> Optional[KnownBatch]:
    """None: the process has not seen the batch of this file."""
    return _batches_by_file.get(file_id)


def first_read_of(name: str) -> int:
    """When results of this batch or file were first read, milliseconds since 1970; the same for every reading."""
    with _lock:
        if len(_first_read_at) >= _BATCHES_MAX:
            _first_read_at.clear()
        return _first_read_at.setdefault(name, now_ms())


def note_batch(value: Any) -> None:
    """Remembers the files of results of OpenAI's batches."""
    answer = fields(value) or {}
    listed = items(answer.get("data")) if answer.get("object") == "list" else [answer]
    for batch in filter(None, map(fields, listed)):
        batch_id = text(batch.get("id"))
        if batch.get("object") != "batch" or batch_id is None:
            continue
        known = KnownBatch(batch_id, millis_of_seconds(batch.get("completed_at")))
        note_files((batch.get("output_file_id"), batch.get("error_file_id")), known)


def record_openai_result(line: bytes, file_id: str, place: BatchPlace) -> None:
    """A line of the results of OpenAI or Mistral; other files have other lines, which are nothing here."""
    if b'"custom_id"' in line:
        record_openai_item(parse(line), batch_of(file_id), file_id, place)


def record_openai_item(value: Any, batch: Optional[KnownBatch], name: str, place: BatchPlace) -> None:
    """One result of OpenAI or Mistral. `name` is of its batch or file."""
    item = fields(value) or {}
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
    made_at = millis_of_seconds(first_number(body.get("created"), body.get("created_at")))
    completed_at = batch.completed_at if batch else None
    place.recorder.record_later(
        LaterCall(
            provider=place.provider,
            base_url=place.base_url,
            model=reading.response_model,
            reading=reading,
            batch_id=batch.id if batch else None,
            is_batch=True,
            at=made_at or completed_at or first_read_of(name),
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
    place.recorder.record_later(
        LaterCall(
            provider=place.provider,
            base_url=place.base_url,
            model=reading.response_model,
            reading=reading,
            batch_id=batch_id,
            is_batch=True,
            at=first_read_of(batch_id),
            status="ok",
            labels=place.labels,
        )
    )
