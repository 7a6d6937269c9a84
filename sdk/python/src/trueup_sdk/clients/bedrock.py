"""The runtime client of AWS Bedrock in boto3: every method makes its call through `_make_api_call`, which retries within."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Dict, Iterator, Mapping, Optional

from ..calls import CallRequest, OpenCall, Reading, Recorder
from ..labels import own_labels, without_option
from .readings import Fields, fields, first_number, items, number, parse, read_anthropic, text
from .sinks import CallSink
from .tap import JSON, LINES, TAP, Tap, change_class, quietly, release

_OPERATIONS = ("Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream")


def is_bedrock(client: Any) -> bool:
    make = getattr(client, "_make_api_call", None)
    # Clients of other libraries have botocore's methods as coroutines.
    if make is None or inspect.iscoroutinefunction(make):
        return False
    service = getattr(getattr(client, "meta", None), "service_model", None)
    return getattr(service, "service_name", None) == "bedrock-runtime"


def attach_bedrock(client: Any, recorder: Recorder, labels: Mapping[str, Any]) -> None:
    make = client._make_api_call

    @functools.wraps(make)
    def make_api_call(operation_name: str, api_params: Any) -> Any:
        if operation_name not in _OPERATIONS:
            return make(operation_name, api_params)
        call, params = _begin(operation_name, api_params, recorder, labels)
        try:
            answer = make(operation_name, params)
        except BaseException as error:
            if call is not None:
                call.fail(error)
            raise
        if call is not None:
            _read(operation_name, answer, call, recorder)
        return answer

    client._make_api_call = make_api_call


def _begin(
    operation_name: str, params: Any, recorder: Recorder, labels: Mapping[str, Any]
) -> "tuple[Optional[OpenCall], Any]":
    """The open call, and the parameters as AWS may see them. Raises TrueupBlockedError alone."""
    plain = params
    try:
        own = own_labels(params)
        plain = without_option(params)
        body = parse(plain.get("body")) if operation_name.startswith("Invoke") else plain
        given = fields(body) or {}
        request = CallRequest(
            provider="aws_bedrock",
            model=text(plain.get("modelId")) or "unknown",
            base_url=None,
            body=given,
            max_output_tokens=first_number(
                (fields(given.get("inferenceConfig")) or {}).get("maxTokens"),
                given.get("max_tokens"),
                given.get("max_gen_len"),
                (fields(given.get("textGenerationConfig")) or {}).get("maxTokenCount"),
            ),
            client_labels=labels,
            labels=own,
        )
    except Exception as error:  # noqa: BLE001 - a call of an unknown form is made unseen
        recorder.report_error(error)
        return None, plain
    call = recorder.begin(request)
    return call, plain if call.new_model is None else {**plain, "modelId": call.new_model}


def _read(operation_name: str, answer: Any, call: OpenCall, recorder: Recorder) -> None:
    try:
        metadata: Mapping[str, Any] = answer.get("ResponseMetadata") or {}
        reading = Reading(request_id=text(metadata.get("RequestId")))
        if operation_name == "Converse":
            reading.merge(_read_converse(answer))
            if call.captures_payloads:
                reading.answer = {"output": answer.get("output")}
            call.end("ok", reading)
        elif operation_name == "ConverseStream":
            _tap_events(answer.get("stream"), _ConverseSink(call, reading))
        elif operation_name == "InvokeModel":
            headers: Mapping[str, Any] = metadata.get("HTTPHeaders") or {}
            sink = _InvokeSink(call, reading, headers)
            change_class(answer["body"], Tap(JSON, sink), _body_methods)
        else:
            _tap_events(answer.get("body"), _InvokeStreamSink(call, reading))
    except Exception as error:  # noqa: BLE001 - an answer of an unknown form is reported without its content
        recorder.report_error(error)
        call.end("ok")


class _BedrockSink(CallSink):
    def __init__(self, call: OpenCall, reading: Reading) -> None:
        super().__init__(call)
        self.reading = reading

    def see(self, event: Any) -> None:
        """An event of a stream as the client has decoded it."""


class _ConverseSink(_BedrockSink):
    def see(self, event: Any) -> None:
        given = fields(event) or {}
        self.reading.merge(
            Reading(
                usage=fields((fields(given.get("metadata")) or {}).get("usage")),
                stop_reason=text((fields(given.get("messageStop")) or {}).get("stopReason")),
                service_tier=_tier_of(fields(given.get("metadata")) or {}),
            )
        )


class _InvokeStreamSink(_BedrockSink):
    def see(self, event: Any) -> None:
        chunk = fields((fields(event) or {}).get("chunk")) or {}
        self.reading.merge(_read_chunk(parse(chunk.get("bytes")), self.reading))


class _InvokeSink(_BedrockSink):
    def __init__(self, call: OpenCall, reading: Reading, headers: Mapping[str, Any]) -> None:
        super().__init__(call, reading)
        self._headers = headers

    def json(self, value: Any) -> None:
        self.reading.merge(_read_invoked(value))

    def end(self, how: str, error: Optional[BaseException] = None) -> None:
        if self.reading.usage is None:
            self.reading.usage = _counts_of(self._headers)
        # The answer is whole before its body is read.
        self.is_whole = True
        super().end(how, error)


def _read_converse(answer: Mapping[str, Any]) -> Reading:
    return Reading(
        usage=fields(answer.get("usage")),
        stop_reason=text(answer.get("stopReason")),
        service_tier=_tier_of(answer),
    )


def _tier_of(answer: Mapping[str, Any]) -> Optional[str]:
    return text((fields(answer.get("serviceTier")) or {}).get("type"))


def _read_invoked(value: Any) -> Reading:
    """Each maker's own answer; counts are in it or in the headers."""
    answer = fields(value) or {}
    choices, results = items(answer.get("choices")), items(answer.get("results"))
    return Reading(
        usage=fields(answer.get("usage")),
        stop_reason=text(answer.get("stop_reason"))
        or text(answer.get("stopReason"))
        or text((fields(choices[0] if choices else None) or {}).get("finish_reason"))
        or text((fields(results[0] if results else None) or {}).get("completionReason")),
    )


