"""The one way work is given to Spark: a function of ours on many units, one task each.

Rows do not enter Java: units go in, and what their function answers comes out as rows. Spark
accepts one attempt per task, so an answer counts once however often a unit was run.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

import pyarrow as pa

from omnigraph.bulk.task_runner import LocalRunner, Stage, StageProgress
from omnigraph.errors import InvalidArgumentError, SparkDriverLostError, SparkFailedError
from omnigraph.spark.job_cancellation import cancel_on_error
from omnigraph.spark.spark_failures import (
    FAILURES,
    format_failure,
    is_driver_lost,
    raise_on_driver_loss,
)
from omnigraph.spark.spark_session import (
    SessionProvider,
    get_attempts_max,
    is_connect,
    open_session,
)
from omnigraph.spark.spark_tasks import OUTCOME_COLUMNS, TaskOutcome, TaskSuccess, run_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

U = TypeVar("U")
R = TypeVar("R")
_POLL_INTERVAL_S: Final = 0.2
# Writing so many bytes of rows takes less time than a job of Spark.
_LIGHT_BYTES_MAX: Final = 4 * 1024 * 1024


def run_tasks(
    spark: SparkSession,
    units: Sequence[U],
    task: Callable[[U], R],
    *,
    stage: str,
    progress: StageProgress | None = None,
) -> list[R]:
    """Run a module's function on every unit; its answers, in the order of the units.

    Units and answers are pickled. A unit may be run more than once. An error of the library that
    trying again would not cure is raised here, of the first unit that has one.
    """
    if not units:
        return []
    name = format_task_name(task)
    with raise_on_driver_loss(stage):
        attempts = get_attempts_max(spark)
    # Together: what units share is in it once.
    payload = pickle.dumps(list(units))

    # Pickled by value, and so is what it holds; the function it calls must be installed.
    def run_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_partition(batches, name, payload, attempts_max=attempts)

    count = len(units)
    try:
        frame = spark.range(0, count, 1, count).mapInArrow(run_batches, OUTCOME_COLUMNS)
        with cancel_on_error(spark), report_progress(spark, stage, count, progress):
            rows = frame.toArrow()
    except FAILURES as error:
        raise _build_error(stage, error) from error
    return _collect_answers(rows, count, stage)


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Runs the units of a bulk operation as tasks of a session, made when there are any."""

    spark: SessionProvider
    progress: StageProgress | None = None

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        """One answer per unit, in the order of the units; few staged rows are written here."""
        if not units:
            return []
        sizes: list[int | None] = [getattr(unit, "staged_bytes", None) for unit in units]
        known = [size for size in sizes if size is not None]
        if len(known) == len(units) and sum(known) <= _LIGHT_BYTES_MAX:
            return LocalRunner(self.progress).run(units, task, stage=stage)
        return run_tasks(open_session(self.spark), units, task, stage=stage, progress=self.progress)


def _build_error(stage: str, error: Exception) -> SparkFailedError:
    if is_driver_lost(error):
        return SparkDriverLostError(stage)
    return SparkFailedError(stage, reason_of(error))


def format_task_name(task: Callable[..., object]) -> str:
    """`module:function` of a function that executors can import."""
    module, name = getattr(task, "__module__", None), getattr(task, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        raise InvalidArgumentError("task", f"{task!r} is not a function of an installed module")
    return f"{module}:{name}"


def _collect_answers(rows: pa.Table, count: int, stage: str) -> list[R]:
    in_order = rows.sort_by("unit")
    if in_order["unit"].to_pylist() != list(range(count)):
        raise SparkFailedError(stage, f"{rows.num_rows} answers came back for {count} units")
    answers: list[R] = []
    for packed in in_order["outcome"].to_pylist():
        outcome: TaskOutcome = pickle.loads(packed)  # noqa: S301 — written by our own tasks
        if not isinstance(outcome, TaskSuccess):
            raise outcome.error
        answers.append(outcome.answer)
    return answers


def reason_of(error: Exception) -> str:
    """What a task raised, if there is a Python trace of it; else what Spark says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if "Traceback (most recent" in line]
    if not traces:
        return format_failure(error)
    for line in lines[traces[0] + 1 :]:
        if (
            not line.startswith(("File ", "^", "~"))
            and ": " in line
            and " " not in line.split(":")[0]
        ):
            return line
    return format_failure(error)


@contextmanager
def report_progress(
    spark: SparkSession, stage: str, total: int | None, progress: StageProgress | None
) -> Iterator[None]:
    """Report how many tasks of what runs meanwhile are done, and at its end all.

    Without a total, the number of tasks is that which Spark has planned so far.
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
    # A job that was never seen was too short to have had more.
    known = max(known, 1)
    progress(Stage(stage, known, known))


class _MonotonicProgress:
    """Passes on how many tasks are done and planned, whenever either has become more."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report = report
        self._done = self._planned = 0

    def update(self, done: int, planned: int) -> None:
        """There are so many."""
        if done > self._done or planned > self._planned:
            self._done, self._planned = max(done, self._done), max(planned, self._planned)
            self._report(self._done, self._planned)


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
