"""A frame of what a survey found, for as long as it is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.pipelines.config.definition import (
    DltSource,
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    PythonSource,
    Source,
    SparkSource,
    SqlSource,
    is_partial,
)
from omnigraph.pipelines.mapping.mapping_sql import quote_literal, quote_name
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.sources import (
    dlt_source,
    file_source,
    graph_feed_source,
    http_increments,
    http_source,
    kafka_source,
    postgres_source,
    spark_source,
)
from omnigraph.pipelines.sources.column_drift import select_fitting_files
from omnigraph.pipelines.sources.csv_frames import build_text_columns, read_csv_names
from omnigraph.pipelines.sources.json_frames import with_corrupt_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Formats whose files begin or end with their columns.
_HEADER_FORMATS: Final = ("csv", "parquet", "orc")

# Where it is not set, Spark takes the number of cores that there are at the moment.
_PARTITIONS_MIN: Final = "spark.sql.files.minPartitionNum"
_SETTINGS: Final = (
    _PARTITIONS_MIN,
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
)

# How many use what was set here: kept by the session, which several objects may stand for.
_USERS: Final = "omnigraph.files.users"

# A server does not report how many cores it has.
_CORES_OF_SERVERS: Final = "64"
_settings_lock: Final = threading.Lock()
PartitionSettings: TypeAlias = tuple[str | None, ...]


@contextmanager
def open_source(
    source: Source,
    found: SourceState,
    spark: SparkSession,
    *,
    staging: str | None = None,
    others: Mapping[str, DataFrame] | None = None,
) -> Iterator[DataFrame]:
    """The records of a source; what they need, such as a snapshot, is held until the end.

    `staging` is the address of a graph that tasks reach too: what only this process can read is
    written beside it. Without one it goes to a folder of this machine. `others` are the records
    of other sources, for a query over them.
    """
    match source:
        case FileSource():
            with pin_partition_settings(spark):
                records = file_source.read_frame(source, found.listing, spark)
                # Without a new file there are only columns, which those of an old one are.
                yield records.limit(0) if found.is_empty else records
        case PostgresSource():
            with postgres_source.open_frame(source, spark, found.position) as rows:
                yield rows
        case HttpSource():
            pieces = found.listing
            if pieces is None and source.incremental is not None:
                pieces = http_increments.read_again(source, found.position)
            with http_source.open_frame(source, spark, staging, pieces) as records:
                yield records
        case FeedSource():
            yield graph_feed_source.read_frame(source, found.position, spark)
        case KafkaSource():
            yield kafka_source.read_frame(source, found.position, spark)
        case SparkSource():
            yield spark_source.read_frame(source, spark)
        case SqlSource():
            with spark_source.open_query(source, spark, others or {}) as rows:
                yield rows
        case PythonSource() | DltSource():
            yield _call_code(source, spark)
        case _:
            assert_never(source)


def _call_code(source: PythonSource | DltSource, spark: SparkSession) -> DataFrame:
    if isinstance(source, DltSource):
        return dlt_source.read_frame(source, spark)
    return spark_source.call_function(source, spark)


def build_location_sql(source: Source, columns: Sequence[str]) -> str:
    """SQL over a record with these columns: which one it is, of a source without files.

    A column that says so, but that a record does not have once, is left out.
    """
    match source:
        case PostgresSource():
            known = [
                name
                for name in postgres_source.find_identity_columns(source)
                if columns.count(name) == 1
            ]
            items = [f"{quote_literal(f'{name} ')}, {quote_name(name)}" for name in known]
            table = quote_literal(source.table or "a query")
            return f"concat_ws(' ', {', '.join([table, *(f'concat({item})' for item in items)])})"
        case HttpSource():
            return f"concat('page ', {PART}, ' record ', {ROW})"
        case FeedSource():
            return "concat_ws(' ', 'commit', commit, type, id)"
        case KafkaSource():
            return "concat(topic, '/', partition, ' offset ', offset)"
        case FileSource() | SparkSource() | SqlSource() | PythonSource() | DltSource():
            return "''"
        case _:
            assert_never(source)


def require_unchanged(source: Source, found: SourceState) -> None:
    """Refuse a source whose records are not pinned and are not those that a survey found."""
    if isinstance(source, FileSource):
        file_source.require_unchanged(source, found.listing)


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a run reads of a source.

    `position` is what the ledger keeps. `content` says what is in it, if that is known before it
    is read: equal contents are equal records. `state` is for the reader alone.
    """

    position: Any  # Any: JSON, of each kind its own
    content: str | None = None
    listing: Any = None  # Any: of each kind its own
    # Of a followed source, whether there is anything after the last position.
    is_empty: bool = False
    # What the next run needs to know of a followed source, if that is more than the position.
    resume: Any = None  # Any: JSON


def is_followed(source: Source) -> bool:
    """Whether each run goes on where the last one ended."""
    return is_partial(source)


