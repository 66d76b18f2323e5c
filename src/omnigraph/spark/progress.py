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

_EVERY_S: Final = 0.2


@contextmanager
def watched(
    spark: SparkSession, stage: str, total: int, progress: StageProgress | None
) -> Iterator[None]:
    """Tell how many tasks of the one job that runs meanwhile are done, and at its end all."""
    if progress is None:
        yield
        return
    progress(Stage(stage, 0, total))
    watching = _on_server if is_connect(spark) else _polling
    with watching(spark, lambda done: progress(Stage(stage, min(done, total), total))):
        yield
    progress(Stage(stage, total, total))


@contextmanager
def _polling(spark: SparkSession, tell: Callable[[int], None]) -> Iterator[None]:
    context, group = spark.sparkContext, f"omnigraph-{uuid4()}"
    tracker, ended = context.statusTracker(), threading.Event()
    before = context.getLocalProperty("spark.jobGroup.id")
    context.setLocalProperty("spark.jobGroup.id", group)

    def poll() -> None:
        told = 0
        while not ended.wait(_EVERY_S):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(each) for job in jobs if job for each in job.stageIds]
            done = sum(stage.numCompletedTasks for stage in stages if stage)
            if done > told:
                tell(told := done)

    thread = threading.Thread(target=poll, name="omnigraph-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        context.setLocalProperty("spark.jobGroup.id", before)  # type: ignore[arg-type]  # None ends it


@contextmanager
def _on_server(spark: SparkSession, tell: Callable[[int], None]) -> Iterator[None]:
    told = 0

    def handle(stages: list[object] | None, **_: object) -> None:
        nonlocal told
        done = sum(int(getattr(stage, "num_completed_tasks", 0)) for stage in stages or ())
        if done > told:
            tell(told := done)

    spark.registerProgressHandler(handle)  # type: ignore[arg-type]  # a protocol of keywords
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)  # type: ignore[arg-type]  # as above
