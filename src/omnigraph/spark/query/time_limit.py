"""The end of a query on Spark: its time is over, or it is cancelled, and its jobs are stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from omnigraph.errors import SparkDriverLostError, SparkFailedError
from omnigraph.execution.budget import Budget
from omnigraph.spark.cancelling import JobGroup, cancel_on_error
from omnigraph.spark.failures import FAILURES, is_driver_lost
from omnigraph.spark.jobs import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often a running query is asked whether it may go on.
POLL_SECONDS: Final = 0.05
# How often the jobs of one that may not are stopped.
STOP_SECONDS: Final = 0.2


@contextmanager
def enforce_budget(spark: SparkSession, budget: Budget) -> Iterator[None]:
    """Stop the jobs that are started meanwhile as soon as a budget stops the query."""
    try:
        with cancel_on_error(spark) as jobs, _watch_budget(jobs, budget):
            yield
    except FAILURES as failure:
        if is_driver_lost(failure):
            raise SparkDriverLostError("run the query") from failure
        budget.check_interrupts()
        raise SparkFailedError("run the query", reason_of(failure)) from failure
    budget.check_interrupts()


@contextmanager
def _watch_budget(jobs: JobGroup, budget: Budget) -> Iterator[None]:
    """Watch a budget in a thread of its own, if it can stop the query at all."""
    is_done = threading.Event()
    if budget.may_be_stopped:
        watch = threading.Thread(
            target=_poll_budget, args=(jobs, budget, is_done), name="omnigraph-timeout", daemon=True
        )
        watch.start()
    try:
        yield
    finally:
        is_done.set()


def _poll_budget(jobs: JobGroup, budget: Budget, is_done: threading.Event) -> None:
    while not budget.is_over:
        if is_done.wait(POLL_SECONDS):
            return
    # Again and again: a job may just have been about to start.
    while True:
        jobs.cancel()
        if is_done.wait(STOP_SECONDS):
            return