def read_source_state(
    source: Source, *, after: Any = None, at: Any = None
) -> SourceState:  # Any: positions
    """Look at a source: of a followed one what is after a position, or again what is at one."""
    match source:
        case FileSource() if source.is_new_only:
            return _read_new_files(source, after, at)
        case FileSource():
            found = file_source.list_files(source)
            found = select_fitting_files(source, found.files, found)
            return SourceState(
                file_source.describe_position(found),
                content=file_source.compute_digest(found),
                listing=found,
            )
        case PostgresSource():
            position = at or postgres_source.compute_position(source, after)
            return SourceState(position, is_empty=postgres_source.is_empty(position))
        case HttpSource():
            return _read_http_state(source, after, at)
        case FeedSource():
            return _read_feed_state(source, after, at)
        case KafkaSource():
            position = kafka_source.compute_position(source, after) if at is None else at
            return SourceState(position, is_empty=kafka_source.count_offsets(position) == 0)
        case SqlSource():
            # What it reads is in the other sources, and the query in the definition.
            return SourceState({"kind": "sql"}, content="sql", is_empty=True)
        case SparkSource() | PythonSource():
            read = source.format if isinstance(source, SparkSource) else source.function
            return SourceState({"kind": source.kind, "read": read})
        case DltSource():
            read = dlt_source.require_function(source)
            return SourceState({"kind": source.kind, "read": read, "table": source.table})
        case _:
            assert_never(source)


def _read_http_state(source: HttpSource, after: Any, at: Any) -> SourceState:  # Any: positions
    if source.incremental is None:
        return SourceState(http_source.describe_position(source))
    if at is not None:
        return SourceState(at, is_empty=http_increments.is_empty(at))
    position, pieces = http_increments.compute_position(source, after)
    return SourceState(position, listing=pieces, is_empty=http_increments.is_empty(position))


def _read_feed_state(source: FeedSource, after: Any, at: Any) -> SourceState:  # Any: positions
    if at is None:
        position = graph_feed_source.compute_position(source, after)
    else:
        position = graph_feed_source.normalize_position(source, at)
    return SourceState(position, is_empty=position["from"] == position["to"])


def _read_new_files(source: FileSource, after: Any, at: Any) -> SourceState:  # Any: positions
    found = file_source.list_files(source)
    new, resume = file_source.select_new_files(found, after, at)
    new = select_fitting_files(source, new.files, found)
    return SourceState(
        file_source.describe_position(new),
        # Any of the old ones has the columns.
        listing=new if new.files else replace(new, files=found.files[:1]),
        is_empty=not new.files,
        resume=resume,
    )


def find_declared_columns(source: Source) -> str | None:
    """The columns of the records of a source, as Spark writes them, if its definition says them."""
    match source:
        case FileSource() | HttpSource():
            return None if source.columns is None else with_corrupt_column(source.columns)
        case FeedSource():
            return graph_feed_source.find_declared_columns(source)
        case KafkaSource():
            return kafka_source.build_declared_columns(source)
        case SparkSource():
            return source.columns
        case PostgresSource() | SqlSource() | PythonSource() | DltSource():
            return None
        case _:
            assert_never(source)


def find_header_files(source: Source) -> file_source.FileListing | None:
    """The files of a source on this machine, if the first of them holds its columns."""
    if not isinstance(source, FileSource) or source.columns is not None:
        return None
    if any("://" in path for path in source.paths) or _is_json_source(source):
        return None
    found = file_source.list_files(source)
    if found.format not in _HEADER_FORMATS:
        return None
    fitting = select_fitting_files(source, found.files, found)
    return fitting if fitting.fills_missing else replace(fitting, files=fitting.files[:1])


def read_header_frame(
    source: FileSource, found: file_source.FileListing, spark: SparkSession
) -> DataFrame:
    """The columns of a source; no row is read."""
    if found.format == "csv":
        return spark.createDataFrame([], build_text_columns(read_csv_names(found)))
    return file_source.read_local_frame(source, found, spark)


def _is_json_source(source: FileSource) -> bool:
    """Whether the files need not be looked for: those of this format have no header."""
    if source.format is not None:
        return source.format not in _HEADER_FORMATS
    return all(file_source.ENDINGS.get(PurePath(path).suffix) == "json" for path in source.paths)


def partition_settings_of(spark: SparkSession) -> PartitionSettings:
    """The settings of a session that its partitions of files depend on."""
    return tuple(spark.conf.get(name, None) for name in _SETTINGS)


@contextmanager
def pin_partition_settings(spark: SparkSession) -> Iterator[None]:
    """Have files packed the same way until the end, unless the settings are changed."""
    with _settings_lock:
        users = int(spark.conf.get(_USERS, None) or 0)
        is_ours = users > 0 or spark.conf.get(_PARTITIONS_MIN, None) is None
        if is_ours and not users:
            spark.conf.set(_PARTITIONS_MIN, _count_cores(spark))
        if is_ours:
            spark.conf.set(_USERS, str(users + 1))
    try:
        yield
    finally:
        if is_ours:
            _unpin_partition_settings(spark)


def _unpin_partition_settings(spark: SparkSession) -> None:
    # Any failure: a session that has ended has no settings, and why it did is reported elsewhere.
    with _settings_lock, suppress(Exception):
        users = int(spark.conf.get(_USERS, None) or 0) - 1
        if users > 0:
            spark.conf.set(_USERS, str(users))
            return
        spark.conf.unset(_USERS)
        spark.conf.unset(_PARTITIONS_MIN)


def _count_cores(spark: SparkSession) -> str:
    chosen = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    if chosen is not None:
        return chosen
    if import_spark_module("spark_session").is_connect(spark):
        return spark.conf.get("spark.default.parallelism", None) or _CORES_OF_SERVERS
    return str(spark.sparkContext.defaultParallelism)
