"""Jobs that nobody waits for any more are cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def cancelled_if_left(spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that are begun meanwhile if whoever waits for them is interrupted."""
    tag = f"omnigraph-{uuid4()}"
    spark.addTag(tag)
    try:
        yield
    except BaseException as error:
        # Any failure: it must not hide why the jobs are not wanted.
        with suppress(Exception):
            spark.interruptTag(tag)
        if _is_interruption(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        with suppress(Exception):
            spark.removeTag(tag)


def _is_interruption(error: BaseException) -> bool:
    """Whether an error is what became of an interruption.

    PySpark asks for the outcome of an interrupted job, and raises that it was cancelled.
    """
    context: BaseException | None = error.__context__
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context is not None
