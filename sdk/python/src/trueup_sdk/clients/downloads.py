"""Reads along with files that the client of Google downloads: as bytes, into a file, or into a writable object."""

from __future__ import annotations

import asyncio
import functools
import os
from typing import Any, Callable, Dict, Mapping, Optional

from .sinks import LinesSink
from .tap import LINES, Tap, quietly

See = Callable[[bytes], None]

# A file is read in parts of this size.
_PART_BYTES = 1_048_576


def attach_downloads(api: Any, see_of: Callable[[str], Optional[See]]) -> None:
    """`see_of` returns what takes the lines of the file at a path of the API; None: the file is not read along."""
    make, make_async = getattr(api, "download_file", None), getattr(api, "async_download_file", None)
    if make is None or make_async is None:
        return

    @functools.wraps(make)
    def download_file(path: str, *args: Any, **kwargs: Any) -> Any:
        download = _Download(see_of, path, kwargs)
        try:
            content = make(path, *args, **download.arguments)
            quietly(lambda: download.read(content))
        finally:
            download.end()
        return content

    @functools.wraps(make_async)
    async def async_download_file(path: str, *args: Any, **kwargs: Any) -> Any:
        download = _Download(see_of, path, kwargs)
        try:
            content = await make_async(path, *args, **download.arguments)
            if download.is_to_be_read:
                await _read_beside(download, content)
        finally:
            download.end()
        return content

    api.download_file = download_file
    api.async_download_file = async_download_file


async def _read_beside(download: _Download, content: Any) -> None:
    """Files are read outside of the event loop."""
    try:
        await asyncio.to_thread(quietly, lambda: download.read(content))
    except RuntimeError:
        # Another event loop than asyncio's, or one that ends.
        quietly(lambda: download.read(content))


class _Download:
    """One download. Only a file of JSON lines is read along: a film has no lines."""

    def __init__(self, see_of: Callable[[str], Optional[See]], path: str, arguments: Mapping[str, Any]) -> None:
        self.arguments: Dict[str, Any] = dict(arguments)
        self._see: Optional[See] = None
        self._tap: Optional[Tap] = None
        self._has_begun = False
        quietly(lambda: self._begin(see_of(path)))

    def _begin(self, see: Optional[See]) -> None:
        self._see = see
        self._destination = self.arguments.get("destination")
        self._is_written = self._destination is not None and not isinstance(self._destination, (str, os.PathLike))
        if see is not None and self._is_written and hasattr(self._destination, "write"):
            self.arguments["destination"] = _Written(self._destination, self._feed)

    @property
    def is_to_be_read(self) -> bool:
        """Whether the content is read once it has arrived, and not while it is written."""
        return self._see is not None and not self._is_written

    def read(self, content: Any) -> None:
        """Reads content that has arrived whole, or the file into which it was written."""
        if not self.is_to_be_read:
            return
        if self._destination is None:
            for start in range(0, len(content), _PART_BYTES):
                if not self._feed(content[start : start + _PART_BYTES]):
                    return
        elif os.path.isfile(self._destination):
            # A pipe would be read twice.
            with open(self._destination, "rb") as file:
                while self._feed(file.read(_PART_BYTES)):
                    pass

    def _feed(self, part: bytes) -> bool:
        """False: there is no more, or nothing in it."""
        if not self._has_begun:
            self._has_begun = True
            if self._see is not None and part.startswith(b"{"):
                self._tap = Tap(LINES, LinesSink(self._see))
        if self._tap is None or not part:
            return False
        self._tap.feed(part)
        return True

    def end(self) -> None:
        if self._tap is not None:
            self._tap.done()


class _Written:
    """An object into which a client writes."""

    def __init__(self, destination: Any, feed: Callable[[bytes], Any]) -> None:
        self._destination = destination
        self._feed = feed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._destination, name)

    def write(self, part: bytes) -> Any:
        """Returns what the object's own method returns, which may have to be awaited."""
        written = self._destination.write(part)
        quietly(lambda: self._feed(part))
        return written
