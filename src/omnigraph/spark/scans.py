"""Rows of one type at one snapshot, read by tasks: some fragments of a pinned version each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pyarrow as pa

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import InvalidArgument, StorageError, StorageRefused
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.result_types import ID_FIELD
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.spark.conditions import physical_condition
from omnigraph.spark.values import carried, carried_type
from omnigraph.storage.pins import Pin
from omnigraph.storage.table import Table
from omnigraph.storage.tables import Tables
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.units import UNIT_ROWS

# A type is cut into so many units if it has the fragments, so that every core has some.
UNITS_MIN: Final = 8
_SYSTEM: Final = {ID_FIELD: ID_COLUMN, SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables of a graph are, for any process.

    `here` are those that this process has open. They do not cross processes: others open theirs by
    the address.
    """

    root: str
    # Among them are keys, which no message may show.
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    here: Tables | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Place], tuple[str, tuple[tuple[str, str], ...]]]:
        """The place for another process."""
        return Place, (self.root, self.options)

    @property
    def tables(self) -> Tables:
        """The tables, opened once in a process."""
        return _tables_at(self.root, self.options) if self.here is None else self.here


@lru_cache(maxsize=8)
def _tables_at(root: str, options: tuple[tuple[str, str], ...]) -> Tables:
    return Tables(root, options=dict(options) or None)


def place_here(tables: Tables) -> Place:
    """Where tables are, for tasks that this process may run itself."""
    return Place(tables.root, tuple(sorted((tables.options or {}).items())), tables)


def place_of(tables: Tables) -> Place:
    """Where tables are; refused where another process could not find them."""
    if tables.root.startswith("memory://"):
        raise StorageRefused(
            "spark",
            tables.root,
            "a graph in the memory of this process cannot be read by executors",
            hint="keep the graph in a directory or on s3://",
        )
    return place_here(tables)


@dataclass(frozen=True, slots=True)
class TypeScan:
    """Some columns of the rows of one type that pass an SQL condition.

    `columns` are the names that rows are shown with, and the columns that hold them.
    """

    place: Place
    pin: Pin
    columns: tuple[tuple[str, str], ...]
    condition: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns as they reach Spark."""
        stored = self.place.tables.open(self.pin).schema
        return pa.schema(
            [(name, carried_type(stored.field(column).type)) for name, column in self.columns]
        )

    def batches(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The rows in some fragments."""
        schema = self.schema
        table = self.place.tables.open(self.pin)
        physical = list(dict.fromkeys(column for _, column in self.columns)) or [ID_COLUMN]
        for batch in table.batches(columns=physical, filter=self.condition, fragments=fragments):
            values = [carried(batch.column(column)) for _, column in self.columns]
            if values:
                yield pa.record_batch(values, schema=schema)

    def units(self) -> tuple[tuple[int, ...], ...]:
        """The fragments of each task."""
        return grouped_fragments(self.place.tables.open(self.pin))


def grouped_fragments(table: Table) -> tuple[tuple[int, ...], ...]:
    """The fragments of a version in groups of about equal work, in their order."""
    if not table.count():
        return ()
    rows_max = min(UNIT_ROWS, -(-table.count() // UNITS_MIN))
    groups: list[list[int]] = []
    filled = rows_max
    for fragment_id, fragment in table.fragments.items():
        if filled + fragment.rows > rows_max:
            groups.append([])
            filled = 0
        groups[-1].append(fragment_id)
        filled += fragment.rows
    return tuple(map(tuple, groups))


def type_scan(
    view: View,
    type_key: TypeKey,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 — the name that callers use
) -> TypeScan:
    """A scan of a type: `@id`, for edges `@src` and `@dst`, and all properties but blobs.

    A filter is an SQL condition on these names and on no others.
    """
    known = column_names(view, type_key)
    if columns is None:
        blobs = {name for name, one in view.types[type_key].properties.items() if one.type.is_blob}
        columns = [name for name in known if name not in blobs]
    if not columns:
        raise InvalidArgument("columns", "there is none", hint="name at least one, or pass None")
    for name in columns:
        if name not in known:
            raise InvalidArgument(
                "columns",
                f"{type_key.name} has no property '{name}'",
                hint=did_you_mean(name, list(known)),
            )
    condition = None
    if filter is not None:
        condition = physical_condition(filter, known)
        try:
            view.table(type_key).require_filter(condition)
        except StorageError as error:
            raise InvalidArgument(
                "filter", f"'{filter}' is no condition: {error.reason}"
            ) from error
    pin = view.snapshot.pins[str(type_key)]
    chosen = tuple((name, known[name]) for name in columns)
    return TypeScan(place_of(view.tables), pin, chosen, condition)


def column_names(view: View, type_key: TypeKey) -> dict[str, str]:
    """The column of everything that rows of a type show, by its name."""
    shape = view.shape(type_key)
    system = {name: column for name, column in _SYSTEM.items() if column in shape.schema.names}
    properties = view.types[type_key].properties
    return system | {name: shape.columns[name] for name in properties}
