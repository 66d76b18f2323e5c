"""Bulk loads on Spark: units are tasks, and the rows of DataFrames are staged by tasks."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions

from omnigraph.bulk.bulk_sources import (
    BulkSource,
    LoadCounts,
    LocateOrigins,
    batch_rows,
    stage_rows,
)
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.bulk.task_runner import StageProgress
from omnigraph.bulk.task_tracking import mark_running, require_running_load
from omnigraph.engine.load_dispatch import LoadModeName, OnErrorName
from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.job_cancellation import cancel_on_error
from omnigraph.spark.spark_failures import FAILURES, error_of
from omnigraph.spark.spark_jobs import SparkRunner, report_progress
from omnigraph.spark.spark_session import ANSI, get_session, is_ansi
from omnigraph.writers.inputs.input_tables import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.engine.branch import Branch
    from omnigraph.engine.write_results import LoadResult

_STAGED: Final = "partition int, number int, piece binary"
_STAGED_SCHEMA: Final = pa.schema(
    [("partition", pa.int32()), ("number", pa.int32()), ("piece", pa.binary())]
)
_STAGE: Final = "stage"


@dataclass(frozen=True, slots=True)
class FrameSource(BulkSource):
    """DataFrames, each with the type of its rows; each is evaluated once.

    Their rows are written beside the graph by tasks, so that whatever is tried again reads the same
    rows, however the frame was made. Ranges of files are read where they are.
    """

    frames: Sequence[tuple[str, DataFrame]]
    ranges: tuple[FileRange, ...] = ()
    own: SparkSession | None = None
    progress: StageProgress | None = None
    # Asked when all rows are staged: it refuses what the frames should not have read.
    on_staged: Callable[[], None] | None = None
    locator: LocateOrigins | None = None
    on_accept: Callable[[LoadCounts], None] | None = None
    only_changed: bool = False
    # The types of which the frames have all entities, and what is asked before others end.
    whole_types: frozenset[str] = frozenset()
    on_missing: Callable[[str, int, int], None] | None = None

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark has the rows: of the frames."""
        return True

    @property
    def snapshot_types(self) -> frozenset[str]:
        """The types whose committed entities end if the frames lack them."""
        return self.whole_types

    def accept_missing(self, type_name: str, missing: int, committed: int) -> None:
        """Ask whether so many entities may end."""
        if self.on_missing is not None:
            self.on_missing(type_name, missing, committed)

    @property
    def skips_unchanged(self) -> bool:
        """Whether a merge writes only rows that differ from those that are committed."""
        return self.only_changed

    @property
    def locate(self) -> LocateOrigins | None:
        """What finds the records that the rows of the frames were made of."""
        return self.locator

    def accept_counts(self, counts: LoadCounts) -> None:
        """Ask whether so many rows may be left out."""
        if self.ranges and self.on_staged is not None:
            # Files are read when the rows are written.
            self.on_staged()
        if self.on_accept is not None:
            self.on_accept(counts)

    @property
    def spark(self) -> SparkSession:
        """The session that was given, or the one that the frames belong to."""
        if self.own is not None:
            return self.own
        if not self.frames:
            return get_session()
        return self.frames[0][1].sparkSession

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The rows of all frames, staged."""
        found = tuple(
            piece
            for type_name, frame in self.frames
            for piece in self._stage_frame(frame, type_name, place, folder)
        )
        if self.on_staged is not None:
            self.on_staged()
        return self.ranges + found

    def _stage_frame(
        self, frame: DataFrame, type_name: str, place: GraphLocation, folder: str
    ) -> Iterator[FileRange]:
        # Pickled by value with what it holds; the function it calls must be installed.
        def run_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return stage_partition(batches, place, folder, type_name)

        stage = f"{_STAGE} {type_name}"
        try:
            with (
                cancel_on_error(self.spark),
                report_progress(self.spark, stage, None, self.progress),
            ):
                rows = frame.mapInArrow(run_batches, _STAGED).toArrow()
            ordered = rows.sort_by([("partition", "ascending"), ("number", "ascending")])
            pieces = [pickle.loads(each) for each in ordered["piece"].to_pylist()]  # noqa: S301 — written by our own tasks
            if all(each.is_deletion for each in pieces):
                schema = frame.drop(DELETED).limit(0).toArrow().schema
                notes = get_stores(place).objects
                pieces.append(stage_rows(notes, folder, schema.empty_table(), type_name=type_name))
        except FAILURES as error:
            raise error_of(stage, error) from error
        yield from pieces


def stage_partition(
    batches: Iterator[pa.RecordBatch], place: GraphLocation, folder: str, type_name: str
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a partition beside the graph, and return where."""
    pa.set_cpu_count(1)
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return
    notes = get_stores(place).objects

    def iter_batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    with mark_running(notes, folder):
        for number, rows in enumerate(batch_rows(iter_batches(), first.schema)):
            require_running_load(notes, folder)
            pieces = [
                pickle.dumps(
                    stage_rows(notes, folder, part, type_name=type_name, is_deletion=is_deletion)
                )
                for part, is_deletion in split_deletions(rows)
            ]
            found = [[partition] * len(pieces), [number] * len(pieces), pieces]
            yield pa.record_batch(found, schema=_STAGED_SCHEMA)


