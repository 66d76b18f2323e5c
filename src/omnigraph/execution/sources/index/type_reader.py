"""What nodes and edges of one type have in common: their table, and the values read from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.execution.sources.index.lookup_numbering import MemoryAllocator
from omnigraph.rows.columns import TableShape
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.table_reader import Table

# So few rows are read with all their plain columns: a second request costs more than those do.
FEW_ROWS: Final = 16
PLAIN_COLUMNS_MAX: Final = 16
_ABSENT = np.int64(-1)


class TypeReader:
    """The part of a type that a query has met, for use by one thread at a time."""

    def __init__(self, view: View, type_key: TypeKey, budget: Budget) -> None:
        self.view = view
        self.budget = budget
        self.shape: TableShape = view.get_shape(type_key)
        self.fetched = ColumnCache(self.shape.schema, budget.allocate)

    @cached_property
    def table(self) -> Table:
        """The table of the type, opened when it is first asked."""
        return self.view.open_table(self.shape.type_key)

    @property
    def count(self) -> int:
        """How many entities the type has."""
        return self.view.snapshot.pins[str(self.shape.type_key)].rows

    def scan(self, columns: list[str]) -> pa.Table:
        """Every row of the type."""
        if not self.count:
            return self.table.scan(columns=columns)
        return self.collect_batches(self.table.scan_batches(columns=columns))

    def collect_batches(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None
    ) -> pa.Table:
        """Rows that are read one batch after the other, as long as there is memory and time."""
        found, nbytes = [], 0
        for batch in batches:
            nbytes += batch.nbytes
            self.budget.require_memory(nbytes)
            self.budget.check_interrupts()
            found.append(batch)
        return pa.Table.from_batches(found, schema)

    def list_read_columns(self, rows: int, column: str | None = None) -> list[str]:
        """The properties' columns to read for so many rows of which one column is wanted."""
        wanted = [] if column is None else [column]
        if rows > FEW_ROWS:
            return wanted
        return list(dict.fromkeys([*wanted, *self._plain_columns]))

    @cached_property
    def _plain_columns(self) -> list[str]:
        columns = [
            column
            for column in self.shape.columns.values()
            if _is_plain(self.shape.schema.field(column).type)
        ]
        return columns if len(columns) <= PLAIN_COLUMNS_MAX else []


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_string(kind))


class ColumnCache:
    """Columns of the entities of one type, each filled where it was read."""

    def __init__(self, schema: pa.Schema, hold: MemoryAllocator) -> None:
        self._schema = schema
        self._hold = hold
        self._columns: dict[str, _CachedColumn] = {}

    def find_missing(self, column: str, at: DenseIds) -> DenseIds:
        """The distinct numbers whose value was not read yet, ascending."""
        found = self._get_column(column).find_indices(at)
        unknown = at[found < 0]
        return np.unique(unknown) if len(unknown) else unknown

    def add_rows(self, numbers: DenseIds, rows: pa.Table) -> None:
        """Remember rows; the names of their columns are physical ones."""
        for name in rows.column_names:
            self._get_column(name).add_values(numbers, rows[name].combine_chunks())

    def get_values(self, column: str, at: DenseIds) -> pa.Array:
        """The values of a column, all of them read before."""
        known = self._get_column(column)
        return known.values.take(pa.array(known.find_indices(at)))

    def _get_column(self, name: str) -> _CachedColumn:
        column = self._columns.get(name)
        if column is None:
            kind = self._schema.field(name).type
            column = self._columns[name] = _CachedColumn(kind, self._hold)
        return column


class _CachedColumn:
    """Values in the order in which they came, and the place of each number among them."""

    def __init__(self, kind: pa.DataType, hold: MemoryAllocator) -> None:
        self._hold = hold
        self.values: pa.Array = pa.array([], kind)
        self._places: RowIndices = np.empty(0, np.int64)

    def find_indices(self, at: DenseIds) -> RowIndices:
        if len(self._places) and (not len(at) or at.max() < len(self._places)):
            return self._places.take(at)
        self._grow(int(at.max()) + 1 if len(at) else 1)
        return self._places.take(at)

    def add_values(self, numbers: DenseIds, values: pa.Array) -> None:
        if not len(numbers):
            return
        first = len(self.values)
        self._grow(int(numbers.max()) + 1)
        self._places[numbers] = np.arange(first, first + len(numbers))
        if values.type != self.values.type:
            values = values.cast(self.values.type)
        self._hold(values.nbytes)
        self.values = pa.concat_arrays([self.values, values]) if first else values

    def _grow(self, length: int) -> None:
        if length > len(self._places):
            room = max(length, 2 * len(self._places))
            self._hold((room - len(self._places)) * _ABSENT.nbytes)
            longer = np.full(room, _ABSENT)
            longer[: len(self._places)] = self._places
            self._places = longer
