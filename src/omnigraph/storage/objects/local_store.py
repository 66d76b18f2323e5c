"""Objects in a local directory: hard links for exclusiveness, fsync for durability.

A file appears under its final name only when all its bytes are on the disk. What a crash leaves is
a temporary file, which no reader sees and a later `delete` in that directory removes.
"""

from __future__ import annotations

import errno
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final, Literal, Protocol, TypeVar

from omnigraph.errors import (
    StorageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnknownError,
)
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects.layout import (
    MANIFEST,
    PIPELINES,
    PROPOSALS,
    TEMPORARY_PREFIX,
    Entry,
    require_folder,
    require_path,
)

# Far longer than any write takes: an older temporary file belongs to a process that died.
TEMPORARY_AGE_S = 24 * 3600.0

# The directories a store remembers as synced; forgetting one costs a few extra syncs.
SYNCED_DIRECTORIES_MAX = 10_000

# How often an object is written before its temporary file is gone each time it gets its name.
PUBLISH_TRIES_MAX = 4

# Many files are removed by a few threads, since each waits for the disk; so many at a time by one.
DELETERS_MAX = 4
DELETE_PIECE = 256
Published = TypeVar("Published")
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR)
_KINDS: dict[int, type[StorageError]] = {
    **dict.fromkeys(_REFUSALS, StorageRefusedError),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), StorageFullError),
}

# Indexes, the large blobs of a data file, the notes of a load, and the streams of branches have
# names that are used once; while they are in use they are never empty. Main is never deleted.
_PRIVATE: Final = re.compile(
    r"t/[^/]+/(_indices|data)/[^/]+|__manifest/staging/[^/]+"
    r"|__manifest/(?!main\.0/)[^/]+\.[^/]+(/(checkpoints|floors))?"
)

# A table has its first version as long as it is in use.
_VERSIONS: Final = re.compile(r"(t/[^/]+)/_versions")

# What the graph writes file by file. Lance writes the tables: what it leaves there is listed.
# Anything else below the graph is foreign.
_FOLDERS: Final = (MANIFEST, PIPELINES, PROPOSALS)
_NAME: Final = re.compile(rf"{re.escape(TEMPORARY_PREFIX)}\d+-[0-9a-f]{{16}}")


class System(Protocol):
    """The calls that change a file system, so that tests can watch, fail and interrupt them."""

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        """Open or create a file."""

    def write(self, fd: int, data: memoryview, /) -> int:
        """Write some of the bytes."""

    def fsync(self, fd: int, /) -> None:
        """Force a file or directory to the disk."""

    def close(self, fd: int, /) -> None:
        """Close a file."""

    def link(self, source: str, target: str, /) -> None:
        """Give a file a second name that must be new."""

    def replace(self, source: str, target: str, /) -> None:
        """Rename a file over another one."""

    def unlink(self, path: str, /) -> None:
        """Remove a name."""

    def mkdir(self, path: str, /) -> None:
        """Create a directory."""


