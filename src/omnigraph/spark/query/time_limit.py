"""The time of a query: when it is over, the jobs of the query are stopped."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from omnigraph.errors import QueryTimeout, SparkFailed
from omnigraph.spark.jobs import reason_of
from omnigraph.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often a query whose time is over is stopped.
STOP_SECONDS: Final = 0.2


@contextmanager
def within(spark: SparkSession, seconds: float | None) -> Iterator[None]:
    """Stop the jobs that are started meanwhile when the time is over."""
    watch = _Watch(spark, seconds)
    watch.start()
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        if watch.is_over.is_set() and seconds is not None:
            raise QueryTimeout(seconds) from failure
        raise SparkFailed("run the query", reason_of(failure)) from failure
    finally:
        watch.end()
    if watch.is_over.is_set() and seconds is not None:
        raise QueryTimeout(seconds)


class _Watch:
    """Stops every job of a query from the end of its time to the end of the query."""

    def __init__(self, spark: SparkSession, seconds: float | None) -> None:
        self.is_over = threading.Event()
        self._is_done = threading.Event()
        self._spark = spark
        self._seconds = seconds
        self._tag = f"omnigraph-{uuid.uuid4().hex}"

    def start(self) -> None:
        """Watch in a thread of its own, if the query has a time at all."""
        # Tags of a session stop nothing without a server.
        if is_connect(self._spark):
            self._spark.addTag(self._tag)
        else:
            self._spark.sparkContext.addJobTag(self._tag)
        if self._seconds is not None:
            threading.Thread(target=self._run, name="omnigraph-timeout", daemon=True).start()

    def end(self) -> None:
        """The query has ended."""
        self._is_done.set()
        if is_connect(self._spark):
            self._spark.removeTag(self._tag)
        else:
            self._spark.sparkContext.removeJobTag(self._tag)

    def _run(self) -> None:
        if self._is_done.wait(self._seconds):
            return
        self.is_over.set()
        # Again and again: a job may just have been about to start.
        while not self._is_done.wait(STOP_SECONDS):
            if is_connect(self._spark):
                self._spark.interruptTag(self._tag)
            else:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
