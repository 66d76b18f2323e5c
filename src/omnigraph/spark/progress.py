"""How far a job on Spark is, told while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from omnigraph.spark.session import is_connect
from omnigraph.writers.bulk.runner import Stage, StageProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_INTERVAL_S: Final = 0.2


@contextmanager
def report_progress(
    spark: SparkSession, stage: str, total: int | None, progress: StageProgress | None
) -> Iterator[None]:
    """Tell how many tasks of what runs meanwhile are done, and at its end all.

    Where nobody knows their number before, it is that of the tasks that Spark has planned so far.
    """
    if progress is None:
        yield
        return
    known = total or 0
    if total is not None:
        progress(Stage(stage, 0, total))

    def report(done: int, planned: int) -> None:
        nonlocal known
        known = max(known, planned) if total is None else total
        progress(Stage(stage, min(done, known), known))

    watching = _observe_server if is_connect(spark) else _poll_jobs
    with watching(spark, _MonotonicProgress(report).update):
        yield
    # A job that nobody saw was too short to have had more.
    known = max(known, 1)
    progress(Stage(stage, known, known))


class _MonotonicProgress:
    """Passes on how many tasks are done and planned, whenever either has become more."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self._done = self._planned = 0

    def update(self, done: int, planned: int) -> None:
        """There are so many."""
        if done > self._done or planned > self._planned:
            self._done, self._planned = max(done, self._done), max(planned, self._planned)
            self._tell(self._done, self._planned)


@contextmanager
def _poll_jobs(spark: SparkSession, see: Callable[[int, int], None]) -> Iterator[None]:
    context, group = spark.sparkContext, f"omnigraph-{uuid4()}"
    tracker, ended = context.statusTracker(), threading.Event()
    before = context.getLocalProperty("spark.jobGroup.id")
    context.setLocalProperty("spark.jobGroup.id", group)

    def poll() -> None:
        while not ended.wait(_POLL_INTERVAL_S):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            ids = [each for job in jobs if job for each in job.stageIds]
            stages = [stage for stage in map(tracker.getStageInfo, ids) if stage]
            see(
                sum(stage.numCompletedTasks for stage in stages),
                sum(stage.numTasks for stage in stages),
            )

    thread = threading.Thread(target=poll, name="omnigraph-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        context.setLocalProperty("spark.jobGroup.id", before)  # type: ignore[arg-type]  # None ends it


@contextmanager
def _observe_server(spark: SparkSession, see: Callable[[int, int], None]) -> Iterator[None]:
    def handle(stages: list[object] | None, **_: object) -> None:
        counted = [
            sum(int(getattr(stage, name, 0)) for stage in stages or ())
            for name in ("num_completed_tasks", "num_tasks")
        ]
        see(*counted)

    spark.registerProgressHandler(handle)  # type: ignore[arg-type]  # a protocol of keywords
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)  # type: ignore[arg-type]  # as above
