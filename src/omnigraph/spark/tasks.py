"""What runs on executors: one unit per partition, its outcome as one row."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from omnigraph.errors import OmnigraphError
from omnigraph.spark.session import ATTEMPTS_MAX

# The outcome of a unit, as it comes back.
OUTCOMES: Final = "unit long, outcome binary"
_SCHEMA: Final = pa.schema([("unit", pa.int64()), ("outcome", pa.binary())])


@dataclass(frozen=True, slots=True)
class Done:
    """A unit that was run; `answer` is what its function gave."""

    answer: Any  # whatever the function of the job answers


@dataclass(frozen=True, slots=True)
class Refused:
    """A unit whose function raised an error of the library that trying again would not cure."""

    error: OmnigraphError


Outcome = Done | Refused


def run_partition(
    batches: Iterator[pa.RecordBatch], task: str, units: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """Run the units whose numbers are in a partition; `task` is `module:function`."""
    # Other tasks use the other cores.
    pa.set_cpu_count(1)
    module, name = task.split(":")
    function = getattr(importlib.import_module(module), name)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            outcome = _outcome(function, pickle.loads(units[number]))  # noqa: S301 — our own units
            row = {"unit": [number], "outcome": [pickle.dumps(outcome)]}
            yield pa.RecordBatch.from_pydict(row, schema=_SCHEMA)


def _outcome(function: Any, unit: Any) -> Outcome:
    try:
        return Done(function(unit))
    except OmnigraphError as error:
        # Raised, Spark tries a task again, which is what a retryable error asks for.
        context = TaskContext.get()
        is_last = context is None or context.attemptNumber() + 1 >= ATTEMPTS_MAX
        if error.retryable and not is_last:
            raise
        return Refused(error)
