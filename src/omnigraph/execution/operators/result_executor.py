"""The steps after a pattern, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import (
    GroupedRows,
    evaluate_groups,
    group_rows,
)
from omnigraph.execution.operators.project_operator import Projection
from omnigraph.execution.operators.row_keys import RowKey
from omnigraph.execution.optimizer.plan_split import ResultStep
from omnigraph.query import logical_plan as plans
from omnigraph.query.typed_reads import OrderKey
from omnigraph.query.typed_tree import ColumnValue, Expr
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.evaluator import is_constant
from omnigraph.rows.row_order import RowIndices, SortKey, ValuesKey, sort_row_indices

# Called when a step is done, with the step and how many rows it left.
RecordStep: TypeAlias = Callable[[ResultStep, int], None]
_INDEX_BYTES: Final = 8


def finish_rows(
    rows: Batch | GroupedRows,
    steps: Sequence[ResultStep],
    projection: Projection,
    context: ExecutionContext,
    *,
    note: RecordStep | None = None,
) -> pa.Table:
    """The columns of a result from the rows of a pattern; or from groups, if they are found."""
    rows = run_steps(rows, steps, context, note=note)
    table = projection.build_table(rows, context)
    if note is not None and steps:
        # The last step is done when its rows have their values.
        note(steps[-1], rows.num_rows)
    return table


def run_steps(
    rows: Batch | GroupedRows,
    steps: Sequence[ResultStep],
    context: ExecutionContext,
    *,
    note: RecordStep | None = None,
) -> Batch | GroupedRows:
    """The rows, or groups, that a result has; their values are still to be fetched."""
    for number, step in enumerate(steps):
        if isinstance(step, plans.Project):
            # Values are fetched when all other steps are done.
            continue
        context.budget.check_interrupts()
        following = steps[number + 1] if number + 1 < len(steps) else None
        match step:
            case plans.Sort(keys=keys):
                limit = following.end if isinstance(following, plans.Limit) else None
                with context.budget.reserve(len(keys) * rows.num_rows * _INDEX_BYTES):
                    ordered = list(build_sort_keys(keys, rows, context))
                    places = sort_row_indices(ordered, rows.num_rows, limit=limit)
                rows = rows.take(places)
            case plans.Having(conditions=conditions):
                assert isinstance(rows, GroupedRows), "only groups have columns"
                rows = _filter_groups(rows, conditions, context)
            case plans.Limit(offset=offset, end=end):
                rows = _cut_rows(rows, offset, end)
            case plans.Aggregate(columns=columns):
                rows = rows if isinstance(rows, GroupedRows) else group_rows(rows, columns, context)
            case _:
                assert_never(step)
        if note is not None and following is not None:
            note(step, rows.num_rows)
    return rows


def _filter_groups(
    groups: GroupedRows, conditions: Sequence[Expr], context: ExecutionContext
) -> GroupedRows:
    """The groups whose conditions are true."""
    mask = np.ones(groups.num_rows, np.bool_)
    for condition in conditions:
        mask &= to_numpy(evaluate_groups(condition, groups, context))
    return groups if mask.all() else groups.take(np.flatnonzero(mask))


def _cut_rows(rows: Batch | GroupedRows, offset: int, end: int | None) -> Batch | GroupedRows:
    last = rows.num_rows if end is None else min(rows.num_rows, end)
    if not offset and last == rows.num_rows:
        return rows
    places: RowIndices = np.arange(min(offset, last), last)
    return rows.take(places)


def build_sort_keys(
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
