"""Files that a graph is loaded from: on the disk or on S3, listed, opened and read in parts.

They do not belong to the graph: nothing here writes, and a file that changes while it is read is
refused as far as that can be seen.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, cast

import obstore
import pyarrow as pa
from obstore.store import ObjectStore

from omnigraph.errors import StorageError, StorageRefusedError
from omnigraph.storage.objects.remote_store import create_s3_client, reason_of

S3: Final = "s3://"
_PATTERN: Final = "*?["
# Part files are data; these are notes that their writers leave beside them.
_HIDDEN: Final = ("_", ".")
# A request costs as much time as some megabytes.
_READ_BYTES: Final = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was found: `mark` changes when its content does.

    `path` is where a file of the disk is, for a process that works in another folder.
    """

    uri: str
    size: int
    mark: str
    path: str = ""


def list_source_files(uri: str, options: Mapping[str, str]) -> tuple[list[SourceFile], str]:
    """The files that an address stands for, by name, and what to say when there is none.

    An address is a file, a folder, whose hidden files do not count, or a pattern.
    """
    if uri.startswith(S3):
        return _list_s3_files(uri, options)
    if os.path.isfile(uri):
        return [_stat_file(uri)], ""
    if os.path.isdir(uri):
        found = (entry.path for entry in os.scandir(uri) if entry.is_file())
        return _sort_files(map(_stat_file, _exclude_hidden(found))), "no files are in the folder"
    if any(sign in uri for sign in _PATTERN):
        found = (path for path in glob.glob(uri) if os.path.isfile(path))
        return _sort_files(map(_stat_file, _exclude_hidden(found))), "no file matches the pattern"
    return [], "no such file"


@contextmanager
def open_source_file(file: SourceFile, options: Mapping[str, str]) -> Iterator[pa.NativeFile]:
    """A file, for reading from anywhere in it; refused if it is not the one that was found."""
    if file.uri.startswith(S3):
        store, path = _open_bucket(file.uri, options)
        with _translate_read_errors(file.uri):
            now = _build_source_file(file.uri, obstore.head(store, path))
        _require_same(file, now)
        source = io.BufferedReader(_Ranges(store, path, file), _READ_BYTES)
        with pa.PythonFile(source, mode="r") as stream:
            yield stream
        return
    _require_same(file, _stat_file(file.uri, file.path))
    with pa.OSFile(file.path, "rb") as stream:
        yield stream


def _stat_file(uri: str, path: str | None = None) -> SourceFile:
    place = path or os.path.abspath(uri)
    found = os.stat(place)
    return SourceFile(uri, found.st_size, str(found.st_mtime_ns), place)


def _list_s3_files(uri: str, options: Mapping[str, str]) -> tuple[list[SourceFile], str]:
    bucket, _, key = uri.removeprefix(S3).partition("/")
    store, _ = _open_bucket(uri, options)
    root = f"{S3}{bucket}/"
    has_pattern = any(sign in key for sign in _PATTERN)
    with _translate_read_errors(uri):
        if not has_pattern and not key.endswith("/"):
            try:
                return [_build_source_file(uri, obstore.head(store, key))], ""
            except FileNotFoundError:
                pass
        start = min((key.find(sign) for sign in _PATTERN if sign in key), default=len(key))
        folder = key[:start].rpartition("/")[0] if has_pattern else key.rstrip("/")
        depth = key.count("/") if has_pattern else folder.count("/") + bool(folder)
        found = [
            _build_source_file(root + each["path"], each)
            for page in obstore.list(store, folder or None)
            for each in page
            if each["path"].count("/") == depth
            and (not has_pattern or fnmatchcase(each["path"], key))
        ]
    shown = set(_exclude_hidden(each.uri for each in found))
    problem = "no file matches the pattern" if has_pattern else "no such file, and none is below it"
    return _sort_files(each for each in found if each.uri in shown), problem


def _build_source_file(
    uri: str, entry: Any
) -> SourceFile:  # Any: obstore types its entries loosely
    return SourceFile(uri, entry["size"], str(entry.get("e_tag") or entry["last_modified"]))


def _open_bucket(uri: str, options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    bucket, _, key = uri.removeprefix(S3).partition("/")
    return create_s3_client(f"{S3}{bucket}", options), key


def _exclude_hidden(paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if not path.rpartition("/")[2].startswith(_HIDDEN))


def _sort_files(files: Iterable[SourceFile]) -> list[SourceFile]:
    return sorted(files, key=lambda file: file.uri)


def _require_same(file: SourceFile, now: SourceFile) -> None:
    if now != file:
        raise StorageRefusedError("read", file.uri, "the file changed while it was being loaded")


@contextmanager
def _translate_read_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StorageRefusedError("read", uri, "no such file") from error
    except obstore.exceptions.BaseError as error:
        raise StorageError("read", uri, reason_of(error)) from error


class _Ranges(io.RawIOBase):
    """An object of a store as a file: every read is a request for a range."""

    def __init__(self, store: ObjectStore, path: str, file: SourceFile) -> None:
        self._store = store
        self._path = path
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on from another place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        """The place of the next byte."""
        return self._place

    def readinto(self, buffer: Any, /) -> int:  # Any: whatever has the buffer protocol
        """Fill a buffer as far as the object goes."""
        view = memoryview(buffer).cast("B")
        end = min(self._place + len(view), self._file.size)
        if end <= self._place:
            return 0
        with _translate_read_errors(self._file.uri):
            found = obstore.get_range(self._store, self._path, start=self._place, end=end)
        data = memoryview(cast("Any", found))  # the buffer protocol is not in its types
        view[: len(data)] = data
        self._place += len(data)
        return len(data)
