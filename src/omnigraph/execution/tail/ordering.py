"""What rows and groups are sorted by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.execution.batch import Batch
from omnigraph.execution.expressions import is_constant
from omnigraph.execution.order import SortKey, ValuesKey
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.tail.grouped import GroupedRows
from omnigraph.execution.tail.keys import RowKey
from omnigraph.query.typed import AggregateValue, ColumnValue, Expr, OrderKey


def build_sort_keys(
    keys: Sequence[OrderKey], rows: Batch | GroupedRows, reading: ExecutionContext
) -> Iterator[SortKey]:
    """The keys that can tell rows apart; nothing is fetched yet."""
    for key in keys:
        if isinstance(rows, GroupedRows):
            assert isinstance(key.value, ColumnValue), "groups are sorted by their columns"
            yield _build_group_key(key.value, key.is_descending, rows, reading)
        elif not is_constant(key.value):
            yield RowKey(key.value, rows, reading, key.is_descending)


def _build_group_key(
    key: ColumnValue, is_descending: bool, rows: GroupedRows, reading: ExecutionContext
) -> SortKey:
    value: Expr = next(column.value for column in rows.columns if column.name == key.name)
    if isinstance(value, AggregateValue):
        return ValuesKey(rows.aggregates[key.name], is_descending)
    return RowKey(value, rows.first_rows, reading, is_descending)
