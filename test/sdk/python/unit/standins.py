"""
Stand-ins for the official clients and their HTTP responses: as much of them as the adapters meet. The real ones are
tested in test/clients; these show what real ones cannot, and run without them.
"""

import copy
import json


class Response:
    """A response of httpx: read at once, or in chunks."""

    def __init__(self, chunks, *, content_type="application/json", status=200, error=None):
        self.chunks = chunks
        self.headers = {"content-type": content_type}
        self.status_code = status
        self.error = error
        self.is_closed = False

    @property
    def content(self):
        return self._content

    def read(self):
        if not hasattr(self, "_content"):
            self._content = b"".join(self.iter_bytes())
        return self._content

    def iter_raw(self):
        try:
            yield from self.chunks
            if self.error is not None:
                raise self.error
        finally:
            self.close()

    def iter_bytes(self):
        yield from self.iter_raw()

    def close(self):
        self.is_closed = True

    async def aread(self):
        if not hasattr(self, "_content"):
            self._content = b"".join([chunk async for chunk in self.aiter_bytes()])
        return self._content

    async def aiter_raw(self):
        for chunk in self.chunks:
            if callable(chunk):
                await chunk()
            else:
                yield chunk
        if self.error is not None:
            raise self.error
        await self.aclose()

    async def aiter_bytes(self):
        async for chunk in self.aiter_raw():
            yield chunk

    async def aclose(self):
        self.is_closed = True


class Options:
    """The options of one request, as the clients of OpenAI and Anthropic copy them."""

    def __init__(self, method, url, json_data=None, extra_json=None):
        self.method = method
        self.url = url
        self.json_data = json_data
        self.extra_json = extra_json

    def model_copy(self):
        return copy.copy(self)


class _Resource:
    def __init__(self, client, url):
        self._client = client
        self._url = url


class _Base:
    # Attempts that fail before the one with the answer.
    failures = 0
    base_url = "https://api.openai.com/v1/"
    api_key = "sk-test-secret"

    def __init__(self, answer):
        self.answer = answer
        self.sent = []
        self.chat = _Resource(self, "/chat/completions")
        self.chat.completions = self._chat_type(self, "/chat/completions")

    def copy(self, **changes):
        client = type(self)(self.answer)
        client.sent = self.sent
        return client

    def _note(self, options):
        self.sent.append((options.url, {**(options.json_data or {}), **(options.extra_json or {})}))


class _SyncChat(_Resource):
    def create(self, *, extra_body=None, stream=False, **body):
        return self._client.post(self._url, body, extra_body, stream)


class SyncAPIClient(_Base):
    _chat_type = _SyncChat

    def post(self, url, body=None, extra_body=None, stream=False):
        if stream:
            body = {**body, "stream": True}
        return self.request(dict, Options("post", url, body, extra_body), stream=stream)

    def get(self, url):
        return self.request(dict, Options("get", url))

    def request(self, cast_to, options, *, stream=False):
        for _ in range(self.failures):
            self._note(options)
        self._note(options)
        response = self.answer(options)
        if isinstance(response, BaseException):
            raise response
        if not stream:
            response.read()
        return self._process_response(cast_to=cast_to, options=options, response=response, stream=stream)

    def _process_response(self, *, cast_to, options, response, stream):
        return response if stream else json.loads(response.content)


class _AsyncChat(_Resource):
    async def create(self, *, extra_body=None, stream=False, **body):
        return await self._client.post(self._url, body, extra_body, stream)


class AsyncAPIClient(_Base):
    _chat_type = _AsyncChat

    async def post(self, url, body=None, extra_body=None, stream=False):
        if stream:
            body = {**body, "stream": True}
        return await self.request(dict, Options("post", url, body, extra_body), stream=stream)

    async def request(self, cast_to, options, *, stream=False):
        self._note(options)
        response = self.answer(options)
        if hasattr(response, "__await__"):
            response = await response
        if isinstance(response, BaseException):
            raise response
        if not stream:
            await response.aread()
        return await self._process_response(
            cast_to=cast_to, options=options, response=response, stream=stream
        )

    async def _process_response(self, *, cast_to, options, response, stream):
        return response if stream else json.loads(response.content)


for _base in (SyncAPIClient, AsyncAPIClient):
    _base.__module__ = "openai._base_client"


class OpenAI(SyncAPIClient):
    """As the official client: a class of its own above the generator's."""


class AsyncOpenAI(AsyncAPIClient):
    """As the official client: a class of its own above the generator's."""


def a_chat(call_id="chatcmpl-1", finish="stop"):
    return {
        "id": call_id,
        "model": "large-2",
        "choices": [{"message": {"content": "Hi"}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


def whole(body, **more):
    return Response([json.dumps(body).encode()], **more)


def stream_of(*events, **more):
    """One chunk for each event."""
    chunks = [event if isinstance(event, bytes) or callable(event) else sse(event) for event in events]
    return Response(chunks, content_type="text/event-stream", **more)


def sse(event):
    text = event if isinstance(event, str) else json.dumps(event)
    return f"data: {text}\n\n".encode()


def a_chunk(text="H", finish=None, usage=None):
    return {
        "id": "chatcmpl-s",
        "model": "large-2",
        "choices": [{"delta": {"content": text}, "finish_reason": finish}],
        "usage": usage,
    }
