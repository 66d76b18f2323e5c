"""The bytes of one property of one entity, read in ranges."""

from __future__ import annotations

import hashlib
import io
import json
import operator
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import pyarrow as pa

from omnigraph.errors import (
    BlobNotFoundError,
    InvalidArgumentError,
    RangeNotSatisfiableError,
)
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN

# One request to the store stays small enough for many readers at once; larger blobs take several.
RANGE_BYTES_MAX: Final = 4 * 1024 * 1024
_ETAG_BYTES: Final = 16


class BlobBytes(Protocol):
    """Where the bytes of a blob are read from."""

    def get_size(self) -> int:
        """How many bytes there are."""

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a half-open range, by default all of them."""


class Blob:
    """One blob at one snapshot; it stays what it is, whatever happens to the branch."""

    def __init__(self, stored: BlobBytes, *, etag: str) -> None:
        self._stored = stored
        self.etag = etag

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self._stored.get_size()

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a half-open range, by default all of them."""
        size = self.size
        first = _require_position("start", start)
        last = size if end is None else _require_position("end", end)
        if not 0 <= first <= last <= size:
            raise RangeNotSatisfiableError(first, last, length=size)
        return b"".join(self._iter_ranges(first, last))

    def open(self) -> BinaryIO:
        """A file object that reads the blob as it goes, and seeks; for `with`, zipfile, PIL …"""
        return cast("BinaryIO", io.BufferedReader(_BlobFile(self), RANGE_BYTES_MAX))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the blob to a file, which has its name only when it is complete."""
        target = Path(path)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(self._iter_ranges(0, self.size))
            # A temporary file is for its owner only; this one is a file like any other.
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _iter_ranges(self, first: int, last: int) -> Iterator[bytes]:
        for start in range(first, last, RANGE_BYTES_MAX):
            yield self._stored.read(start, min(last, start + RANGE_BYTES_MAX))

    def __repr__(self) -> str:
        return f"Blob(size={self.size}, etag={self.etag})"


class _BlobFile(io.RawIOBase):
    """A blob as a file that is only read."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._size = blob.size
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a position, which may be beyond the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} is before the start of the blob")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:  # Any: a buffer that can be written to
        """The next bytes, as many as there is room for; none at the end."""
        start = min(self._position, self._size)
        data = self._blob.read(start, min(self._size, start + len(buffer)))
        buffer[: len(data)] = data
        self._position = start + len(data)
        return len(data)


def _require_position(argument: str, value: int) -> int:
    """A place in a blob; numbers of other libraries count too."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgumentError(argument, f"a {type(value).__name__} is not a number") from None


def open_blob(view: View, type_key: TypeKey, *, entity_id: str, property_name: str) -> Blob:
    """A blob of a view, or the reason why there is none."""
    column = _require_blob_column(view, type_key, property_name)
    table = view.open_table(type_key)
    row_id = _find_row_id(table, entity_id)
    if row_id is None:
        reason = f"no {type_key.name} has this id"
        raise BlobNotFoundError(str(type_key), entity_id, property_name, reason=reason)
    stored = table.open_blob(column, row_id)
    if stored is None:
        raise BlobNotFoundError(str(type_key), entity_id, property_name, reason="it is null")
    return Blob(stored, etag=_compute_etag(table, column, row_id))


def _require_blob_column(view: View, type_key: TypeKey, property_name: str) -> str:
    shape = view.get_shape(type_key)
    column = shape.columns.get(property_name)
    if column is None or not pa.types.is_large_binary(shape.schema.field(column).type):
        raise InvalidArgumentError(
            "property", f"'{property_name}' is not a Blob property of {type_key.name}"
        )
    return column


def _find_row_id(table: Table, entity_id: str) -> int | None:
    found = table.find(ID_COLUMN, pa.array([entity_id], pa.utf8()))[ROW_ID]
    return int(found[0].as_py()) if len(found) else None


def _compute_etag(table: Table, column: str, row_id: int) -> str:
    """A strong tag: no two contents share one, because a version of a table never changes.

    Row ids alone do not suffice: two branches give the same one to different rows.
    """
    witness = json.dumps(["omnigraph.blob", table.pin.path, table.pin.version, column, row_id])
    digest = hashlib.sha256(witness.encode()).digest()[:_ETAG_BYTES]
    return f'"{digest.hex()}"'
