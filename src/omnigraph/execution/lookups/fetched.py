"""Values that were read for a query, by number, and which of them were not read yet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.execution.lookups.numbering import MemoryAllocator
from omnigraph.execution.source import DenseIds, RowIndices

_ABSENT = np.int64(-1)


class ColumnCache:
    """Columns of the entities of one type, each filled where somebody asked."""

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
