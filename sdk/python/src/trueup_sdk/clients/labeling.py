"""Lets the methods of a client take the labels of one call: `trueup={"feature": "draft"}`."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import Any, AsyncIterator, Callable, Dict, Iterable, Iterator, Tuple

from ..labels import OPTION, context_labels, merge_labels, with_labels
from .readings import fields

Change = Callable[[Dict[str, Any], Dict[str, str]], Dict[str, Any]]


def take_labels(part: Any, names: Iterable[str], change: Change, is_later: bool = False) -> None:
    """
    Changes the methods of this part of a client. `change` gets the other arguments and the labels, and returns the
    arguments that carry the labels to the request. A later method makes its request after it has returned: it keeps
    the labels of this moment's context.
    """
    _replace(part, names, (change, is_later), lambda method: _taking(method, change, is_later))


def take_labels_as_context(part: Any, names: Iterable[str]) -> None:
    """The same for methods without an argument that would carry the labels: they run within them."""
    _replace(part, names, "context", _within)


# Changed functions by the one of the class and by how it is changed: a client that is copied for each call gets them
# without being wrapped anew.
_changed: Dict[Tuple[Any, Any], Any] = {}


def _replace(part: Any, names: Iterable[str], how: Any, change: Callable[[Any], Any]) -> None:
    for name in names:
        function = getattr(type(part), name, None)
        if name not in getattr(part, "__dict__", {}) and inspect.isfunction(function):
            changed = _changed.get((function, how))
            if changed is None:
                changed = _changed.setdefault((function, how), change(function))
            setattr(part, name, MethodType(changed, part))
        elif callable(getattr(part, name, None)):
            setattr(part, name, change(getattr(part, name)))


def _taking(method: Any, change: Change, is_later: bool) -> Any:
    def changed(kwargs: Dict[str, Any]) -> Dict[str, Any]:
        own = kwargs.pop(OPTION, None)
        if own is None and not is_later:
            return kwargs
        labels = merge_labels(context_labels() if is_later else None, fields(own))
        return change(kwargs, labels) if labels else kwargs

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def make_async(*args: Any, **kwargs: Any) -> Any:
            return await method(*args, **changed(kwargs))

        return make_async

    @functools.wraps(method)
    def make(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **changed(kwargs))

    return make


def _within(method: Any) -> Any:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def make_async(*args: Any, **kwargs: Any) -> Any:
            own = merge_labels(fields(kwargs.pop(OPTION, None)))
            with with_labels(**own):
                result = await method(*args, **kwargs)
            return _still_within(result, own)

        return make_async

    @functools.wraps(method)
    def make(*args: Any, **kwargs: Any) -> Any:
        own = merge_labels(fields(kwargs.pop(OPTION, None)))
        with with_labels(**own):
            result = method(*args, **kwargs)
        return _still_within(result, own)

    return make


def _still_within(result: Any, own: Dict[str, str]) -> Any:
    """A generator makes its request when its reader asks for the first item, which may be in another context."""
    if not inspect.isgenerator(result) and not inspect.isasyncgen(result):
        return result
    labels = merge_labels(context_labels(), own)
    if not labels:
        return result
    return _items(result, labels) if inspect.isgenerator(result) else _AsyncItems(result, labels)


def _items(generator: Any, labels: Dict[str, str]) -> Iterator[Any]:
    try:
        while True:
            with with_labels(**labels):
                try:
                    item = next(generator)
                except StopIteration:
                    return
            yield item
    finally:
        generator.close()


class _AsyncItems(AsyncIterator[Any]):
    """No generator, as the event loop would close one of its own accord, while it closes the one below too."""

    def __init__(self, generator: Any, labels: Dict[str, str]) -> None:
        self._generator = generator
        self._labels = labels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    async def __anext__(self) -> Any:
        with with_labels(**self._labels):
            return await self._generator.__anext__()
