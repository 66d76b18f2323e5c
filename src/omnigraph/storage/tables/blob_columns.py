"""Blob columns: large binaries for the layers above, Lance blobs on disk.

Lance keeps small values inside the data file and large ones in files beside it. It refuses plain
binaries for such a column, and its scans answer with descriptors; both are hidden here.
"""

from __future__ import annotations

import pyarrow as pa
from lance.blob import BlobType

_MARK = {b"omnigraph:blob": b"true"}


def make_blob_field(name: str) -> pa.Field:
    """A nullable column of blobs, for the schema of a table."""
    return pa.field(name, pa.large_binary(), metadata=_MARK)


def is_blob(field: pa.Field) -> bool:
    """Whether the column holds blobs."""
    return (field.metadata or {}).get(b"omnigraph:blob") == b"true"


def to_stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema Lance is given."""
    return pa.schema(
        [
            pa.field(field.name, BlobType(), nullable=field.nullable) if is_blob(field) else field
            for field in schema
        ]
    )


def to_logical_schema(schema: pa.Schema) -> pa.Schema:
    """The schema our callers see."""
    return pa.schema(
        [
            make_blob_field(field.name) if isinstance(field.type, BlobType) else field
            for field in schema
        ]
    )


def to_stored(batch: pa.RecordBatch, schema: pa.Schema, stored: pa.Schema) -> pa.RecordBatch:
    """A batch of one schema with its blob columns as the stored schema has them."""
    columns = [
        _wrap_values(column) if is_blob(field) else column
        for field, column in zip(schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=stored)


def _wrap_values(values: pa.Array) -> pa.Array:
    kind = BlobType()
    absent = (pa.nulls(len(values), part.type) for part in list(kind.storage_type)[1:])
    storage = pa.StructArray.from_arrays(
        [values, *absent], fields=list(kind.storage_type), mask=values.is_null()
    )
    return pa.ExtensionArray.from_storage(kind, storage)
