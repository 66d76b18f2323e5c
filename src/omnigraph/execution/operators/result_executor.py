"""The steps after a pattern, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.graph_projection import GraphProjection
from omnigraph.execution.operators.group_operator import (
    GroupedRows,
    evaluate_groups,
    group_rows,
)
from omnigraph.execution.operators.page_operator import Pager, take_page
from omnigraph.execution.operators.project_operator import Projection
from omnigraph.execution.operators.sort_operator import sort_rows
from omnigraph.execution.optimizer.plan_split import ResultStep
from omnigraph.query import logical_plan as plans
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.row_order import RowIndices

# Called when a step is done, with the step and how many rows it left.
RecordStep: TypeAlias = Callable[[ResultStep, int], None]
# The steps whose rows a total counts; those after them order and cut.
_COUNTED = (plans.Aggregate, plans.Having)


def finish_rows(
    rows: Batch | GroupedRows,
    steps: Sequence[ResultStep],
    projection: Projection | GraphProjection,
    context: ExecutionContext,
    *,
    note: RecordStep | None = None,
    pager: Pager | None = None,
) -> pa.Table:
    """The columns of a result from the rows of a pattern; or from groups, if they are found."""
    rows = run_steps(rows, steps, context, note=note, pager=pager)
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
    pager: Pager | None = None,
) -> Batch | GroupedRows:
    """The rows, or groups, that a result has; their values are still to be fetched."""
    pager = pager or Pager()
    pager.total = rows.num_rows
    for number, step in enumerate(steps):
        if isinstance(step, plans.Project):
            # Values are fetched when all other steps are done.
            continue
        context.budget.check_interrupts()
        following = steps[number + 1] if number + 1 < len(steps) else None
        limit = following if isinstance(following, plans.Limit) else None
        rows = _run_step(step, limit, rows, pager, context)
        if isinstance(step, _COUNTED):
            pager.total = rows.num_rows
        if note is not None and following is not None:
            note(step, rows.num_rows)
    return rows


def _run_step(
    step: plans.Aggregate | plans.Having | plans.Sort | plans.Limit,
    limit: plans.Limit | None,
    rows: Batch | GroupedRows,
    pager: Pager,
    context: ExecutionContext,
) -> Batch | GroupedRows:
    """The rows after a step, which a limit follows, or nothing that cuts them."""
    match step:
        case plans.Sort(keys=keys):
            if limit is not None and limit.after is not None:
                # A page has its rows ordered when those before it are left out.
                return rows
            return sort_rows(rows, keys, context, limit=None if limit is None else limit.end)
        case plans.Having(conditions=conditions):
            assert isinstance(rows, GroupedRows), "only groups have columns"
            return _filter_groups(rows, conditions, context)
        case plans.Limit(after=None, offset=offset, end=end):
            return _cut_rows(rows, offset, end)
        case plans.Limit(input=ordered, count=count):
            keys = ordered.keys if isinstance(ordered, plans.Sort) else ()
            return take_page(rows, keys, count, pager, context)
        case plans.Aggregate(columns=columns):
            return rows if isinstance(rows, GroupedRows) else group_rows(rows, columns, context)
        case _:
            assert_never(step)


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
