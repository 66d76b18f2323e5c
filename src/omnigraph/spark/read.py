"""Types as DataFrames: tasks read the fragments of a pinned snapshot, Java only sees the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.spark.scans import TypeScan
from omnigraph.spark.values import format_spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_scan(spark: SparkSession, scan: TypeScan) -> DataFrame:
    """The rows of a scan, one partition for each of its units."""
    units = scan.plan_splits()
    schema = format_spark_schema(scan.schema)
    if not units:
        return spark.createDataFrame([], schema)

    # Pickled by value; what it calls is installed wherever tasks run.
    def run_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_splits(batches, scan, units)

    return spark.range(0, len(units), 1, len(units)).mapInArrow(run_batches, schema)


def read_splits(
    batches: Iterator[pa.RecordBatch], scan: TypeScan, units: tuple[tuple[int, ...], ...]
) -> Iterator[pa.RecordBatch]:
    """The rows of the units whose numbers are in a partition."""
    # Other tasks use the other cores.
    pa.set_cpu_count(1)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from scan.read_batches(units[number])
