"""Rows in the form that Lance writes: the columns of a table, in order, with their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from omnigraph.errors import StorageError, StorageRefusedError
from omnigraph.storage.tables.blob_columns import to_stored, to_stored_schema


@contextmanager
def conform_rows(
    rows: pa.Table | pa.RecordBatchReader, schema: pa.Schema, *, path: str
) -> Iterator[pa.Table | pa.RecordBatchReader]:
    """The rows in the form Lance writes; an error of their source is raised as it is."""
    given = _select_schema(rows.schema, schema, path=path)
    stored = to_stored_schema(given)
    failures: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
                yield to_stored(_conform_batch(batch, given, path=path), given, stored)
        except Exception as error:
            # Between here and our caller lie C and Rust, which keep nothing but its text.
            failures.append(error)
            raise

    if isinstance(rows, pa.Table):
        # A stream would call back into Python from Lance's threads, which costs small writes more
        # than everything else.
        yield pa.Table.from_batches(batches(), schema=stored)
        return
    try:
        yield pa.RecordBatchReader.from_batches(stored, batches())
    except StorageError:
        if failures:
            raise failures[0] from None
        raise


def _select_schema(rows: pa.Schema, schema: pa.Schema, *, path: str) -> pa.Schema:
    """The part of the table's schema that the rows fill."""
    unknown = sorted(set(rows.names) - set(schema.names))
    if unknown or len(set(rows.names)) < len(rows.names):
        raise StorageRefusedError(
            "write", path, f"the table has no columns {unknown or rows.names}"
        )
    given = []
    for field in schema:
        if field.name in rows.names:
            found = rows.field(field.name).type
            if found != field.type:
                raise StorageRefusedError(
                    "write", path, f"{field.name} is {field.type}, not {found}"
                )
            given.append(field)
        elif not field.nullable:
            raise StorageRefusedError("write", path, f"{field.name} cannot be left out")
    return pa.schema(given)


def _conform_batch(batch: pa.RecordBatch, given: pa.Schema, *, path: str) -> pa.RecordBatch:
    columns = [batch.column(name) for name in given.names]
    for field, column in zip(given, columns, strict=True):
        if column.null_count and not field.nullable:
            raise StorageRefusedError("write", path, f"{field.name} cannot be null")
    return pa.RecordBatch.from_arrays(columns, schema=given)
