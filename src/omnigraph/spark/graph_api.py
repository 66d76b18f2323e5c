"""`Graph.spark`: what a graph offers on Spark."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.bulk.task_runner import StageProgress
from omnigraph.engine import arguments, optimize
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.feed.feed_batches import plan_feed_splits
from omnigraph.engine.load_dispatch import LoadModeName, OnErrorName
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.engine.refs import StateRef, resolve
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgumentError
from omnigraph.exports.export_formats import choose_format
from omnigraph.exports.file_export import ExportResult, export_to
from omnigraph.policy.acts import Act, Action
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.spark import frame_load, graph_frames, type_scans
from omnigraph.spark.datasource import register
from omnigraph.spark.spark_failures import raise_on_driver_loss
from omnigraph.spark.spark_jobs import SparkRunner
from omnigraph.spark.spark_maintenance import SparkWorkers
from omnigraph.spark.spark_session import SparkOptions, get_session
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.engine.graph import Graph
    from omnigraph.engine.graph_session import Session
    from omnigraph.engine.write_results import LoadResult


class GraphSpark:
    """A graph whose types are DataFrames, and whose bulk work is done by tasks.

    It uses the active Spark session of this process, or makes one when it is first needed.
    """

    def __init__(
        self, graph: Graph, opened: Session, where: SparkOptions | SparkSession | None = None
    ) -> None:
        self._graph = graph
        self._opened = opened
        self._where = where

    def on(self, where: SparkOptions | SparkSession) -> GraphSpark:
        """The same graph on a session of the caller, or on one that options describe."""
        return GraphSpark(self._graph, self._opened, where)

    @property
    def session(self) -> SparkSession:
        """The session in use, which knows the source `omnigraph`."""
        where = self._where
        with raise_on_driver_loss("use the session"):
            spark = (
                get_session(where) if where is None or isinstance(where, SparkOptions) else where
            )
            register(spark)
        return spark

    def nodes(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 — the usual name
        at: StateRef = MAIN_BRANCH,
    ) -> DataFrame:
        """The nodes of a type: `@id` and its properties but blobs, or some columns.

        `filter` is an SQL condition on properties, which is evaluated where the rows are read.
        `at` is a branch, a snapshot, a commit, a tag or a time.
        """
        return self._read_rows("node", type_name, columns=columns, condition=filter, at=at)

    def edges(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 — the usual name
        at: StateRef = MAIN_BRANCH,
    ) -> DataFrame:
        """The edges of a type: `@id`, `@src`, `@dst` and its properties; see `nodes`."""
        return self._read_rows("edge", type_name, columns=columns, condition=filter, at=at)

    def frames(
        self, *, types: Collection[str] | None = None, at: StateRef = MAIN_BRANCH
    ) -> graph_frames.Frames:
        """All types, or some, as `vertices` and `edges` in the shape of GraphFrames.

        A vertex has the `id` `Type:id`, and its own id as `key`; an edge has such a `src` and
        `dst`. A property of different types in different types is a text.
        """
        snapshot = self._resolve_snapshot(at)
        view = snapshot.open_for(Action.READ, arguments.require_optional_texts("types", types))
        return graph_frames.build_frames(self.session, view, _resolve_types(snapshot, view, types))

    def changes(
        self,
        start: StateRef,
        end: StateRef = MAIN_BRANCH,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> DataFrame:
        """What every commit after `start` up to `end` changed, both being of one branch.

        `before` and `after` are JSON texts, null where there is none. `type` is what a type was
        called then; `type_id` survives renames.
        """
        opened = self._opened
        states = resolve(opened, "start", start).at, resolve(opened, "end", end).at
        filters = parse_filters(kinds, types, ops)
        for state in states:
            opened.authorize(Act(Action.READ, state.stream.branch), filters.types or None)
        shares = plan_feed_splits(opened, *states)
        place = type_scans.address_of(opened.resources.storage.tables)
        # A type may not be there yet, or have another name, at some of the commits.
        views = opened.open_view(states[1]), opened.open_view(states[0])
        wanted = filters.resolve_in_first(*views)
        return graph_frames.read_changes(self.session, place, shares, wanted)

    def load(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        frame: DataFrame | Mapping[str, DataFrame],
        *,
        type: str | None = None,  # noqa: A002 — as in `Branch.load`
        mode: LoadModeName,
        mapping: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        key: str | None = None,
        on_error: OnErrorName = "fail",
        rejects: str | os.PathLike[str] | None = None,
        progress: StageProgress | None = None,
    ) -> LoadResult:
        """Load the rows of a DataFrame as entities of a type, in one commit or none.

        A dict has a DataFrame for each type, to be loaded together. Columns are named like
        properties; `mapping` makes those of one DataFrame so, by a column or an SQL expression for
        each. An edge has its ends in `from` and `to`. See `Branch.load`.
        """
        # Before Spark evaluates anything of the frame.
        self._opened.authorize(Act(Action.CHANGE, arguments.require_text("branch", branch)))
        return frame_load.load_frames(
            self._graph.branch(branch),
            _name_frames(frame, type, mapping),
            mode=mode,
            key=key,
            on_error=on_error,
            rejects=rejects,
            progress=progress,
        )

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 — the usual name
        types: Collection[str] | None = None,
        at: StateRef = MAIN_BRANCH,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult:
        """Write all types, or some, by tasks; see `Snapshot.export_files`."""
        address = arguments.require_address(path)
        choose_format(format, address)
        type_scans.address_of(self._opened.resources.storage.tables)
        snapshot = self._resolve_snapshot(at)
        view = snapshot.open_for(Action.EXPORT, arguments.require_optional_texts("types", types))
        stored = self._opened.resources.storage.tables.options
        options = stored if storage_options is None else arguments.require_options(storage_options)
        return export_to(
            view,
            _resolve_types(snapshot, view, types),
            SparkRunner(lambda: self.session, progress),
            address=address,
            options=options,
            format_name=format,
        )

    def create_views(self, prefix: str, *, at: StateRef = MAIN_BRANCH) -> list[str]:
        """Make a temporary view of Spark SQL for each type, named by a prefix and the type.

        The views of one call are all of one commit; a call with the same prefix replaces them. An
        edge type with the name of a node type is the view `…Name_edge`.
        """
        snapshot = self._resolve_snapshot(at)
        nodes = {key.name for key in snapshot.view.types if key.kind is TypeKind.NODE}
        names: list[str] = []
        for key in snapshot.view.types:
            is_taken = key.kind is TypeKind.EDGE and key.name in nodes
            name = f"{prefix}{key.name}_edge" if is_taken else f"{prefix}{key.name}"
            scan = type_scans.build_type_scan(snapshot.view, key)
            graph_frames.read_scan(self.session, scan).createOrReplaceTempView(name)
            names.append(name)
        return names

    def optimize(
        self, branch: str = MAIN_BRANCH, *, progress: StageProgress | None = None
    ) -> OptimizeResult:
        """Join small fragments and extend the declared indexes to all rows, in one commit.

        It does what `Branch.optimize` does; tasks write the files.
        """
        stream = self._opened.resources.branches.resolve(arguments.require_text("branch", branch))
        return optimize.optimize(self._opened, stream, self._make_workers(progress))

    def ensure_indices(
        self, branch: str = MAIN_BRANCH, *, progress: StageProgress | None = None
    ) -> IndexBuildResult:
        """Build the declared indexes that a branch lacks, in one commit; tasks write the files."""
        stream = self._opened.resources.branches.resolve(arguments.require_text("branch", branch))
        return optimize.ensure_indices(self._opened, stream, self._make_workers(progress))

    def _make_workers(self, progress: StageProgress | None) -> SparkWorkers:
        tables = self._opened.resources.storage.tables
        type_scans.address_of(tables)
        return SparkWorkers(tables, SparkRunner(lambda: self.session, progress))

    def _read_rows(
        self,
        kind: str,
        type_name: str,
        *,
        columns: Sequence[str] | None,
        condition: str | None,
        at: StateRef,
    ) -> DataFrame:
        snapshot = self._resolve_snapshot(at)
        scan = type_scans.build_type_scan(
            snapshot.open_for(Action.READ, [arguments.require_text("type_name", type_name)]),
            snapshot.type_key(type_name, kind),
            columns=arguments.require_optional_texts("columns", columns),
            filter=arguments.require_optional_text("filter", condition),
        )
        return graph_frames.read_scan(self.session, scan)

    def _resolve_snapshot(self, at: StateRef) -> Snapshot:
        return Snapshot(self._opened, resolve(self._opened, "at", at).at)


def _name_frames(
    frame: DataFrame | Mapping[str, DataFrame],
    type_name: str | None,
    mapping: Mapping[str, str] | None,
) -> list[tuple[str, DataFrame]]:
    """The frames of a load, each with the type of its rows."""
    if not isinstance(frame, Mapping):
        if type_name is None:
            raise InvalidArgumentError("type", "a frame does not say of which type its rows are")
        return [(type_name, frame if mapping is None else frame_load.map_columns(frame, mapping))]
    for name, value in (("type", type_name), ("mapping", mapping)):
        if value is not None:
            raise InvalidArgumentError(name, "it is for one frame: a dict names its types itself")
    if not frame:
        raise InvalidArgumentError("frame", "there is no frame in it")
    return list(frame.items())


def _resolve_types(snapshot: Snapshot, view: View, names: Collection[str] | None) -> list[TypeKey]:
    """The types of some names; all of them for None."""
    known = view.types
    wanted = arguments.require_optional_texts("types", names)
    if wanted is None:
        return list(known)
    for name in wanted:
        snapshot.type_key(name)
    return [key for key in known if key.name in wanted]
