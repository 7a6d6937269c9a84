"""
Files of events, one a line. A line is written before the application has its answer, so that neither a killed process
nor a service that is away loses it; a line that is sent twice counts once. Processes of this package and of the one for
JavaScript can share a folder: the name of a file names its owner.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import threading
import time
from typing import List, Optional, Set

# A file of this size is closed and a new one begun.
_FILE_BYTES_MAX = 4_194_304
# The files of another machine's process are taken over when they were not touched for so long, seconds.
_FOREIGN_IDLE_SECONDS = 600
_TOUCH_SECONDS = 60
_NAME = re.compile(r"trueup-(.+)-([0-9]+)-([0-9]+)-([0-9]+)-[0-9]+\.ndjson")
_OWNERLESS = "ownerless-0-0-0"

# Files of this process, by whichever spool: a file with the process's number that is not here is an earlier process's.
_own_paths: Set[str] = set()
_own_pid = os.getpid()


class _File:
    __slots__ = ("confirmed", "path", "size")

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        # Bytes of it that have arrived.
        self.confirmed = 0


class Spool:
    """Events on disk until the service has them. Usable from many threads."""

    def __init__(self, folder: str, bytes_max: int) -> None:
        """`bytes_max` counts all files together. Raises OSError where the folder cannot be used."""
        self._folder = os.path.abspath(folder)
        self._bytes_max = bytes_max
        self._host = re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())[:64] or "host"
        self._lock = threading.RLock()
        self._start_afresh()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._take_over()

    def _start_afresh(self) -> None:
        global _own_pid
        if _own_pid != os.getpid():
            _own_pid = os.getpid()
            _own_paths.clear()
        self._owner = f"{self._host}-{_own_pid}-0-{int(time.time())}"
        # Oldest first; the last one is written where `_descriptor` is set.
        self._files: List[_File] = []
        self._descriptor: Optional[int] = None
        self._number = 0
        self._bytes = 0
        self._read_bytes = 0
        self._touched_at = 0.0

    def after_fork(self) -> None:
        """In a forked process: the files are the parent's."""
        descriptor = self._descriptor
        self._lock = threading.RLock()
        self._start_afresh()
        if descriptor is not None:
            os.close(descriptor)

    @property
    def is_empty(self) -> bool:
        return self._bytes == 0

    def append(self, line: str) -> None:
        """Writes one event before it returns. Raises OSError where the disk refuses or the spool is full."""
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        with self._lock:
            if self._bytes + len(data) > self._bytes_max:
                raise OSError("the spool is full")
            file, descriptor = self._writable()
            written = 0
            try:
                while written < len(data):
                    written += os.write(descriptor, data[written:])
            finally:
                file.size += written
                self._bytes += written

    def read(self, lines_max: int, bytes_max: int) -> List[str]:
        """The oldest events that are not sent, at most so many and so many bytes; then call `confirm`."""
        with self._lock:
            self._touch()
            self._read_bytes = 0
            if not self._files:
                return []
            file = self._files[0]
            try:
                data = _read_part(file, min(file.size - file.confirmed, bytes_max))
                if b"\n" not in data:
                    # A line longer than the limit is read whole.
                    data = _read_part(file, file.size - file.confirmed)
            except FileNotFoundError:
                # The folder was cleaned.
                data = b""
            lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1][:lines_max]
            self._read_bytes = sum(len(line) + 1 for line in lines)
            if not lines:
                self._drop(file)
            # A process that was killed within a write leaves a part of a line, which is no event.
            return [line.decode("utf-8", "replace") for line in lines if _is_json(line)]

    def confirm(self) -> None:
        """The events of the last `read` have arrived."""
        with self._lock:
            if not self._files or self._read_bytes == 0:
                return
            file = self._files[0]
            file.confirmed += self._read_bytes
            self._bytes -= self._read_bytes
            self._read_bytes = 0
            if file.confirmed >= file.size:
                self._drop(file)

    def close(self) -> None:
        """What is left belongs to nobody, so that the next one that opens the folder takes it over."""
        with self._lock:
            self._close_descriptor()
            for file in list(self._files):
                if file.size == file.confirmed:
                    self._drop(file)
                    continue
                _own_paths.discard(file.path)
                try:
                    os.rename(file.path, self._path(_OWNERLESS, random.randrange(2**47)))
                except OSError:
                    # The folder was cleaned.
                    pass
            self._files = []
            self._bytes = 0

    def _path(self, owner: str, number: int) -> str:
        return os.path.join(self._folder, f"trueup-{owner}-{number}.ndjson")

    def _writable(self) -> "tuple[_File, int]":
        if self._descriptor is not None:
            last = self._files[-1]
            if last.size < _FILE_BYTES_MAX:
                return last, self._descriptor
        self._close_descriptor()
        path = self._next_path()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._descriptor = descriptor
        file = _File(path, 0)
        self._files.append(file)
        return file, descriptor

    def _next_path(self) -> str:
        while True:
            self._number += 1
            path = self._path(self._owner, self._number)
            if path not in _own_paths and not os.path.exists(path):
                _own_paths.add(path)
                return path

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _drop(self, file: _File) -> None:
        if self._descriptor is not None and file is self._files[-1]:
            self._close_descriptor()
        self._bytes -= file.size - file.confirmed
        self._files.remove(file)
        _own_paths.discard(file.path)
        try:
            os.unlink(file.path)
        except OSError:
            # Another process has removed it.
            pass

    def _take_over(self) -> None:
        """The files of processes that have ended become this process's. Of two that try, the rename lets one win."""
        for name in sorted(os.listdir(self._folder)):
            match = _NAME.fullmatch(name)
            path = os.path.join(self._folder, name)
            if match is None or self._is_owned(path, match):
                continue
            own = self._next_path()
            try:
                os.rename(path, own)
                size = os.stat(own).st_size
            except OSError:
                # Another process was first.
                _own_paths.discard(own)
                continue
            self._files.append(_File(own, size))
            self._bytes += size

    def _is_owned(self, path: str, match: "re.Match[str]") -> bool:
        """Whether a process that may live owns the file."""
        host, pid = match.group(1), int(match.group(2))
        if pid == 0:
            return False
        try:
            if host != self._host:
                return time.time() - os.stat(path).st_mtime < _FOREIGN_IDLE_SECONDS
            # The same number at another time is another process: in containers every one has the number 1.
            return path in _own_paths if pid == _own_pid else _is_alive(pid)
        except OSError:
            return False

    def _touch(self) -> None:
        """Shows other machines that share the folder that this process lives."""
        now = time.monotonic()
        if now - self._touched_at < _TOUCH_SECONDS and self._touched_at > 0:
            return
        self._touched_at = now
        for file in self._files:
            try:
                os.utime(file.path)
            except OSError:
                # The folder was cleaned: the next write fails and says so.
                pass


def _read_part(file: _File, size: int) -> bytes:
    with open(file.path, "rb") as opened:
        opened.seek(file.confirmed)
        return opened.read(max(size, 0))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
        return True
    except ValueError:
        return False


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        # Signal 0 would end the process there; its files are taken over when they were not touched for long.
        return True
    try:
        os.kill(pid, 0)
        return True
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
