"""A page of ordered rows: those after a position, and the position after them.

Rows before the position are left out by their keys and never ordered, so that no page takes longer
for being further on. A key is only examined where those before it are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.errors import CursorStaleError
from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows, evaluate_groups
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.operators.sort_operator import sort_rows
from omnigraph.query.typed_reads import OrderKey
from omnigraph.rows.comparison import Values
from omnigraph.rows.evaluator import is_constant
from omnigraph.rows.row_order import RowIndices
from omnigraph.rows.row_position import PositionError, RowPosition, compare_with, encode_keys


@dataclass(slots=True)
class Pager:
    """Where the page of a read starts; once it was run, where it ends, and of how many rows."""

    start: RowPosition | None = None
    # The position after the page, if rows follow it.
    end: RowPosition | None = None
    total: int = 0


def take_page(
    rows: Batch | GroupedRows,
    keys: Sequence[OrderKey],
    count: int | None,
    pager: Pager,
    context: ExecutionContext,
) -> Batch | GroupedRows:
    """So many rows, all if None, after the start of a page, in the order of the keys."""
    own = [key for key in keys if isinstance(rows, GroupedRows) or not is_constant(key.value)]
    if pager.start is not None:
        rows = rows.take(_find_following(rows, own, pager.start, context))
    has_more = count is not None and rows.num_rows > count
    rows = sort_rows(rows, keys, context, limit=count)
    if has_more:
        pager.end = _find_end(rows, own, pager.start, context)
    return rows


def _find_following(
    rows: Batch | GroupedRows,
    keys: Sequence[OrderKey],
    start: RowPosition,
    context: ExecutionContext,
) -> RowIndices:
    """The rows after a position, in the order that they have."""
    if start.repeats and len(start.keys) != len(keys):
        raise CursorStaleError("its position has other order keys")
    following: list[RowIndices] = []
    equal: RowIndices = np.arange(rows.num_rows)
    for key, known in zip(keys, start.keys, strict=False):
        context.budget.check_interrupts()
        among = rows if len(equal) == rows.num_rows else rows.take(equal)
        try:
            signs = compare_with(_evaluate_key(key, among, context), known)
        except PositionError as failure:
            raise CursorStaleError("its position is not one of this query") from failure
        following.append(equal[signs < 0] if key.is_descending else equal[signs > 0])
        equal = equal[signs == 0]
        if not len(equal):
            break
    found = np.concatenate([*following, equal[start.repeats :]])
    found.sort()
    return found


def _find_end(
    page: Batch | GroupedRows,
    keys: Sequence[OrderKey],
    start: RowPosition | None,
    context: ExecutionContext,
) -> RowPosition:
    """The position after a page; that of a page without rows is where it starts."""
    if not page.num_rows:
        return start or RowPosition((), 0)
    columns = [_evaluate_key(key, page, context) for key in keys]
    last = encode_keys(columns, page.num_rows - 1)
    is_equal = np.ones(page.num_rows, np.bool_)
    for column, known in zip(columns, last, strict=True):
        is_equal &= compare_with(column, known) == 0
    before = start.repeats if start is not None and start.keys == last else 0
    return RowPosition(last, before + int(is_equal.sum()))


def _evaluate_key(key: OrderKey, rows: Batch | GroupedRows, context: ExecutionContext) -> Values:
    if isinstance(rows, GroupedRows):
        return evaluate_groups(key.value, rows, context)
    return evaluate_rows(key.value, rows, context)
