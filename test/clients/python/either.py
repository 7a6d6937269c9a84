"""Calls of sync and of async clients, written once: what a client returns is awaited where it can be."""

import inspect
import json
from contextlib import asynccontextmanager


async def got(value):
    """The value, or what it becomes when it is awaited."""
    return await value if inspect.isawaitable(value) else value


async def items(stream, limit=None):
    """The items of a stream; it is left after `limit` of them."""
    seen = []
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            seen.append(item)
            if len(seen) == limit:
                break
    else:
        for item in stream:
            seen.append(item)
            if len(seen) == limit:
                break
    return seen


@asynccontextmanager
async def entered(manager):
    """The context of a manager of either kind."""
    manager = await got(manager)
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


async def error_of(value):
    """The error of a call, as an application sees it."""
    try:
        await got(value() if callable(value) else value)
    except Exception as error:  # noqa: BLE001 - any error is the answer
        return error
    raise AssertionError("the call has ended without an error")


def text_of(value):
    """A value as text, with its type: equal texts are equal answers."""
    if isinstance(value, (list, tuple)):
        return [text_of(item) for item in value]
    if isinstance(value, BaseException):
        status = getattr(value, "status_code", getattr(value, "code", None))
        return f"{type(value).__module__}.{type(value).__name__} {status} {value}"
    if hasattr(value, "model_dump_json"):
        return f"{type(value).__name__} {value.model_dump_json()}"
    if isinstance(value, dict):
        return {name: text_of(inner) for name, inner in value.items() if name != "ResponseMetadata"}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return f"{type(value).__module__}.{type(value).__name__} {value!r}" if isinstance(value, bytes) else type(value).__name__


def print_seen(seen):
    print(json.dumps(text_of(seen)))