class LocalObjects:
    """The object store in one directory, which is created by the first write."""

    def __init__(self, root: str, *, is_durable: bool = True, system: System = os) -> None:
        self.uri = root
        self._is_durable = is_durable
        self._system = system
        self._synced: LruCache[str, Literal[True]] = LruCache(SYNCED_DIRECTORIES_MAX)

    def get(self, path: str) -> bytes | None:
        """The whole object, or None when it is absent."""
        return self._read(path, 0, -1)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object that has them, or None when it is absent."""
        return self._read(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object, durably; True if and only if this call created it."""
        target = self._target_of(path)
        if os.path.exists(target):
            # A late writer finds out before it pays for a synced file; the link decides the rest.
            return False
        is_created = self._publish_file(
            "put_new", target, data, self._link, is_synced=self._is_durable
        )
        if is_created:
            self._make_durable("put_new", target)
        return is_created

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object whole; what is derived need not survive a power loss."""
        target = self._target_of(path)
        self._publish_file("put", target, data, self._system.replace, is_synced=False)

    def replace(self, path: str, data: bytes) -> None:
        """Replace an object whole, durably."""
        target = self._target_of(path)
        self._publish_file(
            "replace", target, data, self._system.replace, is_synced=self._is_durable
        )
        self._make_durable("replace", target)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """Every object at any depth below a folder, in byte order, above the path `after`."""
        folder = require_folder(prefix)
        with translate_errors("list", f"{self.uri}/{folder}"):
            yield from self._walk(
                f"{folder}/" if folder else "", require_path(after) if after else ""
            )

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; absent ones are fine."""
        targets = [self._target_of(path) for path in paths]
        pieces = [targets[at : at + DELETE_PIECE] for at in range(0, len(targets), DELETE_PIECE)]
        if len(pieces) < 2:
            self._unlink(targets)
        else:
            with ThreadPoolExecutor(max_workers=DELETERS_MAX) as deleters:
                list(deleters.map(self._unlink, pieces))
        for directory in sorted(set(map(os.path.dirname, targets))):
            self._sweep(directory)
            prune_folder(self.uri, directory)

    def _unlink(self, targets: Iterable[str]) -> None:
        for target in targets:
            # Not synced: what a power loss brings back is garbage again, not a lost write.
            with (
                translate_errors("delete", target),
                suppress(FileNotFoundError, NotADirectoryError),
            ):
                self._system.unlink(target)

    def _read(self, path: str, start: int, length: int) -> bytes | None:
        target = self._target_of(path)
        with translate_errors("get", target):
            try:
                # One call of the system may give less than it was asked for: buffers go on.
                with open(target, "rb", buffering=0 if length < 0 else -1) as file:
                    file.seek(start)
                    return file.read(length)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def _target_of(self, path: str) -> str:
        return f"{self.uri}/{require_path(path)}"

    def _publish_file(
        self,
        operation: str,
        target: str,
        data: bytes,
        name: Callable[[str, str], Published],
        *,
        is_synced: bool,
    ) -> Published:
        """Write an object, and give it its name once all of its bytes are there."""
        with translate_errors(operation, target):
            for _ in range(PUBLISH_TRIES_MAX - 1):
                # A clean-up that has no grace may have removed the temporary file, or its empty
                # directory.
                with (
                    suppress(FileNotFoundError),
                    self._stage_file(target, data, is_synced) as written,
                ):
                    return name(written, target)
            with self._stage_file(target, data, is_synced) as written:
                return name(written, target)

    @contextmanager
    def _stage_file(self, target: str, data: bytes, is_synced: bool) -> Iterator[str]:
        """A temporary file beside the target that holds the data; gone at the end."""
        directory = os.path.dirname(target)
        temporary = f"{directory}/{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        try:
            # Bytes first, name second: a crash here leaves a file that no reader sees.
            self._write(temporary, data, is_synced=is_synced)
            yield temporary
        finally:
            # A dying process may leave it; so may a full or failing disk.
            with suppress(OSError):
                self._system.unlink(temporary)

    def _write(self, temporary: str, data: bytes, *, is_synced: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = self._system.open(temporary, flags, 0o666)
        except FileNotFoundError:
            self._create_directory(os.path.dirname(temporary))
            descriptor = self._system.open(temporary, flags, 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._system.write(descriptor, rest) :]
            if is_synced:
                self._system.fsync(descriptor)
        finally:
            self._system.close(descriptor)

    def _link(self, temporary: str, target: str) -> bool:
        """Publish under the final name; the file system admits one winner."""
        try:
            self._system.link(temporary, target)
        except FileExistsError:
            # A network file system may repeat a link whose answer was lost, and meet its own.
            return os.stat(temporary).st_nlink > 1
        except OSError as error:
            if error.errno in _NO_HARD_LINKS:
                # Creating the target first and filling it later would show readers a part of it.
                raise StorageRefusedError(
                    "put_new",
                    target,
                    f"this file system has no hard links ({error.strerror})",
                    hint="keep the graph on a local file system such as ext4, XFS or APFS",
                ) from error
            raise
        return True

    def _make_durable(self, operation: str, target: str) -> None:
        """Sync the directory, and once per directory the names that lead to it."""
        if not self._is_durable:
            return
        directory = os.path.dirname(target)
        try:
            self._sync(directory)
            if directory not in self._synced:
                self._sync_ancestors(directory)
        except OSError as error:
            # The object is visible, others may build on it, and a power loss may still undo it.
            raise StorageUnknownError(operation, target, f"not synced: {error.strerror}") from error

    def _sync_ancestors(self, directory: str) -> None:
        # Another process may have made the directory, and may die before it syncs the parent.
        ancestor = directory
        while ancestor.startswith(self.uri):
            ancestor = os.path.dirname(ancestor)
            self._sync(ancestor)
        self._synced.put(directory, True)

    def _sync(self, directory: str) -> None:
        descriptor = self._system.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._system.fsync(descriptor)
        finally:
            self._system.close(descriptor)

    def _create_directory(self, directory: str) -> None:
        missing = []
        while not os.path.isdir(directory):
            missing.append(directory)
            directory = os.path.dirname(directory)
        for name in reversed(missing):
            with suppress(FileExistsError):
                self._system.mkdir(name)
            if self._is_durable:
                # A synced file in a directory whose own name is lost would be lost with it.
                self._sync(os.path.dirname(name))

    def _walk(self, folder: str, after: str) -> Iterator[Entry]:
        """Depth first; a directory sorts as its name with a slash, which is the byte order."""
        for path in _list_names(self.uri, folder, after):
            if path.endswith("/"):
                yield from self._walk(path, after)
                continue
            with suppress(FileNotFoundError):
                found = os.stat(f"{self.uri}/{path}")
                yield Entry(path, found.st_size, found.st_mtime)

    def _sweep(self, directory: str) -> None:
        """Remove temporary files that dead processes left; another sweep may be faster."""
        oldest = time.time() - TEMPORARY_AGE_S
        with suppress(OSError), os.scandir(directory) as found:
            for item in found:
                if item.name.startswith(TEMPORARY_PREFIX) and item.stat().st_mtime < oldest:
                    self._system.unlink(item.path)


def _list_names(root: str, folder: str, after: str) -> list[str]:
    """The sorted paths of a folder that are, or may hold, something above `after`."""
    try:
        with os.scandir(f"{root}/{folder}") as found:
            paths = sorted(
                f"{folder}{item.name}/" if item.is_dir() else f"{folder}{item.name}"
                for item in found
                if not item.name.startswith(TEMPORARY_PREFIX)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
    first = bisect_right(paths, after)
    # The directory that holds `after` sorts below it, and may go on above it.
    if first and paths[first - 1].endswith("/") and after.startswith(paths[first - 1]):
        first -= 1
    return paths[first:]


@contextmanager
def translate_errors(operation: str, path: str) -> Iterator[None]:
    """Turn an error of the operating system into one of ours."""
    try:
        yield
    except OSError as error:
        kind = _KINDS.get(error.errno or 0, StorageError)
        raise kind(operation, path, error.strerror or str(error)) from error


def prune_folder(root: str, directory: str) -> None:
    """Remove a directory whose objects were deleted, if it is empty and its name is used up."""
    name = os.path.relpath(directory, root)
    with suppress(OSError):
        if _PRIVATE.fullmatch(name):
            os.rmdir(directory)
            parent = os.path.dirname(directory)
            if _PRIVATE.fullmatch(os.path.relpath(parent, root)):
                os.rmdir(parent)
        elif found := _VERSIONS.fullmatch(name):
            os.rmdir(directory)
            _remove_empty(os.path.join(root, found[1]))


def _remove_empty(directory: str) -> None:
    for folder, _, _ in os.walk(directory, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)


def list_temporaries(uri: str) -> Iterator[Entry]:
    """The temporary files of the graph at an address; only a local one has any."""
    if "://" in uri:
        return
    for own in _FOLDERS:
        for directory, folders, files in os.walk(f"{uri}/{own}"):
            folders.sort()
            for name in sorted(files):
                if _NAME.fullmatch(name):
                    path = f"{directory}/{name}"
                    # The process that writes it may be done with it.
                    with suppress(FileNotFoundError):
                        found = os.stat(path)
                        yield Entry(os.path.relpath(path, uri), found.st_size, found.st_mtime)


def remove_temporaries(uri: str, paths: Iterable[str]) -> None:
    """Remove temporary files; absent ones are fine, and what cannot be removed stays."""
    for path in paths:
        with suppress(OSError):
            os.unlink(f"{uri}/{path}")
        prune_folder(uri, os.path.dirname(f"{uri}/{path}"))
