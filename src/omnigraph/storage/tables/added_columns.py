"""Columns at the end of a table: null in every row, or made of other columns.

What is made of others is written fragment by fragment, as data files beside those there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.blob_columns import to_stored_schema
from omnigraph.storage.tables.pins import list_file_names
from omnigraph.storage.tables.table_reader import field_ids_of

# Gives written files the names they keep.
Seal: TypeAlias = Callable[[Iterable[FragmentMetadata]], list[FragmentMetadata]]


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A new column whose values are made of those of other ones."""

    sources: tuple[str, ...]
    field: pa.Field
    convert: Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class WidenedFragment:
    """A fragment with one more data file, which holds the new columns of its rows."""

    metadata: FragmentMetadata
    file: str


@dataclass(frozen=True, slots=True)
class WidenedTable:
    """What is written for new columns of a table; the list grows while it is written."""

    path: str
    fragments: list[WidenedFragment]


def append_fields(dataset: LanceDataset, schema: pa.Schema, *, path: str) -> LanceSchema:
    """The schema of a version with more columns at the end."""
    for field in schema:
        if not field.nullable or field.name in dataset.schema.names:
            reason = "has to be nullable" if not field.nullable else "is already there"
            raise StorageRefusedError("add_columns", path, f"{field.name} {reason}")
    wider = LanceSchema.from_pyarrow(pa.schema([*dataset.schema, *to_stored_schema(schema)]))
    # Numbered from scratch, fields get their old ids only while none was ever dropped; another id
    # would bind the column to the data of another one.
    if field_ids_of(wider)[: len(dataset.schema)] != field_ids_of(dataset.lance_schema):
        raise StorageRefusedError("add_columns", path, "field ids would change")
    return wider


def write_converted_columns(
    dataset: LanceDataset, columns: Sequence[ConvertedColumn], *, seal: Seal
) -> Iterator[WidenedFragment]:
    """Write the new columns of every fragment of a version; deleted rows stay deleted."""
    schema = pa.schema([each.field for each in columns])
    sources = list(dict.fromkeys(name for each in columns for name in each.sources))

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = [each.convert(batch) for each in columns]
        return pa.RecordBatch.from_arrays(made, schema=schema)

    for fragment in dataset.get_fragments():
        known = set(list_file_names(fragment.metadata))
        merged, _ = fragment.merge_columns(convert, columns=sources)
        fresh = copy(merged)
        names = list_file_names(merged)
        fresh.files = [
            file for file, name in zip(merged.files, names, strict=True) if name not in known
        ]
        [sealed] = seal([fresh])
        [name] = list_file_names(sealed)
        merged.files = [*fragment.metadata.files, *sealed.files]
        yield WidenedFragment(merged, name)
