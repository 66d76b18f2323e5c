"""Who runs the units of a bulk operation: a loop in this process, or Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

# Every unit under way holds its rows in memory.
_THREADS_MAX: Final = 4

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Stage:
    """How far one step of a job is: so many of its units are done."""

    name: str
    done: int
    total: int


StageProgress = Callable[[Stage], None]


class Runner(Protocol):
    """Runs one function on many units, in any order, and answers in the order of the units.

    The function is a module's own, and units and answers can be pickled: they may cross processes.
    A unit may be run more than once; one answer of each counts. An error of the library that a
    unit raises is raised here.
    """

    def run(
        self, units: Sequence[Item], task: Callable[[Item], Answer], *, stage: str
    ) -> list[Answer]:
        """One answer per unit."""
        ...


class LocalRunner:
    """Runs units in threads of this process: as many at once as there is memory for."""

    def __init__(
        self, progress: StageProgress | None = None, *, threads: int | None = None
    ) -> None:
        self._progress = progress
        self._threads = threads or min(os.cpu_count() or 1, _THREADS_MAX)

    def run(
        self, units: Sequence[Item], task: Callable[[Item], Answer], *, stage: str
    ) -> list[Answer]:
        """One answer per unit; after a failure no further unit is begun."""
        answers: list[Answer] = []
        if len(units) < 2 or self._threads == 1:
            for answer in map(task, units):
                answers.append(answer)
                self._report_progress(Stage(stage, len(answers), len(units)))
            return answers
        with ThreadPoolExecutor(self._threads, thread_name_prefix="omnigraph-bulk") as threads:
            begun = [threads.submit(task, unit) for unit in units]
            try:
                for each in begun:
                    answers.append(each.result())
                    self._report_progress(Stage(stage, len(answers), len(units)))
            except BaseException:
                for each in begun:
                    each.cancel()
                raise
        return answers

    def _report_progress(self, stage: Stage) -> None:
        if self._progress is not None:
            self._progress(stage)