def split_deletions(rows: pa.Table) -> Iterator[tuple[pa.Table, bool]]:
    """Rows to write, and those that name entities which end, if any row says so."""
    if DELETED not in rows.column_names:
        yield rows, False
        return
    # Rules that end nothing have no such column.
    is_deleted = pc.fill_null(rows[DELETED], False)
    rows = rows.drop([DELETED])
    for part, is_deletion in ((pc.invert(is_deleted), False), (is_deleted, True)):
        found = rows.filter(part)
        if found.num_rows:
            yield found, is_deletion


def make_runner(source: object, progress: StageProgress | None) -> SparkRunner:
    """What runs the units of a load: the session of its frames, or that of this process."""
    spark = getattr(source, "spark", None) or getattr(source, "sparkSession", None)
    return SparkRunner(get_session if spark is None else spark, progress)


def map_columns(frame: DataFrame, mapping: Mapping[str, str]) -> DataFrame:
    """A frame with columns named like properties, each by a column or an SQL expression."""
    if not is_ansi(frame.sparkSession) and not set(mapping.values()) <= set(frame.columns):
        # A frame belongs to its session: its expressions cannot be those of another one.
        raise InvalidArgumentError(
            "mapping",
            f"the session has {ANSI}=false: values that cannot be converted would become nulls",
            hint="set it to true, or select the columns and load the frame without a mapping",
        )
    return frame.select(
        [functions.expr(expression).alias(name) for name, expression in mapping.items()]
    )


def load_frames(  # noqa: PLR0913 — one keyword for each decision of the caller
    branch: Branch,
    frames: Sequence[tuple[str, DataFrame]],
    *,
    mode: LoadModeName,
    key: str | None = None,
    message: str | None = None,
    on_error: OnErrorName = "fail",
    rejects: str | os.PathLike[str] | None = None,
    spark: SparkSession | None = None,
    progress: StageProgress | None = None,
    staged: Callable[[], None] | None = None,
    locate: LocateOrigins | None = None,
    accept: Callable[[LoadCounts], None] | None = None,
    only_changed: bool = False,
    whole_types: frozenset[str] = frozenset(),
    accept_missing: Callable[[str, int, int], None] | None = None,
    ranges: tuple[FileRange, ...] = (),
) -> LoadResult:
    """Load DataFrames, each with the type of its rows, in one commit for all of them or none.

    Columns are named like properties; an edge has its ends in `from` and `to`, and a given identity
    is in `@id`. The rows are evaluated once, and the units of the load run on the given session, or
    on the one that the frames belong to. `staged` is called when all rows were evaluated, and may
    refuse them; `locate` finds the records of rejected rows by the column `@origin`;
    `accept` is called before the commit, and may refuse to leave so many rows out. With
    `only_changed` a merge leaves rows alone that are the same, and makes no commit of none. Rows
    whose column `@deleted` is true end their entities. Of `whole_types` the frames have all
    entities: others end, if `accept_missing` does not refuse it. `ranges` of files are loaded with
    the frames.
    """
    given = (tuple(frames), ranges, spark, progress, staged, locate, accept, only_changed)
    return branch.load(
        FrameSource(*given, whole_types, accept_missing),
        mode=mode,
        key=key,
        message=message,
        engine="spark",
        on_error=on_error,
        rejects=rejects,
        stages=progress,
    )
