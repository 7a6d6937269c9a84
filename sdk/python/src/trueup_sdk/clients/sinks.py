"""What takes the answers of calls as they are read."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

from ..calls import OpenCall, Reading
from .iterate import left_as
from .readings import fields, parse, read_anthropic, read_openai
from .tap import FAILED, LEFT, Sink


class LinesSink(Sink):
    """Passes each line on."""

    def __init__(self, see: Callable[[bytes], None]) -> None:
        self._see = see

    def line(self, data: bytes) -> None:
        self._see(data)


class JsonSink(Sink):
    """Passes the whole answer on."""

    def __init__(self, see: Callable[[Any], None]) -> None:
        self._see = see

    def json(self, value: Any) -> None:
        self._see(value)


class CallSink(Sink):
    """Reads the answer of one call, and records the call at its end."""

    def __init__(self, call: OpenCall) -> None:
        self.call = call
        self.reading = Reading()
        self.is_failed = False
        self.is_whole = False

    def end(self, how: str, error: Optional[BaseException] = None) -> None:
        if how == FAILED and error is not None:
            self.call.fail(error, self.reading)
        elif self.is_failed:
            self.call.end("error", self.reading)
        elif how == LEFT and not self.is_whole:
            self.call.end(left_as(self.reading), self.reading)
        else:
            self.call.end("ok", self.reading)


_USAGE = re.compile(rb'"usage":\s*\{')
_FINISH = re.compile(rb'"finish_reason":\s*"')
ENDED = re.compile(
    rb'"type":\s*"(?:response\.(?:completed|incomplete|failed)|[a-z_.]+\.completed|transcript\.text\.done)"'
)
_FAILED = re.compile(rb'"type":\s*"(?:error|response\.failed)"|^\{\s*"error":\s*\{')


class OpenAiSink(CallSink):
    """OpenAI's answers, and those of its kin."""

    def __init__(self, call: OpenCall) -> None:
        super().__init__(call)
        self._is_first = True
        self._is_background = False

    def json(self, value: Any) -> None:
        answer = fields(value) or {}
        self._is_background = answer.get("background") is True and not answer.get("usage")
        # A body of JSON arrives whole: nothing was read before it.
        self.reading = read_openai(answer)
        if self.call.captures_payloads:
            self.reading.answer = value

    def line(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.is_whole = True
            return
        if _FAILED.search(data):
            self.is_failed = True
        if not (self._is_first or _USAGE.search(data) or _FINISH.search(data) or ENDED.search(data)):
            return
        self._is_first = False
        self.reading.merge(read_openai(parse(data)))

    def end(self, how: str, error: Optional[BaseException] = None) -> None:
        # A background response is recorded when it is fetched at its end.
        if self._is_background and how != FAILED:
            return
        super().end(how, error)


_ERROR = re.compile(rb'"type":\s*"error"')
_MESSAGE = re.compile(rb'"type":\s*"message_(?:start|delta)"')


class AnthropicSink(CallSink):
    """Messages of Anthropic."""

    def json(self, value: Any) -> None:
        self._merge(read_anthropic(value))
        if self.call.captures_payloads:
            self.reading.answer = value

    def line(self, data: bytes) -> None:
        if _ERROR.search(data):
            self.is_failed = True
        if _MESSAGE.search(data):
            self._merge(read_anthropic(parse(data), self.reading))

    def _merge(self, more: Reading) -> None:
        if self.call.request.provider == "aws_bedrock":
            # Named by Anthropic's id, which Bedrock's price list does not have.
            more.response_model = None
        self.reading.merge(more)
