"""A whole graph as two DataFrames in the shape of GraphFrames: vertices and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 — the usual name

from omnigraph.engine.entity_changes import BoundFilters
from omnigraph.engine.feed.feed_batches import SCHEMA, FeedSplit, read_change_batches
from omnigraph.engine.graph_session import Session
from omnigraph.engine.resources import open_storage
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType
from omnigraph.spark.spark_types import format_spark_schema
from omnigraph.spark.type_scans import TypeScan, build_type_scan
from omnigraph.storage.tables.store_address import StoreAddress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# What GraphFrames and we call columns, beside the properties, which come below a prefix if they
# are called the same.
_RESERVED_COLUMNS: Final = frozenset({"id", "src", "dst", "type", "key"})
_PREFIX: Final = "property_"

# Between the type and the id of a node, whose ids are unique within their type only.
SEPARATOR: Final = ":"


class Frames(NamedTuple):
    """`vertices` with `id`, and `edges` with `src` and `dst`: what `GraphFrame(v, e)` takes."""

    vertices: DataFrame
    edges: DataFrame


def build_frames(spark: SparkSession, view: View, types: Sequence[TypeKey]) -> Frames:
    """Some types as vertices and edges; a node is called by its type and its id."""
    nodes = [key for key in types if key.kind is TypeKind.NODE]
    edges = [key for key in types if key.kind is TypeKind.EDGE]
    return Frames(_unite_types(spark, view, nodes), _unite_types(spark, view, edges))


def _unite_types(spark: SparkSession, view: View, types: Sequence[TypeKey]) -> DataFrame:
    if not types:
        return spark.createDataFrame([], "id string, src string, dst string, type string")
    parts = [_read_type(spark, view, key) for key in types]
    # A property that is of another type elsewhere has one type only as a text.
    kinds = Counter(name for name, _ in {pair for part in parts for pair in part.dtypes})
    clashing = {name for name, count in kinds.items() if count > 1}
    alike = [
        part.select([_as_text(part, name) if name in clashing else F.col(name) for name in names])
        for part in parts
        for names in [part.columns]
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), alike)


def _as_text(part: DataFrame, name: str) -> Column:
    kind = dict(part.dtypes)[name]
    column = F.col(name)
    return (F.to_json(column) if kind.startswith("array") else column.cast("string")).alias(name)


def _read_type(spark: SparkSession, view: View, key: TypeKey) -> DataFrame:
    rows = read_scan(spark, build_type_scan(view, key))
    type_ = view.types[key]
    ends: list[Column] = []
    if isinstance(type_, EdgeType):
        ends = [
            _qualify_id(SOURCE, type_.source).alias("src"),
            _qualify_id(TARGET, type_.target).alias("dst"),
        ]
    properties = [
        F.col(name).alias(_PREFIX + name if name in _RESERVED_COLUMNS else name)
        for name in rows.columns
        if name not in (ID_FIELD, SOURCE, TARGET)
    ]
    return rows.select(
        _qualify_id(ID_FIELD, key.name).alias("id"),
        *ends,
        F.lit(key.name).alias("type"),
        F.col(ID_FIELD).alias("key"),
        *properties,
    )


def _qualify_id(column: str, type_name: str) -> Column:
    return F.concat(F.lit(type_name + SEPARATOR), F.col(column))


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
    session = open_task_session(place)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read_change_batches(session, shares[number], wanted)


@lru_cache(maxsize=8)
def open_task_session(place: StoreAddress) -> Session:
    """A graph, opened once in a process."""
    storage = open_storage(place.root, is_durable=True, options=dict(place.options) or None)
    session = Session(storage, actor=None)
    session.begin()
    return session
