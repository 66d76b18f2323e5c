"""The time of a query: when it is over, the jobs of the query are stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from omnigraph.errors import QueryTimeout, SparkFailed
from omnigraph.spark.cancelling import Jobs, cancelled_if_left
from omnigraph.spark.jobs import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often a query whose time is over is stopped.
STOP_SECONDS: Final = 0.2


@contextmanager
def within(spark: SparkSession, seconds: float | None) -> Iterator[None]:
    """Stop the jobs that are started meanwhile when the time is over."""
    watch = _Watch(seconds)
    try:
        with cancelled_if_left(spark) as jobs, watch.watching(jobs):
            yield
    except (PySparkException, Py4JError) as failure:
        if watch.is_over.is_set() and seconds is not None:
            raise QueryTimeout(seconds) from failure
        raise SparkFailed("run the query", reason_of(failure)) from failure
    if watch.is_over.is_set() and seconds is not None:
        raise QueryTimeout(seconds)


class _Watch:
    """Stops every job of a query from the end of its time to the end of the query."""

    def __init__(self, seconds: float | None) -> None:
        self.is_over = threading.Event()
        self._is_done = threading.Event()
        self._seconds = seconds

    @contextmanager
    def watching(self, jobs: Jobs) -> Iterator[None]:
        """Watch in a thread of its own, if the query has a time at all."""
        if self._seconds is not None:
            name = "omnigraph-timeout"
            threading.Thread(target=self._run, args=(jobs,), name=name, daemon=True).start()
        try:
            yield
        finally:
            self._is_done.set()

    def _run(self, jobs: Jobs) -> None:
        if self._is_done.wait(self._seconds):
            return
        self.is_over.set()
        # Again and again: a job may just have been about to start.
        while not self._is_done.wait(STOP_SECONDS):
            jobs.stop()
