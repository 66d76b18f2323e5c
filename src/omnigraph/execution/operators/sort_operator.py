"""Rows, or groups, in the order of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows, evaluate_groups
from omnigraph.execution.operators.row_keys import RowKey
from omnigraph.query.typed_reads import OrderKey
from omnigraph.query.typed_tree import ColumnValue, Expr
from omnigraph.rows.evaluator import is_constant
from omnigraph.rows.row_order import SortKey, ValuesKey, sort_row_indices

_INDEX_BYTES: Final = 8


def sort_rows(
    rows: Batch | GroupedRows,
    keys: Sequence[OrderKey],
    context: ExecutionContext,
    *,
    limit: int | None = None,
) -> Batch | GroupedRows:
    """The rows in the order of the keys, or the first of them."""
    with context.budget.reserve(len(keys) * rows.num_rows * _INDEX_BYTES):
        ordered = list(_build_sort_keys(keys, rows, context))
        places = sort_row_indices(ordered, rows.num_rows, limit=limit)
    return rows.take(places)


def _build_sort_keys(
    keys: Sequence[OrderKey], rows: Batch | GroupedRows, context: ExecutionContext
) -> Iterator[SortKey]:
    """The keys that can differ between rows; nothing is fetched yet."""
    for key in keys:
        if isinstance(rows, GroupedRows):
            yield _build_group_key(key.value, key.is_descending, rows, context)
        elif not is_constant(key.value):
            yield RowKey(key.value, rows, context, key.is_descending)


def _build_group_key(
    key: Expr, is_descending: bool, rows: GroupedRows, context: ExecutionContext
) -> SortKey:
    if not isinstance(key, ColumnValue):
        return ValuesKey(evaluate_groups(key, rows, context), is_descending)
    if key.name in rows.aggregates:
        return ValuesKey(rows.aggregates[key.name], is_descending)
    return RowKey(rows.get_key(key.name), rows.first_rows, context, is_descending)
