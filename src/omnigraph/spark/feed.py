"""The change feed between two commits as a DataFrame: one row for each changed entity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.engine.entity_change.filters import Wanted
from omnigraph.engine.feed.arrow import SCHEMA, Share, change_batches
from omnigraph.engine.resources import storage_at
from omnigraph.engine.session import Session
from omnigraph.spark.scans import Place
from omnigraph.spark.values import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def changed(
    spark: SparkSession, place: Place, shares: Sequence[Share], wanted: Wanted
) -> DataFrame:
    """What some commits changed; images are JSON texts."""
    schema = spark_schema(SCHEMA)
    if not shares:
        return spark.createDataFrame([], schema)

    # Pickled by value; what it calls is installed wherever tasks run.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_shares(batches, place, shares, wanted)

    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(work, schema)


def read_shares(
    batches: Iterator[pa.RecordBatch], place: Place, shares: Sequence[Share], wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """The changes of the shares whose numbers are in a partition."""
    pa.set_cpu_count(1)
    session = _session_at(place)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from change_batches(session, shares[number], wanted)


@lru_cache(maxsize=8)
def _session_at(place: Place) -> Session:
    """A graph, opened once in a process."""
    storage = storage_at(place.root, is_durable=True, options=dict(place.options) or None)
    session = Session(storage, actor=None)
    session.begin()
    return session
