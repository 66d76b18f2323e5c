"""Tasks that a test can hold: one of them does its work, and then takes as long as it is let.

A folder tells of it. `armed` is there while a task is to be held, and says whether another attempt
of it must wait for its death; `held` is there once a task is held; `again` once another attempt of
that task came.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.bulk.task_runner import Runner
from omnigraph.spark.query.table_scans import ScanSplits
from omnigraph.spark.spark_jobs import format_task_name
from omnigraph.spark.spark_tasks import resolve_task

FOLDER_VARIABLE = "HELD_TASKS"
UNTIL_DEATH = "until death"
FOR_LONG = "for long"
_LONG_S = 300.0
_LOOK_S = 0.02


@dataclass(frozen=True)
class Held:
    """A unit of a load, and the function that it is for."""

    unit: Any
    task: str
    number: int


@dataclass(frozen=True)
class HoldingRunner:
    """Runs units so that one that writes rows can be held after it has written them."""

    runner: Runner

    def run(self, units: Sequence[Any], task: Callable[[Any], Any], *, stage: str) -> list[Any]:
        if stage != "write":
            return self.runner.run(units, task, stage=stage)
        name = format_task_name(task)
        held = [Held(unit, name, number) for number, unit in enumerate(units)]
        return self.runner.run(held, run_held, stage=stage)


def holding_runner(made: Callable[..., Runner]) -> Callable[..., Runner]:
    """What makes runners, so that they hold tasks."""
    return lambda *arguments: HoldingRunner(made(*arguments))


def run_held(held: Held) -> Any:
    """Do the work of a unit."""
    answer = resolve_task(held.task)(held.unit)
    hold(f"unit {held.number}")
    return answer


class HeldScans(ScanSplits):
    """Scans of which one unit can be held after it was read."""

    def read_split(self, number: int) -> Iterator[pa.Table]:
        """The rows of one unit."""
        rows = list(super().read_split(number))
        hold(f"scan {number}")
        return iter(rows)


def hold(work: str) -> None:
    """Be the task that is held, or another attempt of it, or go on."""
    place = os.environ.get(FOLDER_VARIABLE)
    if place is None or not (Path(place) / "armed").exists():
        return
    folder = Path(place)
    if _is_first(folder, {"work": work, "pid": os.getpid()}):
        time.sleep(_LONG_S)
        return
    first = json.loads((folder / "held").read_text())
    if first["work"] != work:
        return
    (folder / "again").touch()
    if (folder / "armed").read_text() == UNTIL_DEATH:
        end = time.monotonic() + _LONG_S
        while Path(f"/proc/{first['pid']}").exists() and time.monotonic() < end:
            time.sleep(_LOOK_S)


def _is_first(folder: Path, told: dict[str, object]) -> bool:
    """Whether nobody was held before; if so, it is told at once and whole."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".new") as file:
        file.write(json.dumps(told))
        file.flush()
        try:
            os.link(file.name, folder / "held")
        except FileExistsError:
            return False
    return True
