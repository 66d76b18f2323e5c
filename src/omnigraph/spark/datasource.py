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

from omnigraph.diagnostics import did_you_mean
from omnigraph.engine.graph import open_graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.spark.conditions import pushed_condition
from omnigraph.spark.scans import TypeScan, column_names, type_scan
from omnigraph.spark.values import spark_schema
from omnigraph.versioning.names import time_of
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

NAME: Final = "omnigraph"
_STORAGE: Final = "storage."
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
Found = tuple[TypeScan, dict[str, tuple[str, pa.DataType]]]

_KNOWN: Final = "DATA_SOURCE_ALREADY_EXISTS"
# Sessions that know the source: to be told again, Spark would warn of it.
_told: Final[WeakSet[SparkSession]] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make the source known to a session, under the name `omnigraph`."""
    if spark not in _told:
        # Spark refuses a source that takes conditions in sessions where that is off.
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            spark.dataSource.register(OmnigraphSource)
        except AnalysisException as failure:
            # Spark takes a source in one session of a process; all else works in the others too.
            if failure.getCondition() != _KNOWN:
                raise
        _told.add(spark)


class OmnigraphSource(DataSource):
    """One type of one graph at one state, which is the newest when a DataFrame is made.

    Spark makes a source for each DataFrame, asks it for its schema, and keeps a copy of it for all
    that it reads later: what was found out for the schema is in the copy.
    """

    _found: Found | None = None

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return NAME

    def schema(self) -> str:
        """The columns."""
        return spark_schema(self._scan()[0].schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 — the schema is ours
        """What reads the rows of the state."""
        return OmnigraphReader(*self._scan())

    def _scan(self) -> Found:
        if self._found is None:
            self._found = _scan(self.options)
        return self._found


@dataclass(frozen=True, slots=True)
class Fragments(InputPartition):
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
        found = [pushed_condition(each, self._kinds) for each in filters]
        conditions = [self._scan.condition, *found]
        both = " AND ".join(f"({each})" for each in conditions if each is not None)
        self._scan = replace(self._scan, condition=both or None)
        return filters

    def partitions(self) -> list[InputPartition]:
        """One for each group of fragments."""
        return [Fragments(self._scan, ids) for ids in self._scan.units()]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # batches of Arrow
        """The rows of one group."""
        assert isinstance(partition, Fragments)
        pa.set_cpu_count(1)
        return partition.scan.batches(partition.ids)


def _scan(options: Mapping[str, str]) -> Found:
    """The scan that options describe, and what each name in it is for a table."""
    given = {name.lower(): value for name, value in options.items() if value}
    _require_known(given)
    storage = {name[len(_STORAGE) :]: value for name, value in given.items() if _is_storage(name)}
    with open_graph(given["uri"], storage_options=storage or None) as graph:
        snapshot = _snapshot(graph, given)
        kind = given.get("kind")
        type_key = snapshot.type_key(given["type"], kind)
        columns = given.get("columns")
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        scan = type_scan(snapshot.view, type_key, columns=names, filter=given.get("filter"))
        shape = snapshot.view.shape(type_key)
        known = column_names(snapshot.view, type_key)
        return scan, {name: (held, shape.schema.field(held).type) for name, held in known.items()}


def _snapshot(graph: Any, given: dict[str, str]) -> Snapshot:  # the graph that was just opened
    places = [name for name in ("branch", "snapshot", "timestamp") if name in given]
    if len(places) > 1 and set(places) != {"branch", "timestamp"}:
        raise InvalidArgument(places[1], f"it excludes '{places[0]}'")
    branch = given.get("branch", MAIN_BRANCH)
    if "snapshot" in given:
        found: Snapshot = graph.snapshot(given["snapshot"])
    elif "timestamp" in given:
        moment = time_of(given["timestamp"])
        if moment is None:
            raise InvalidArgument(
                "timestamp",
                f"'{given['timestamp']}' is no time",
                hint="write it like 2026-01-31T12:00:00Z",
            )
        found = graph.snapshot(moment, branch=branch)
    else:
        found = graph.branch(branch).snapshot()
    return found


def _require_known(given: dict[str, str]) -> None:
    for name in given:
        if name not in _OPTIONS and not _is_storage(name):
            raise InvalidArgument(
                name, "there is no such option", hint=did_you_mean(name, _OPTIONS)
            )
    for name in ("uri", "type"):
        if name not in given:
            raise InvalidArgument(name, "the option is missing")


def _is_storage(name: str) -> bool:
    return name.startswith(_STORAGE)
