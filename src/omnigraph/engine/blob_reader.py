"""The bytes of one property of one entity, read in ranges."""

from __future__ import annotations

import hashlib
import json
import operator
from typing import Final

import pyarrow as pa

from omnigraph.errors import (
    BlobNotFoundError,
    InvalidArgumentError,
    RangeNotSatisfiableError,
    ResourceLimitError,
)
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import StoredBlob, Table
from omnigraph.versioning.effects import ID_COLUMN

# One read stays small enough to be held by many readers at once; larger blobs take several.
RANGE_BYTES_MAX: Final = 4 * 1024 * 1024
_ETAG_BYTES: Final = 16


class Blob:
    """One blob at one snapshot; it stays what it is, whatever happens to the branch."""

    def __init__(self, stored: StoredBlob, *, etag: str) -> None:
        self._stored = stored
        self.etag = etag

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self._stored.get_size()

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a half-open range, by default all of them; at most 4 MiB in one call."""
        size = self.size
        first = _require_position("start", start)
        last = size if end is None else _require_position("end", end)
        if not 0 <= first <= last <= size:
            raise RangeNotSatisfiableError(first, last, length=size)
        if last - first > RANGE_BYTES_MAX:
            raise ResourceLimitError(
                "one read of a blob, in bytes,",
                limit=RANGE_BYTES_MAX,
                actual=last - first,
                hint="read it in several ranges",
            )
        return self._stored.read(first, last)

    def __repr__(self) -> str:
        return f"Blob(size={self.size}, etag={self.etag})"


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
