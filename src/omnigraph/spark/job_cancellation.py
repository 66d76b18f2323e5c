"""Cancel Spark jobs whose caller stopped waiting for them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from omnigraph.errors.base_error import interruption_of
from omnigraph.spark.spark_session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class JobGroup:
    """The jobs that a thread begins between `begin` and `end`; any thread can stop them."""

    spark: SparkSession
    tag: str = field(default_factory=lambda: f"omnigraph-{uuid4().hex}")

    def begin(self) -> None:
        """Jobs of this thread belong to these from now on."""
        if is_connect(self.spark):
            self.spark.addTag(self.tag)
        else:
            self.spark.sparkContext.addJobTag(self.tag)

    def end(self) -> None:
        """Jobs of this thread do not belong to these any more."""
        if is_connect(self.spark):
            self.spark.removeTag(self.tag)
        else:
            self.spark.sparkContext.removeJobTag(self.tag)

    def cancel(self) -> None:
        """Cancel those that run."""
        if is_connect(self.spark):
            self.spark.interruptTag(self.tag)
        else:
            self.spark.sparkContext.cancelJobsWithTag(self.tag)


@contextmanager
def cancel_on_error(spark: SparkSession) -> Iterator[JobGroup]:
    """Cancel the jobs that are begun meanwhile if their caller is interrupted."""
    jobs = JobGroup(spark)
    jobs.begin()
    try:
        with _cancel_on_signal(jobs):
            yield jobs
    except BaseException as error:
        # Any failure: it must not hide why the jobs are not wanted.
        with suppress(Exception):
            jobs.cancel()
        if (interruption := interruption_of(error)) not in (None, error):
            raise type(interruption) from error
        raise
    finally:
        with suppress(Exception):
            jobs.end()


@contextmanager
def _cancel_on_signal(jobs: JobGroup) -> Iterator[None]:
    """Cancel jobs as soon as this process is interrupted.

    When the error of it arrives here it is too late: PySpark waits for the end of the job before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    # A signal without a handler ends the process, or nothing.
    before = {number: handler for number, handler in handlers.items() if callable(handler)}

    def stop() -> None:
        # Any failure: Spark may be ending by now.
        with suppress(Exception):
            jobs.cancel()

    def handle(number: int, frame: FrameType | None) -> None:
        # In a thread of its own: this one may be in the middle of a call to Java.
        threading.Thread(target=stop, name="omnigraph-cancel", daemon=True).start()
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
