"""The code that runs on executors: one unit per partition, its outcome as one row."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from omnigraph.errors import OmnigraphError

# The outcome of a unit, as it comes back.
OUTCOME_COLUMNS: Final = "unit long, outcome binary"
_SCHEMA: Final = pa.schema([("unit", pa.int64()), ("outcome", pa.binary())])


@dataclass(frozen=True, slots=True)
class TaskSuccess:
    """A unit that was run; `answer` is what its function gave."""

    answer: Any  # whatever the function of the job answers


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """A unit whose function raised an error of the library that trying again would not cure."""

    error: OmnigraphError


TaskOutcome = TaskSuccess | TaskFailure


def run_partition(
    batches: Iterator[pa.RecordBatch], task: str, units: bytes, *, attempts_max: int
) -> Iterator[pa.RecordBatch]:
    """Run the units whose numbers are in a partition.

    `task` is `module:function`, `units` are all of the job, and each is tried so often at most.
    """
    # Other tasks use the other cores.
    pa.set_cpu_count(1)
    function = resolve_task(task)
    all_units = pickle.loads(units)  # noqa: S301 — our own units
    for batch in batches:
        for number in batch.column(0).to_pylist():
            outcome = _run_task(function, all_units[number], attempts_max)
            row = {"unit": [number], "outcome": [pickle.dumps(outcome)]}
            yield pa.RecordBatch.from_pydict(row, schema=_SCHEMA)


def resolve_task(task: str) -> Callable[[Any], Any]:
    """The function of an installed module that is called `module:function`."""
    module, name = task.split(":")
    found: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return found


def _run_task(function: Any, unit: Any, attempts_max: int) -> TaskOutcome:
    try:
        return TaskSuccess(function(unit))
    except OmnigraphError as error:
        # Raised, Spark tries a task again, which is what a retryable error asks for.
        context = TaskContext.get()
        is_last = context is None or context.attemptNumber() + 1 >= attempts_max
        if error.retryable and not is_last:
            raise
        return TaskFailure(error)
