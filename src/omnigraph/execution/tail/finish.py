"""The steps after a pattern, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, assert_never

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.order import RowIndices, sort_row_indices
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.result import Result
from omnigraph.execution.tail.columns import build_result_table
from omnigraph.execution.tail.grouped import GroupedRows, group_rows
from omnigraph.execution.tail.ordering import build_sort_keys
from omnigraph.execution.tail.split import ResultStep
from omnigraph.query import plan as plans

# Told, when a step is done, which it was and how many rows it left.
RecordStep: TypeAlias = Callable[[ResultStep, int], None]
_INDEX_BYTES: Final = 8


def finish_rows(
    plan: plans.ReadPlan,
    rows: Batch | GroupedRows,
    steps: Sequence[ResultStep],
    reading: ExecutionContext,
    *,
    note: RecordStep | None = None,
) -> Result:
    """The result of a plan from the rows of its pattern; or from groups, if they are found."""
    columns = rows.columns if isinstance(rows, GroupedRows) else ()
    for step, following in zip_longest(steps, steps[1:]):
        reading.budget.check_interrupts()
        match step:
            case plans.Sort(keys=keys):
                limit = following.count if isinstance(following, plans.Limit) else None
                with reading.budget.reserve(len(keys) * rows.num_rows * _INDEX_BYTES):
                    ordered = list(build_sort_keys(keys, rows, reading))
                    places = sort_row_indices(ordered, rows.num_rows, limit=limit)
                rows = rows.take(places)
            case plans.Limit(count=count):
                rows = _take_first(rows, count)
            case plans.Project(columns=columns):
                pass
            case plans.Aggregate(columns=columns):
                rows = rows if isinstance(rows, GroupedRows) else group_rows(rows, columns, reading)
            case _:
                assert_never(step)
        if note is not None and following is not None:
            note(step, rows.num_rows)
    result = Result(plan.columns, build_result_table(columns, rows, reading))
    if note is not None and steps:
        # The last step is done when its rows have their values.
        note(steps[-1], rows.num_rows)
    return result


def _take_first(rows: Batch | GroupedRows, count: int) -> Batch | GroupedRows:
    if rows.num_rows <= count:
        return rows
    places: RowIndices = np.arange(count)
    return rows.take(places)