def _counts_of(headers: Mapping[str, Any]) -> Optional[Fields]:
    def counted(name: str) -> Optional[int]:
        value = headers.get(f"x-amzn-bedrock-{name}-token-count")
        return int(value) if isinstance(value, str) and value.isdigit() else None

    given = counted("input")
    return None if given is None else _tokens(given, counted("output"))


def _read_chunk(value: Any, before: Reading) -> Reading:
    event = fields(value) or {}
    if event.get("type") in ("message_start", "message_delta"):
        # The id is Anthropic's, and the model is named by Anthropic's id, which Bedrock's price list does not have.
        reading = read_anthropic(event, before)
        return Reading(usage=reading.usage, stop_reason=reading.stop_reason)
    metrics = fields(event.get("amazon-bedrock-invocationMetrics")) or {}
    given = number(metrics.get("inputTokenCount"))
    if given is None or before.usage is not None:
        return Reading(stop_reason=text(event.get("stop_reason")))
    return Reading(usage=_tokens(given, number(metrics.get("outputTokenCount"))))


def _tokens(given: int, answered: Optional[int]) -> Fields:
    return {"input_tokens": given, "output_tokens": answered or 0}


def _tap_events(stream: Any, sink: _BedrockSink) -> None:
    """Reads along with the reader of botocore's stream of events."""
    events = stream._event_generator
    tap = Tap(LINES, sink)
    change_class(stream, tap, _event_methods)
    stream._event_generator = _events(events, tap)


def _events(events: Any, tap: Tap) -> Iterator[Any]:
    try:
        while True:
            tap.depth += 1
            try:
                event = next(events)
            except StopIteration:
                break
            finally:
                tap.depth -= 1
            yield event
    except GeneratorExit:
        events.close()
        tap.left()
        raise
    except BaseException as error:
        tap.failed(error)
        raise
    tap.done()


def _event_methods(base: Any) -> Dict[str, Any]:
    def _parse_event(self: Any, event: Any) -> Any:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        try:
            parsed = base._parse_event(self, event)
        except BaseException as error:
            if tap is not None:
                tap.failed(error)
            raise
        if tap is not None and isinstance(tap.sink, _BedrockSink):
            sink = tap.sink
            quietly(lambda: sink.see(parsed))
        return parsed

    def close(self: Any) -> None:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        base.close(self)
        if tap is not None:
            tap.left()
            release(self, base)

    return {"_parse_event": _parse_event, "close": close}


def _body_methods(base: Any) -> Dict[str, Any]:
    """The body of an answer in botocore: every way to read it ends in one of these methods."""

    def read(self: Any, amt: Optional[int] = None) -> bytes:
        chunk: bytes = _reading(self, lambda: base.read(self, amt))
        return _seen(self, chunk, is_last=amt is None or (len(chunk) == 0 and amt > 0))

    def readinto(self: Any, buffer: Any) -> int:
        count: int = _reading(self, lambda: base.readinto(self, buffer))
        _seen(self, bytes(memoryview(buffer)[:count]), is_last=count == 0)
        return count

    def readlines(self: Any) -> Any:
        lines = _reading(self, lambda: base.readlines(self))
        _seen(self, b"".join(lines), is_last=True)
        return lines

    def close(self: Any) -> None:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        base.close(self)
        if tap is not None:
            tap.left()
            release(self, base)

    def _seen(self: Any, chunk: bytes, is_last: bool) -> bytes:
        tap: Optional[Tap] = self.__dict__.get(TAP)
        if tap is not None:
            tap.feed(chunk)
            if is_last:
                tap.done()
                release(self, base)
        return chunk

    return {"read": read, "readinto": readinto, "readlines": readlines, "close": close}


def _reading(body: Any, work: Any) -> Any:
    tap: Optional[Tap] = body.__dict__.get(TAP)
    try:
        return work()
    except BaseException as error:
        if tap is not None:
            tap.failed(error)
        raise
