"""Tasks of loads that fail once or take very long, where workers can import them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from omnigraph.bulk.split_groups import write_group
from omnigraph.bulk.split_writer import SplitResult
from omnigraph.bulk.task_tracking import TrackedTask, run_tracked

SplitResults: TypeAlias = tuple[SplitResult, ...]


@dataclass(frozen=True)
class FailingUnit:
    """A unit whose first attempts fail after they have written; a file for each tells of it."""

    unit: TrackedTask
    folder: str


def write_then_fail(failing: FailingUnit) -> SplitResults:
    """Write a unit, and fail the first time."""
    written: SplitResults = run_tracked(failing.unit)
    try:
        (Path(failing.folder) / f"failed-{failing.unit.item.splits[0].number}").touch(
            exist_ok=False
        )
    except FileExistsError:
        return written
    raise RuntimeError("after the rows were written")


def write_then_wait(unit: FailingUnit) -> SplitResults:
    """Write a unit, tell so, and take very long to answer."""
    written: SplitResults = run_tracked(unit.unit)
    (Path(unit.folder) / f"waiting-{unit.unit.item.splits[0].number}").touch()
    time.sleep(600)
    return written


def fail_for_good(unit: FailingUnit) -> SplitResults:
    """Write a unit, and fail, however often."""
    run_tracked(unit.unit)
    raise RuntimeError("after the rows were written")


def write_until_stopped(unit: FailingUnit) -> SplitResults:
    """Write a unit again and again, as one with very many rows would."""
    return run_tracked(replace(unit.unit, task=write_again, item=unit))  # type: ignore[no-any-return]


def write_again(unit: FailingUnit) -> SplitResults:
    """Write a unit until its load has ended."""
    while True:
        write_group(unit.unit.item)
        (Path(unit.folder) / f"waiting-{unit.unit.item.splits[0].number}").touch()


def named_slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A name for each number, after half a second."""
    time.sleep(0.5)
    for batch in batches:
        names = [f"p{number}" for number in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_pydict({"name": names})
