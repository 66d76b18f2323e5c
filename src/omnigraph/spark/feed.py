"""The change feed between two commits as a DataFrame: one row for each changed entity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.engine.entity_change.filters import BoundFilters
from omnigraph.engine.feed.arrow import SCHEMA, FeedSplit, read_change_batches
from omnigraph.engine.resources import open_storage
from omnigraph.engine.session import Session
from omnigraph.spark.scans import StoreAddress
from omnigraph.spark.values import format_spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_changes(
    spark: SparkSession, place: StoreAddress, shares: Sequence[FeedSplit], wanted: BoundFilters
) -> DataFrame:
    """What some commits changed; images are JSON texts."""
    schema = format_spark_schema(SCHEMA)
    if not shares:
        return spark.createDataFrame([], schema)

    # Pickled by value; what it calls is installed wherever tasks run.
    def run_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_shares(batches, place, shares, wanted)

    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(run_batches, schema)


def read_shares(
    batches: Iterator[pa.RecordBatch],
    place: StoreAddress,
    shares: Sequence[FeedSplit],
    wanted: BoundFilters,
) -> Iterator[pa.RecordBatch]:
    """The changes of the shares whose numbers are in a partition."""
    pa.set_cpu_count(1)
    session = _open_session(place)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read_change_batches(session, shares[number], wanted)


@lru_cache(maxsize=8)
def _open_session(place: StoreAddress) -> Session:
    """A graph, opened once in a process."""
    storage = open_storage(place.root, is_durable=True, options=dict(place.options) or None)
    session = Session(storage, actor=None)
    session.begin()
    return session
