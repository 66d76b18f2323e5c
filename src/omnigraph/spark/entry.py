"""`Graph.spark`: what a graph offers on Spark."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.engine import arguments, maintenance
from omnigraph.engine.diff.places import Place, place_of
from omnigraph.engine.entity_change.filters import filters_of
from omnigraph.engine.feed.arrow import shares_between
from omnigraph.engine.maintenance import IndexBuildResult, OptimizeResult
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.schema.accepted import TypeKey
from omnigraph.spark import feed, frames, load, read, scans
from omnigraph.spark.datasource import register
from omnigraph.spark.export import ExportResult, export_types
from omnigraph.spark.failures import naming_driver_loss
from omnigraph.spark.formats import Format
from omnigraph.spark.jobs import SparkRunner
from omnigraph.spark.maintenance import TaskWorkers
from omnigraph.spark.session import SparkOptions, session
from omnigraph.storage.objects import open_objects
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.writers.bulk.runner import StageProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.engine.graph import Graph
    from omnigraph.engine.results import LoadResult
    from omnigraph.engine.session import Session


class GraphOnSpark:
    """A graph whose types are DataFrames, and whose bulk work is done by tasks.

    It uses the active Spark session of this process, or makes one when it is first needed.
    """

    def __init__(
        self, graph: Graph, opened: Session, where: SparkOptions | SparkSession | None = None
    ) -> None:
        self._graph = graph
        self._opened = opened
        self._where = where

    def on(self, where: SparkOptions | SparkSession) -> GraphOnSpark:
        """The same graph on a session of the caller, or on one that options describe."""
        return GraphOnSpark(self._graph, self._opened, where)

    @property
    def session(self) -> SparkSession:
        """The session in use, which knows the source `omnigraph`."""
        where = self._where
        with naming_driver_loss("use the session"):
            spark = session(where) if where is None or isinstance(where, SparkOptions) else where
            register(spark)
        return spark

    def nodes(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 — the name that everybody uses
        at: Place = MAIN_BRANCH,
    ) -> DataFrame:
        """The nodes of a type: `@id` and its properties but blobs, or some columns.

        `filter` is an SQL condition on properties, which is evaluated where the rows are read.
        `at` is a branch, a snapshot, a commit, a tag or a time.
        """
        return self._rows("node", type_name, columns=columns, condition=filter, at=at)

    def edges(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 — the name that everybody uses
        at: Place = MAIN_BRANCH,
    ) -> DataFrame:
        """The edges of a type: `@id`, `@src`, `@dst` and its properties; see `nodes`."""
        return self._rows("edge", type_name, columns=columns, condition=filter, at=at)

    def frames(
        self, *, types: Collection[str] | None = None, at: Place = MAIN_BRANCH
    ) -> frames.Frames:
        """All types, or some, as `vertices` and `edges` in the shape of GraphFrames.

        A vertex has the `id` `Type:id`, and its own id as `key`; an edge has such a `src` and
        `dst`. A property of different types in different types is a text.
        """
        snapshot = self._snapshot(at)
        return frames.frames(self.session, snapshot.view, _types(snapshot, types))

    def changes(
        self,
        start: Place,
        end: Place = MAIN_BRANCH,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> DataFrame:
        """What every commit behind `start` up to `end` changed, both being of one branch.

        `before` and `after` are JSON texts, null where there is none. `type` is what a type was
        called then; `type_id` survives renames.
        """
        opened = self._opened
        states = place_of(opened, "start", start), place_of(opened, "end", end)
        shares = shares_between(opened, *states)
        place = scans.place_of(opened.resources.storage.tables)
        # A type may not be there yet, or have another name, at some of the commits.
        views = opened.view(states[1]), opened.view(states[0])
        wanted = filters_of(kinds, types, ops).first_at(*views)
        return feed.changed(self.session, place, shares, wanted)

    def load(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        frame: DataFrame,
        *,
        type: str,  # noqa: A002 — as in `Branch.load`
        mode: str,
        mapping: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        key: str | None = None,
        on_error: str = "fail",
        rejects: str | os.PathLike[str] | None = None,
        progress: StageProgress | None = None,
    ) -> LoadResult:
        """Load the rows of a DataFrame as entities of a type, in one commit or none.

        Columns are named like properties; `mapping` makes them so, by a column or an SQL
        expression for each. An edge has its ends in `from` and `to`. See `Branch.load`.
        """
        rows = frame if mapping is None else load.mapped(frame, mapping)
        return load.load_frames(
            self._graph.branch(branch),
            [(type, rows)],
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
        format: str = "parquet",  # noqa: A002 — the name that everybody uses
        types: Collection[str] | None = None,
        at: Place = MAIN_BRANCH,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult:
        """Write all types, or some, to a new directory or `s3://` prefix, in folders by type.

        `format` is `parquet`, `jsonl`, `csv` or `graphml`. Without `storage_options` those of the
        graph are used. All of it appears at once in a directory; on S3 `_SUCCESS` comes last.
        """
        form = _format(format)
        snapshot = self._snapshot(at)
        stored = self._opened.resources.storage.tables.options
        options = stored if storage_options is None else arguments.options(storage_options)
        root = open_objects(arguments.address(path), options=options).uri
        target = scans.Place(root, tuple(sorted((options or {}).items())))
        runner = SparkRunner(lambda: self.session, progress)
        return export_types(
            snapshot.view, _types(snapshot, types), runner, target=target, form=form
        )

    def optimize(
        self, branch: str = MAIN_BRANCH, *, progress: StageProgress | None = None
    ) -> OptimizeResult:
        """Join small fragments and extend the declared indexes to all rows, in one commit.

        It does what `Branch.optimize` does; tasks write the files.
        """
        stream = self._opened.resources.branches.resolve(arguments.text("branch", branch))
        return maintenance.optimize(self._opened, stream, self._workers(progress))

    def ensure_indices(
        self, branch: str = MAIN_BRANCH, *, progress: StageProgress | None = None
    ) -> IndexBuildResult:
        """Build the declared indexes that a branch lacks, in one commit; tasks write the files."""
        stream = self._opened.resources.branches.resolve(arguments.text("branch", branch))
        return maintenance.ensure_indices(self._opened, stream, self._workers(progress))

    def _workers(self, progress: StageProgress | None) -> TaskWorkers:
        tables = self._opened.resources.storage.tables
        scans.place_of(tables)
        return TaskWorkers(tables, SparkRunner(lambda: self.session, progress))

    def _rows(
        self,
        kind: str,
        type_name: str,
        *,
        columns: Sequence[str] | None,
        condition: str | None,
        at: Place,
    ) -> DataFrame:
        snapshot = self._snapshot(at)
        scan = scans.type_scan(
            snapshot.view,
            snapshot.type_key(type_name, kind),
            columns=arguments.texts_or_none("columns", columns),
            filter=arguments.text_or_none("filter", condition),
        )
        return read.scanned(self.session, scan)

    def _snapshot(self, at: Place) -> Snapshot:
        return Snapshot(self._opened, place_of(self._opened, "at", at))


def _format(name: str) -> Format:
    try:
        return Format(name)
    except ValueError:
        known = ", ".join(f"'{each.value}'" for each in Format)
        raise InvalidArgument("format", f"'{name}' is not one of {known}") from None


def _types(snapshot: Snapshot, names: Collection[str] | None) -> list[TypeKey]:
    """The types of some names; all of them for None."""
    known = snapshot.view.types
    wanted = arguments.texts_or_none("types", names)
    if wanted is None:
        return list(known)
    for name in wanted:
        snapshot.type_key(name)
    return [key for key in known if key.name in wanted]
