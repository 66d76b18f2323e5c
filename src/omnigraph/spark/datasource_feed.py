"""The changes of a branch for `spark.read` and `spark.readStream`; offsets are commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from omnigraph.engine.branch_log import BranchLog
from omnigraph.engine.entity_changes import BoundFilters, parse_filters
from omnigraph.engine.feed.feed_batches import FeedSplit, plan_feed_splits, read_change_batches
from omnigraph.engine.graph import Graph
from omnigraph.engine.refs import resolve
from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.datasource_options import SourceOptions, iter_reporting, report_errors
from omnigraph.spark.graph_frames import open_task_session
from omnigraph.spark.type_scans import address_of
from omnigraph.storage.tables.store_address import StoreAddress

_BEGINNING: Final = "beginning"
_STARTS: Final = (_BEGINNING, "now")
_ALL_ROWS: Final = 2**62
_ROWS_OPTION: Final = "maxrowspertrigger"


class Offset(TypedDict):
    """The commit up to which changes were read; the version says which of two is later."""

    commit: str
    version: int


@dataclass(frozen=True, slots=True)
class FeedPartition(InputPartition):
    """A part of what a commit changed."""

    address: StoreAddress
    split: FeedSplit
    wanted: BoundFilters


class ChangeFeed:
    """The changes of one branch that options describe."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def find_start(self) -> Offset:
        """The commit after which a new reader begins."""
        start = self._options.get("start") or _BEGINNING
        with self._options.open_graph() as graph:
            name = start if start in _STARTS else f"after:{graph.snapshot(start).commit.id}"
            log = BranchLog(graph.branch(self._options.branch))
            return _build_offset(graph, log.find_span(name, rows_max=1)[0])

    def find_end(self, start: Offset | None, rows_max: int = _ALL_ROWS) -> Offset:
        """The newest commit, or the one up to which about so many entities were written."""
        with self._options.open_graph() as graph:
            branch = graph.branch(self._options.branch)
            if start is None:
                return _build_offset(graph, branch.head.id)
            span = BranchLog(branch).find_span(f"after:{start['commit']}", rows_max=rows_max)
            return _build_offset(graph, span[1])

    def plan(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks that read what commits after one up to another changed."""
        if start["commit"] == end["commit"]:
            return []
        names = (self._options.list_names(name) for name in ("kinds", "types", "ops"))
        with self._options.open_graph() as graph:
            session = graph.branch(self._options.branch).session
            first, last = (resolve(session, "offset", each["commit"]).at for each in (start, end))
            # A type may not be there yet, or have another name, at some of the commits.
            views = session.open_view(last), session.open_view(first)
            wanted = parse_filters(*names).resolve_in_first(*views)
            address = address_of(session.resources.storage.tables)
            splits = plan_feed_splits(session, first, last)
        return [FeedPartition(address, split, wanted) for split in splits]


class FeedReader(DataSourceReader):
    """Reads the changes of a branch up to now."""

    def __init__(self, options: SourceOptions) -> None:
        self._feed = ChangeFeed(options)

    @report_errors
    def partitions(self) -> list[InputPartition]:
        """One for each commit, or part of a large one."""
        return self._feed.plan(self._feed.find_start(), self._feed.find_end(None))

    def read(self, partition: InputPartition) -> Iterator[Any]:  # batches of Arrow
        """The changes of one task."""
        return _read_partition(partition)


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the changes of a branch: what lies between two commits is always the same."""

    def __init__(self, options: SourceOptions) -> None:
        self._feed = ChangeFeed(options)
        self._rows_max = _parse_rows(options)
        self._target: Offset | None = None

    @report_errors
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 — Spark's name
        """Where a new query begins."""
        return dict(self._feed.find_start())

    @report_errors
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 — Spark's name
        """Up to where the next batch reads."""
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else _ALL_ROWS
        end = self._feed.find_end(Offset(**start), rows)  # type: ignore[typeddict-item]
        if self._target is not None and end["version"] > self._target["version"]:
            end = self._target
        return dict(end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 — Spark's name
        """How much a batch reads."""
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    @report_errors
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 — Spark's name
        """The newest commit, for the progress of a query."""
        return dict(self._feed.find_end(None))

    @report_errors
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 — Spark's name
        """Read nothing that is committed later."""
        self._target = self._feed.find_end(None)

    @report_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One for each commit of a batch, or part of a large one."""
        return self._feed.plan(Offset(**start), Offset(**end))  # type: ignore[typeddict-item]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # batches of Arrow
        """The changes of one task."""
        return _read_partition(partition)


@report_errors
def _read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, FeedPartition)
    pa.set_cpu_count(1)
    session = open_task_session(partition.address)
    return iter_reporting(read_change_batches(session, partition.split, partition.wanted))


def _build_offset(graph: Graph, commit: str) -> Offset:
    return Offset(commit=commit, version=graph.snapshot(commit).version)


def _parse_rows(options: SourceOptions) -> int | None:
    text = options.get(_ROWS_OPTION)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not int(text):
        raise InvalidArgumentError("maxRowsPerTrigger", f"'{text}' is not a positive number")
    return int(text)
