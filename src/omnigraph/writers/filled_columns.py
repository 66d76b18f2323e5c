"""Columns that a schema change fills with defaults: of required properties that had no values.

A property that is new, or that was nullable, gets its default where an entity lacks a value. What
the default reads is read as the new schema has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.rows.value_conversion import convert_values
from omnigraph.rows.view import table_types_of
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.schema.type_conversions import is_filled
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.writers.default_values import DefaultValues
from omnigraph.writers.validate.existing_data import NeededColumns

_MICROSECONDS_PER_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """The columns of a type that are filled.

    `reads` are columns by those that are filled with what is computed from them, and `sources` the
    columns of the table by those that hold their values after the change.
    """

    shape: TableShape
    defaults: DefaultValues
    reads: Mapping[str, tuple[str, ...]]
    sources: Mapping[str, str]

    def list_sources(self, column: str) -> tuple[str, ...]:
        """The columns of the table that a filled one is made of, ids at least."""
        read = (column, *self.reads[column])
        own = (self.sources[each] for each in read if each in self.sources)
        return tuple(dict.fromkeys((ID_COLUMN, *own)))

    def compute_column(self, column: str, batch: pa.RecordBatch) -> pa.Array:
        """A filled column for rows of the table."""
        names = (column, *self.reads[column])
        fields = [self.shape.schema.field(name) for name in names]
        arrays = [
            convert_values(batch[self.sources[field.name]], field.type)
            if field.name in self.sources
            else pa.nulls(len(batch), field.type)
            for field in fields
        ]
        rows = pa.table([batch[ID_COLUMN], *arrays], names=[ID_COLUMN, *names])
        return self.fill_rows(rows)[column].combine_chunks()

    def fill_rows(self, rows: pa.Table) -> pa.Table:
        """Rows with defaults where they are null; where there is no value, they stay so."""
        absent = {
            column: np.asarray(rows[column].is_null())
            for column in self.reads
            if column in rows.column_names
        }
        return self.defaults.fill_rows(rows, absent, reject=lambda *_: None)

    def extend_needed(self, needed: NeededColumns) -> NeededColumns:
        """What has to be read, so that needed columns can be filled."""
        filled = [each for each in (*needed.values, *needed.for_nulls) if each in self.reads]
        more = [name for column in filled for name in (column, *self.reads[column])]
        values = tuple(dict.fromkeys((*needed.values, *more)))
        return NeededColumns(values, tuple(n for n in needed.for_nulls if n not in values))


def find_filled_columns(
    old: AcceptedSchema,
    old_key: TypeKey,
    new: AcceptedSchema,
    type_key: TypeKey,
    *,
    now: int | None = None,
) -> FilledColumns | None:
    """The columns of a type that another schema fills; None if there is none."""
    type_, before = table_types_of(new.catalog)[type_key], table_types_of(old.catalog)[old_key]
    shape, ids = build_table_shape(new, type_key), new.identities[type_key].property_ids
    names = {number: name for name, number in old.identities[old_key].property_ids.items()}
    known = {shape.columns[name]: old.find_column(ids[name]) for name in ids if ids[name] in names}
    filled = []
    for name, declared in type_.properties.items():
        if declared.default is None or declared.type.is_nullable:
            continue
        former = before.properties[names[ids[name]]] if ids[name] in names else None
        column = shape.columns[name]
        if former is None or (is_filled(former, declared) and known[column] != column):
            filled.append(name)
    if not filled:
        return None
    defaults = DefaultValues.from_type(type_, shape, now)
    reads = {shape.columns[name]: _list_read_columns(defaults, name) for name in filled}
    return FilledColumns(shape, defaults, reads, known)


def find_time_ms(snapshot: Snapshot) -> int:
    """The time that a default reads which is filled after a snapshot."""
    return snapshot.created_at // _MICROSECONDS_PER_MS


def fill_read(
    read: Callable[[NeededColumns], pa.Table], filled: FilledColumns | None
) -> Callable[[NeededColumns], pa.Table]:
    """A reader of columns that fills those that it gives away."""
    if filled is None:
        return read
    return lambda needed: filled.fill_rows(read(filled.extend_needed(needed)))


def _list_read_columns(defaults: DefaultValues, name: str) -> tuple[str, ...]:
    """The columns that a default reads, and those that their defaults read."""
    properties, columns = defaults.type_.properties, defaults.shape.columns
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        default = properties[waiting.pop()].default
        for each in () if default is None else default.members:
            if columns[each] not in found:
                found[columns[each]] = None
                waiting.append(each)
    return tuple(found)
