"""Find the damaged file of a table version by its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from omnigraph.engine.check.check_problems import BLAMED, Failure, Problems, is_interrupt
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.rows.columns import TableShape
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table

# What whole files end with.
_ENDS: Final = {".lance": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1"}

# Larger files are not read only to see how they end.
_READ_MAX: Final = 256 * 1024 * 1024
_NAMED_MAX: Final = 3

# Blobs may be megabytes each, so few are in memory at once.
BLOBS_AT_ONCE: Final = 64


class TornFiles:
    """Looks for the file that made a read fail."""

    def __init__(self, objects: Objects, tables: Tables) -> None:
        self._objects = objects
        self.tables = tables

    @contextmanager
    def explain_failures(self, pin: Pin) -> Iterator[None]:
        """Around reads of a version: a failure of the store names the files to blame."""
        try:
            yield
        except StorageError as error:
            if (named := self.explain_failure(pin, error)) is error:
                raise
            raise named from error

    def explain_failure(self, pin: Pin, error: Failure) -> Failure:
        """The same error; if it is one of the store, with the files to blame."""
        if not isinstance(error, StorageError) or is_interrupt(error):
            return error
        try:
            files = self._find_suspects(pin)
        except OmnigraphError:
            files = []
        unnamed = [file for file in files if file.rpartition("/")[2] not in error.reason]
        if not unnamed:
            return error
        shown = ", ".join(unnamed[:_NAMED_MAX]) + (" …" if len(unnamed) > _NAMED_MAX else "")
        return type(error)(error.operation, error.path, f"{error.reason}{BLAMED}{shown})")

    def _find_suspects(self, pin: Pin) -> list[str]:
        sizes = {entry.path: entry.size for entry in self._objects.list(pin.path)}
        if not sizes:
            return []
        try:
            files = sorted(self.tables.list_references(pin))
        except OmnigraphError:
            name = str(int(pin.version, 16))
            return [path for path in sizes if "/_versions/" in path and name in path]
        torn = [file for file in files if self._is_torn(file, sizes)]
        data = [file for file in files if "/_versions/" not in file]
        return torn or (data if len(data) == 1 else [])

    def _is_torn(self, file: str, sizes: dict[str, int]) -> bool:
        if file.endswith("/"):
            return False
        if file not in sizes:
            return True
        if sizes[file] > _READ_MAX:
            return False
        ends = list(_read_ends(file))
        data = self._objects.get(file) if ends else None
        return bool(ends) and (data is None or not data.endswith(tuple(ends)))


def _read_ends(file: str) -> Iterator[bytes]:
    yield from (end for suffix, end in _ENDS.items() if file.endswith(suffix))


def check_columns(table: Table, shape: TableShape, *, where: str, problems: Problems) -> bool:
    """Whether a table has the columns of its shape, with their types."""
    is_sound = True
    for field in shape.schema:
        if field.name not in table.schema.names:
            problems.add("table", where, f"the column {field.name} is missing")
            is_sound = False
            continue
        found = table.schema.field(field.name)
        if found.type != field.type or is_blob(found) != is_blob(field):
            message = f"column {field.name} is {found.type}, not {field.type}"
            problems.add("table", where, message)
            is_sound = False
    return is_sound


def read_rows(table: Table, shape: TableShape) -> pa.Table:
    """Every row in the columns of the shape; blobs are read and given as empty ones, or nulls."""
    table.require_whole()
    plain = [field.name for field in shape.schema if not is_blob(field)]
    rows = table.scan(columns=[*plain, ROW_ID])
    row_ids = rows[ROW_ID].combine_chunks()
    columns = [
        _read_blob_placeholders(table, field.name, row_ids) if is_blob(field) else rows[field.name]
        for field in shape.schema
    ]
    nullable = [field.with_nullable(True) for field in shape.schema]
    return pa.table(columns, schema=pa.schema(nullable))


def read_blobs(table: Table, column: str, row_ids: pa.Array) -> Iterator[pa.ChunkedArray]:
    """The blobs of some rows in their order, a few at a time."""
    for start in range(0, len(row_ids), BLOBS_AT_ONCE):
        chunk = row_ids[start : start + BLOBS_AT_ONCE]
        yield table.take(chunk, columns=[column])[column]


def _read_blob_placeholders(table: Table, column: str, row_ids: pa.Array) -> pa.ChunkedArray:
    empty = pa.scalar(b"", pa.large_binary())
    chunks = [
        pa.compute.if_else(found.is_valid(), empty, pa.scalar(None, pa.large_binary()))
        for found in read_blobs(table, column, row_ids)
    ]
    pieces = [piece for chunk in chunks for piece in chunk.chunks]
    return pa.chunked_array(pieces, pa.large_binary())
