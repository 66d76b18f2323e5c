"""`spark.read.format("omnigraph")`: a type as a source of Spark's SQL.

Options: `uri` and `type`; `kind` where a node and an edge type share a name; one of `branch`,
`snapshot` (a commit or a tag) and `timestamp`; `columns` (names with commas between them) and
`filter` (an SQL condition), which the source cannot learn from a query; what begins with
`storage.` leads to the store. Filters of a query are pushed down, and evaluated by Spark again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from omnigraph.engine.graph import open_graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.spark.spark_types import format_spark_schema
from omnigraph.spark.sql_conditions import translate_filter
from omnigraph.spark.type_scans import TypeScan, build_type_scan, map_column_names
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.versioning.ref_events import parse_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

NAME: Final = "omnigraph"
_STORAGE_PREFIX: Final = "storage."
_OPTIONS: Final = (
    "uri",
    "type",
    "kind",
    "branch",
    "snapshot",
    "timestamp",
    "columns",
    "filter",
)
# A scan, and what each name in it is for a table.
ResolvedScan = tuple[TypeScan, dict[str, tuple[str, pa.DataType]]]

_ALREADY_EXISTS: Final = "DATA_SOURCE_ALREADY_EXISTS"
# Sessions that know the source: Spark warns when it is registered again.
_registered_sessions: Final[WeakSet[SparkSession]] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make the source known to a session, under the name `omnigraph`."""
    if spark not in _registered_sessions:
        # Spark refuses a source that takes conditions in sessions where that is off.
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            spark.dataSource.register(OmnigraphSource)
        except AnalysisException as failure:
            # Spark takes a source in one session of a process; all else works in the others too.
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

    def schema(self) -> str:
        """The columns."""
        return format_spark_schema(self._get_scan()[0].schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 — the schema is ours
        """What reads the rows of the state."""
        return OmnigraphReader(*self._get_scan())

    def _get_scan(self) -> ResolvedScan:
        if self._resolved is None:
            self._resolved = _resolve_scan(self.options)
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

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 — Spark's name
        """Take the filters that a table can evaluate; all of them are evaluated again by Spark."""
        found = [translate_filter(each, self._kinds) for each in filters]
        conditions = [self._scan.condition, *found]
        both = " AND ".join(f"({each})" for each in conditions if each is not None)
        self._scan = replace(self._scan, condition=both or None)
        return filters

    def partitions(self) -> list[InputPartition]:
        """One for each group of fragments."""
        return [FragmentPartition(self._scan, ids) for ids in self._scan.plan_splits()]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # batches of Arrow
        """The rows of one group."""
        assert isinstance(partition, FragmentPartition)
        pa.set_cpu_count(1)
        return partition.scan.read_batches(partition.ids)


def _resolve_scan(options: Mapping[str, str]) -> ResolvedScan:
    """The scan that options describe, and what each name in it is for a table."""
    given = {name.lower(): value for name, value in options.items() if value}
    _require_known(given)
    storage = {
        name[len(_STORAGE_PREFIX) :]: value for name, value in given.items() if _is_storage(name)
    }
    with open_graph(given["uri"], storage_options=storage or None) as graph:
        snapshot = _resolve_snapshot(graph, given)
        kind = given.get("kind")
        type_key = snapshot.type_key(given["type"], kind)
        columns = given.get("columns")
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        scan = build_type_scan(snapshot.view, type_key, columns=names, filter=given.get("filter"))
        shape = snapshot.view.get_shape(type_key)
        known = map_column_names(snapshot.view, type_key)
        return scan, {name: (held, shape.schema.field(held).type) for name, held in known.items()}


def _resolve_snapshot(
    graph: Any, given: dict[str, str]
) -> Snapshot:  # the graph that was just opened
    places = [name for name in ("branch", "snapshot", "timestamp") if name in given]
    if len(places) > 1 and set(places) != {"branch", "timestamp"}:
        raise InvalidArgumentError(places[1], f"it excludes '{places[0]}'")
    branch = given.get("branch", MAIN_BRANCH)
    if "snapshot" in given:
        found: Snapshot = graph.snapshot(given["snapshot"])
    elif "timestamp" in given:
        moment = parse_time(given["timestamp"])
        if moment is None:
            raise InvalidArgumentError(
                "timestamp",
                f"'{given['timestamp']}' is not a time",
                hint="write it like 2026-01-31T12:00:00Z",
            )
        found = graph.snapshot(moment, branch=branch)
    else:
        found = graph.branch(branch).snapshot()
    return found


def _require_known(given: dict[str, str]) -> None:
    for name in given:
        if name not in _OPTIONS and not _is_storage(name):
            raise InvalidArgumentError(
                name, "there is no such option", hint=suggest_similar(name, _OPTIONS)
            )
    for name in ("uri", "type"):
        if name not in given:
            raise InvalidArgumentError(name, "the option is missing")


def _is_storage(name: str) -> bool:
    return name.startswith(_STORAGE_PREFIX)
