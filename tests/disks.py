"""File systems for tests: calls that fail, crash, or are forgotten unless they were synced."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from omnigraph.storage.objects.faults import Result, Steps


class SystemCalls:
    """The calls of the operating system, each through `call`, which a subclass may change."""

    def call(self, _name: str, _path: str, action: Callable[[], Result], /) -> Result:
        return action()

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        name = "create" if flags & os.O_CREAT else "open"
        return self.call(name, path, lambda: os.open(path, flags, mode))

    def write(self, fd: int, data: memoryview, /) -> int:
        # In small parts, so that there is a moment at which a file is half written.
        return self.call("write", _path_of(fd), lambda: os.write(fd, data[:3]))

    def fsync(self, fd: int, /) -> None:
        self.call("fsync", _path_of(fd), lambda: os.fsync(fd))

    def close(self, fd: int, /) -> None:
        os.close(fd)

    def link(self, source: str, target: str, /) -> None:
        self.call("link", target, lambda: os.link(source, target))

    def replace(self, source: str, target: str, /) -> None:
        self.call("replace", target, lambda: os.replace(source, target))

    def unlink(self, path: str, /) -> None:
        self.call("unlink", path, lambda: os.unlink(path))

    def mkdir(self, path: str, /) -> None:
        self.call("mkdir", path, partial(os.mkdir, path))


class CrashingSystem(SystemCalls):
    """Every call is a step of a scenario."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def call(self, name: str, path: str, action: Callable[[], Result], /) -> Result:
        return self._steps.take(name, path, action)


@dataclass
class FailingSystem(SystemCalls):
    """The nth call fails with an error number; the ones before and after it work."""

    number: int
    error: int
    calls: list[tuple[str, str]] = field(default_factory=list)

    def call(self, name: str, path: str, action: Callable[[], Result], /) -> Result:
        self.calls.append((name, path))
        if len(self.calls) == self.number:
            raise OSError(self.error, os.strerror(self.error))
        return action()


@dataclass
class VolatileSystem(SystemCalls):
    """Knows what a power loss would leave: synced contents, under names in synced directories."""

    synced_files: set[int] = field(default_factory=set)
    synced_names: dict[str, dict[str, int]] = field(default_factory=dict)

    def fsync(self, fd: int, /) -> None:
        path = _path_of(fd)
        if os.path.isdir(path):
            self.synced_names[path] = {item.name: item.inode() for item in os.scandir(path)}
        else:
            self.synced_files.add(os.fstat(fd).st_ino)

    def survives(self, path: str, *, below: str) -> bool:
        """Whether a power loss now would leave the file and every directory on the way to it."""
        if os.stat(path).st_ino not in self.synced_files:
            return False
        while path != below:
            directory, name = os.path.split(path)
            if self.synced_names.get(directory, {}).get(name) != os.stat(path).st_ino:
                return False
            path = directory
        return True


BLOCK_BYTES = 4096


@dataclass
class FullSystem(SystemCalls):
    """A disk that gives a new file or folder a block only while it has one, once it is full.

    What is removed gives its blocks back, also the files that Lance has written.
    """

    folder: Path
    blocks_free: int = 10**9
    refusals: int = 0
    _blocks_used: int = 0

    def fill(self) -> None:
        """Leave no room for anything."""
        self.blocks_free, self._blocks_used = 0, self._count_blocks()

    def write(self, fd: int, data: memoryview, /) -> int:
        self._require(-(-(os.fstat(fd).st_size + len(data)) // BLOCK_BYTES))
        return os.write(fd, data)

    def mkdir(self, path: str, /) -> None:
        self._require(1)
        os.mkdir(path)

    def _require(self, blocks: int) -> None:
        used = self._count_blocks()
        self.blocks_free += self._blocks_used - used
        self._blocks_used = used
        if blocks > self.blocks_free:
            self.refusals += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _count_blocks(self) -> int:
        found = [path.stat() for path in self.folder.rglob("*")]
        return sum(-(-each.st_size // BLOCK_BYTES) for each in found)


def _path_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")
