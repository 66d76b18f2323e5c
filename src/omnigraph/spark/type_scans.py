"""Rows of one type at one snapshot, read by tasks: some fragments of a pinned version each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.bulk.splits import group_fragments
from omnigraph.errors import InvalidArgumentError, StorageError, StorageRefusedError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.spark.spark_types import carrier_type_of, to_carrier
from omnigraph.spark.sql_conditions import translate_condition
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.store_address import StoreAddress, make_local_address
from omnigraph.versioning.effects import ID_COLUMN

_SYSTEM: Final = {ID_FIELD: ID_COLUMN, SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}


def address_of(tables: Tables) -> StoreAddress:
    """Where tables are; refused where another process could not find them."""
    if tables.root.startswith("memory://"):
        raise StorageRefusedError(
            "spark",
            tables.root,
            "a graph in the memory of this process cannot be read by executors",
            hint="keep the graph in a directory or on s3://",
        )
    return make_local_address(tables)


@dataclass(frozen=True, slots=True)
class TypeScan:
    """Some columns of the rows of one type that pass an SQL condition.

    `columns` are the names that rows are shown with, and the columns that hold them.
    """

    address: StoreAddress
    pin: Pin
    columns: tuple[tuple[str, str], ...]
    condition: str | None = None
    # Whether nothing is left out, but for blobs.
    has_all_columns: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns as they reach Spark."""
        stored = self.address.tables.open(self.pin).schema
        return pa.schema(
            [(name, carrier_type_of(stored.field(column).type)) for name, column in self.columns]
        )

    def read_batches(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The rows in some fragments."""
        schema = self.schema
        table = self.address.tables.open(self.pin)
        physical = list(dict.fromkeys(column for _, column in self.columns)) or [ID_COLUMN]
        if self.has_all_columns and self.condition is None:
            # All of it leaves the graph.
            table.require_whole(fragments)
        for batch in table.scan_batches(
            columns=physical, filter=self.condition, fragments=fragments
        ):
            values = [to_carrier(batch.column(column)) for _, column in self.columns]
            if values:
                yield pa.record_batch(values, schema=schema)

    def plan_splits(self) -> tuple[tuple[int, ...], ...]:
        """The fragments of each task."""
        return group_fragments(self.address.tables.open(self.pin))


def build_type_scan(
    view: View,
    type_key: TypeKey,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 — the name that callers use
) -> TypeScan:
    """A scan of a type: `@id`, for edges `@src` and `@dst`, and all properties but blobs.

    A filter is an SQL condition on these names and on no others.
    """
    known = map_column_names(view, type_key)
    has_all_columns = columns is None
    if columns is None:
        blobs = {name for name, one in view.types[type_key].properties.items() if one.type.is_blob}
        columns = [name for name in known if name not in blobs]
    if not columns:
        raise InvalidArgumentError(
            "columns", "there is none", hint="name at least one, or pass None"
        )
    for name in columns:
        if name not in known:
            raise InvalidArgumentError(
                "columns",
                f"{type_key.name} has no property '{name}'",
                hint=suggest_similar(name, list(known)),
            )
    condition = None
    if filter is not None:
        condition = translate_condition(filter, known)
        try:
            view.open_table(type_key).require_filter(condition)
        except StorageError as error:
            raise InvalidArgumentError(
                "filter", f"'{filter}' is not a condition: {error.reason}"
            ) from error
    pin = view.snapshot.pins[str(type_key)]
    chosen = tuple((name, known[name]) for name in columns)
    return TypeScan(address_of(view.tables), pin, chosen, condition, has_all_columns)


def map_column_names(view: View, type_key: TypeKey) -> dict[str, str]:
    """The column of everything that rows of a type show, by its name."""
    shape = view.get_shape(type_key)
    system = {name: column for name, column in _SYSTEM.items() if column in shape.schema.names}
    properties = view.types[type_key].properties
    return system | {name: shape.columns[name] for name in properties}
