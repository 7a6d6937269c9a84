"""Reads along with the reader of a stream that a client has already decoded."""

from __future__ import annotations

from typing import Any, AsyncIterator

from ..calls import Reading


def left_as(reading: Reading) -> str:
    """A reader that leaves after the answer's end has only not waited for the end of the stream."""
    return "cancelled" if reading.stop_reason is None else "ok"


class Watcher:
    """Told of each item of a stream before its reader gets it, and of its end."""

    def asked(self) -> None:
        """The reader waits for the next item."""

    def answered(self) -> None:
        """It waits no more."""

    def see(self, item: Any) -> None:
        """The next item."""

    def done(self) -> None:
        """The stream has ended by itself."""

    def left(self) -> None:
        """The reader has closed the stream."""

    def failed(self, error: BaseException) -> None:
        """The stream has ended by an error."""


class AsyncItems(AsyncIterator[Any]):
    """
    The items of an async iterator. It is no generator: the event loop would close one of its own accord, while it
    closes the one below too.
    """

    def __init__(self, items: Any, watcher: Watcher) -> None:
        self._items = items
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._items, name)

    async def __anext__(self) -> Any:
        watcher = self._watcher
        watcher.asked()
        try:
            item = await self._items.__anext__()
        except StopAsyncIteration:
            watcher.answered()
            watcher.done()
            raise
        except BaseException as error:
            watcher.answered()
            watcher.failed(error)
            raise
        watcher.answered()
        watcher.see(item)
        return item

    async def aclose(self) -> None:
        """Closes the stream."""
        try:
            await self._items.aclose()
        finally:
            self._watcher.left()
