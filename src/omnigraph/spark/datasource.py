"""`format("omnigraph")`: a type, or the changes of a branch, for Spark's SQL and its streams.

With the option `type`, the rows of that type at one state are read; without, what commits changed,
which `readStream` follows. A write is one commit of a type. Other options are listed in
`datasource_options`; an option that is not known is an error. Filters of a query are pushed down,
and evaluated by Spark again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from omnigraph.engine.feed.feed_batches import SCHEMA
from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.datasource_feed import FeedReader, FeedStreamReader
from omnigraph.spark.datasource_options import (
    FEED_OPTIONS,
    READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    WRITE_OPTIONS,
    SourceOptions,
    iter_reporting,
    report_errors,
)
from omnigraph.spark.datasource_writers import GraphStreamWriter, GraphWriter, build_write_job
from omnigraph.spark.spark_types import format_spark_schema
from omnigraph.spark.sql_conditions import translate_filter
from omnigraph.spark.type_scans import TypeScan, build_type_scan, map_column_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

NAME: Final = "omnigraph"
# A scan, and what each name in it is for a table.
ResolvedScan = tuple[TypeScan, dict[str, tuple[str, pa.DataType]]]

_ALREADY_EXISTS: Final = "DATA_SOURCE_ALREADY_EXISTS"
# Sessions that know the source: Spark warns when it is registered again.
_registered_sessions: Final[WeakSet[SparkSession]] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make the source known to a session, under the name `omnigraph`."""
    if spark not in _registered_sessions:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            spark.dataSource.register(OmnigraphSource)
        except AnalysisException as failure:
            # Spark finds it by itself where it is installed, and takes it in one session else.
            if failure.getCondition() != _ALREADY_EXISTS:
                raise
        _registered_sessions.add(spark)


class OmnigraphSource(DataSource):
    """One type of one graph at one state, which is the newest when a DataFrame is made.

    Spark makes a source for each DataFrame, asks it for its schema, and keeps a copy of it for all
    that it reads later: what was found out for the schema is in the copy.
    """

    _resolved: ResolvedScan | None = None

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return NAME

    @report_errors
    def schema(self) -> str:
        """The columns."""
        if self._is_feed:
            self._source_options.require_known(FEED_OPTIONS)
            return format_spark_schema(SCHEMA)
        return format_spark_schema(self._get_scan()[0].schema)

    @report_errors
    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 — the schema is ours
        """What reads the rows of the state."""
        if self._is_feed:
            return FeedReader(self._source_options)
        return OmnigraphReader(*self._get_scan())

    @report_errors
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 — Spark's
        """What follows the changes of a branch."""
        if not self._is_feed:
            raise InvalidArgumentError(
                "type", "a stream reads changes", hint="name the types by the option 'types'"
            )
        return FeedStreamReader(self._source_options)

    @report_errors
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes rows of a type as one commit."""
        self._source_options.require_known(WRITE_OPTIONS)
        return GraphWriter(
            build_write_job(self._source_options, schema.names, is_overwrite=overwrite)
        )

    @report_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 — Spark's
        """What writes each batch of a stream as one commit."""
        self._source_options.require_known(STREAM_WRITE_OPTIONS)
        return GraphStreamWriter(
            build_write_job(self._source_options, schema.names, is_overwrite=overwrite)
        )

    @property
    def _source_options(self) -> SourceOptions:
        return SourceOptions(self.options)

    @property
    def _is_feed(self) -> bool:
        return "type" not in self._source_options

    def _get_scan(self) -> ResolvedScan:
        if self._resolved is None:
            self._resolved = _resolve_scan(self._source_options)
        return self._resolved


@dataclass(frozen=True, slots=True)
class FragmentPartition(InputPartition):
    """The fragments that one task reads, and what of their rows."""

    scan: TypeScan
    ids: tuple[int, ...]


class OmnigraphReader(DataSourceReader):
    """Reads the rows of one scan."""

    def __init__(self, scan: TypeScan, kinds: dict[str, tuple[str, pa.DataType]]) -> None:
        self._scan = scan
        self._kinds = kinds

    @property
    def pushFilters(self) -> FilterPushdown:  # noqa: N802 — Spark's name
        """What takes the filters of a query."""
        return FilterPushdown(self)

    def add_filters(self, filters: list[Filter]) -> None:
        """Take the filters that a table can evaluate."""
        found = [translate_filter(each, self._kinds) for each in filters]
        conditions = [self._scan.condition, *found]
        both = " AND ".join(f"({each})" for each in conditions if each is not None)
        self._scan = replace(self._scan, condition=both or None)

    def partitions(self) -> list[InputPartition]:
        """One for each group of fragments."""
        return [FragmentPartition(self._scan, ids) for ids in self._scan.plan_splits()]

    @report_errors
    def read(self, partition: InputPartition) -> Iterator[Any]:  # batches of Arrow
        """The rows of one group."""
        assert isinstance(partition, FragmentPartition)
        pa.set_cpu_count(1)
        return iter_reporting(partition.scan.read_batches(partition.ids))


class FilterPushdown:
    """Takes the filters of a query; all of them are evaluated again by Spark.

    Spark refuses a source that implements this where a session has it off. Without filters this
    one reads the same rows, so it says that it is the method of the base class.
    """

    def __init__(self, reader: OmnigraphReader) -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what a table can evaluate, and leave everything to Spark too."""
        self._reader.add_filters(filters)
        return filters


def _resolve_scan(options: SourceOptions) -> ResolvedScan:
    """The scan that options describe, and what each name in it is for a table."""
    options.require_known(READ_OPTIONS)
    with options.open_graph() as graph:
        snapshot = options.resolve_snapshot(graph)
        type_key = snapshot.type_key(options.require("type"), options.get("kind"))
        names, condition = options.list_names("columns"), options.get("filter")
        scan = build_type_scan(snapshot.view, type_key, columns=names, filter=condition)
        shape = snapshot.view.get_shape(type_key)
        known = map_column_names(snapshot.view, type_key)
        return scan, {name: (held, shape.schema.field(held).type) for name, held in known.items()}
