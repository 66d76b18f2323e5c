"""How far a long command is, shown while it runs and only to people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

    from omnigraph.bulk.task_runner import StageProgress


@dataclass(frozen=True, slots=True)
class LoadBars:
    """What shows how far a load is: by records read, or by the units of its steps."""

    records: Callable[[int], None] | None = None
    stages: StageProgress | None = None


@contextmanager
def show_load_bars() -> Iterator[LoadBars]:
    """Bars for a load on standard error; they show nothing when that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield LoadBars()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[shown]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, total: int | None, shown: str) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total, shown=shown)
            bars.update(tasks[step], completed=done, total=total, shown=shown)

        yield LoadBars(
            records=lambda done: show("loading", done, None, f"{done:,} records"),
            stages=lambda stage: show(
                stage.name, stage.done, stage.total, f"{stage.done}/{stage.total} units"
            ),
        )
