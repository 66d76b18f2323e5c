"""The steps after a pattern, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, assert_never

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.order import Places, sorted_places
from omnigraph.execution.reading import Reading
from omnigraph.execution.result import Result
from omnigraph.execution.tail.columns import result_table
from omnigraph.execution.tail.grouped import Grouped, group
from omnigraph.execution.tail.ordering import sort_keys
from omnigraph.execution.tail.split import Step
from omnigraph.query import plan as plans

# Told, when a step is done, which it was and how many rows it left.
Note: TypeAlias = Callable[[Step, int], None]
_PLACE_BYTES: Final = 8


def finish_rows(
    plan: plans.ReadPlan,
    rows: Batch | Grouped,
    steps: Sequence[Step],
    reading: Reading,
    *,
    note: Note | None = None,
) -> Result:
    """The result of a plan from the rows of its pattern; or from groups, if they are found."""
    columns = rows.columns if isinstance(rows, Grouped) else ()
    for step, following in zip_longest(steps, steps[1:]):
        reading.budget.check()
        match step:
            case plans.Sort(keys=keys):
                limit = following.count if isinstance(following, plans.Limit) else None
                with reading.budget.reserve(len(keys) * rows.num_rows * _PLACE_BYTES):
                    ordered = list(sort_keys(keys, rows, reading))
                    places = sorted_places(ordered, rows.num_rows, limit=limit)
                rows = rows.take(places)
            case plans.Limit(count=count):
                rows = _first(rows, count)
            case plans.Project(columns=columns):
                pass
            case plans.Aggregate(columns=columns):
                rows = rows if isinstance(rows, Grouped) else group(rows, columns, reading)
            case _:
                assert_never(step)
        if note is not None and following is not None:
            note(step, rows.num_rows)
    result = Result(plan.columns, result_table(columns, rows, reading))
    if note is not None and steps:
        # The last step is done when its rows have their values.
        note(steps[-1], rows.num_rows)
    return result


def _first(rows: Batch | Grouped, count: int) -> Batch | Grouped:
    if rows.num_rows <= count:
        return rows
    places: Places = np.arange(count)
    return rows.take(places)
