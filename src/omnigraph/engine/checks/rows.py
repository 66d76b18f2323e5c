"""The rows of a pinned table, read completely: what cannot be read is found here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from omnigraph.engine.checks.problems import Problems
from omnigraph.execution.columns import TableShape
from omnigraph.storage.blobs import is_blob
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import Table

# Blobs may be megabytes each, so few are in memory at once.
BLOBS_AT_ONCE: Final = 64


def check_columns(table: Table, shape: TableShape, *, where: str, problems: Problems) -> bool:
    """Whether a table has the columns of its shape, with their types."""
    is_sound = True
    for field in shape.schema:
        if field.name not in table.schema.names:
            problems.add("table", where, f"there is no column {field.name}")
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
