"""Bulk loads on Spark: units are tasks, and the rows of DataFrames are staged by tasks."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions

from omnigraph.errors import InvalidArgument
from omnigraph.spark.cancelling import cancelled_if_left
from omnigraph.spark.failures import FAILURES, failure_of
from omnigraph.spark.jobs import SparkRunner
from omnigraph.spark.progress import watched
from omnigraph.spark.session import ANSI, is_ansi, session
from omnigraph.writers.bulk.attending import require_wanted, under_way
from omnigraph.writers.bulk.origins import Locate
from omnigraph.writers.bulk.runner import StageProgress
from omnigraph.writers.bulk.sources import BulkSource, LoadCounts, portions, stage_rows
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.units import GraphPlace, Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.engine.branch import Branch
    from omnigraph.engine.results import LoadResult

_STAGED: Final = "partition int, number int, piece binary"
_STAGED_SCHEMA: Final = pa.schema(
    [("partition", pa.int32()), ("number", pa.int32()), ("piece", pa.binary())]
)
_STAGE: Final = "stage"


@dataclass(frozen=True, slots=True)
class FrameSource(BulkSource):
    """DataFrames, each with the type of its rows; each is evaluated once.

    Their rows are written beside the graph by tasks, so that whatever is tried again reads the same
    rows, however the frame was made.
    """

    frames: Sequence[tuple[str, DataFrame]]
    own: SparkSession | None = None
    progress: StageProgress | None = None
    # Asked when all rows are staged: it refuses what the frames should not have read.
    staged: Callable[[], None] | None = None
    finder: Locate | None = None
    accepted: Callable[[LoadCounts], None] | None = None

    @property
    def locate(self) -> Locate | None:
        """What finds the records that the rows of the frames were made of."""
        return self.finder

    def accept(self, counts: LoadCounts) -> None:
        """Ask whether so many rows may be left out."""
        if self.accepted is not None:
            self.accepted(counts)

    @property
    def spark(self) -> SparkSession:
        """The session that was given, or the one that the frames belong to."""
        if self.own is not None:
            return self.own
        if not self.frames:
            return session()
        return self.frames[0][1].sparkSession

    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:
        """The rows of all frames, staged."""
        found = tuple(
            piece
            for type_name, frame in self.frames
            for piece in self._staged(frame, type_name, place, folder)
        )
        if self.staged is not None:
            self.staged()
        return found

    def _staged(
        self, frame: DataFrame, type_name: str, place: GraphPlace, folder: str
    ) -> Iterator[Piece]:
        # Pickled by value with what it holds; the function it calls must be installed.
        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return stage_partition(batches, place, folder, type_name)

        stage = f"{_STAGE} {type_name}"
        try:
            with cancelled_if_left(self.spark), watched(self.spark, stage, None, self.progress):
                rows = frame.mapInArrow(work, _STAGED).toArrow()
            if not rows.num_rows:
                schema = frame.limit(0).toArrow().schema
                notes = stores_of(place).notes
                yield stage_rows(notes, folder, schema.empty_table(), type_name=type_name)
        except FAILURES as error:
            raise failure_of(stage, error) from error
        ordered = rows.sort_by([("partition", "ascending"), ("number", "ascending")])
        for packed in ordered["piece"].to_pylist():
            yield pickle.loads(packed)  # noqa: S301 — written by our own tasks


def stage_partition(
    batches: Iterator[pa.RecordBatch], place: GraphPlace, folder: str, type_name: str
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a partition beside the graph, and tell where."""
    pa.set_cpu_count(1)
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return
    notes = stores_of(place).notes

    def all_batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    with under_way(notes, folder):
        for number, rows in enumerate(portions(all_batches(), first.schema)):
            require_wanted(notes, folder)
            piece = pickle.dumps(stage_rows(notes, folder, rows, type_name=type_name))
            row = {"partition": [partition], "number": [number], "piece": [piece]}
            yield pa.RecordBatch.from_pydict(row, schema=_STAGED_SCHEMA)


def runner_for(source: object, progress: StageProgress | None) -> SparkRunner:
    """What runs the units of a load: the session of its frames, or that of this process."""
    spark = getattr(source, "spark", None) or getattr(source, "sparkSession", None)
    return SparkRunner(session if spark is None else spark, progress)


def mapped(frame: DataFrame, mapping: Mapping[str, str]) -> DataFrame:
    """A frame with columns named like properties, each by a column or an SQL expression."""
    if not is_ansi(frame.sparkSession) and not set(mapping.values()) <= set(frame.columns):
        # A frame belongs to its session: its expressions cannot be those of another one.
        raise InvalidArgument(
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
    mode: str,
    key: str | None = None,
    message: str | None = None,
    on_error: str = "fail",
    rejects: str | os.PathLike[str] | None = None,
    spark: SparkSession | None = None,
    progress: StageProgress | None = None,
    staged: Callable[[], None] | None = None,
    locate: Locate | None = None,
    accept: Callable[[LoadCounts], None] | None = None,
) -> LoadResult:
    """Load DataFrames, each with the type of its rows, in one commit for all of them or none.

    Columns are named like properties; an edge has its ends in `from` and `to`, and a given identity
    is in `@id`. The rows are evaluated once, and the units of the load run on the given session, or
    on the one that the frames belong to. `staged` is called when all rows were evaluated, and may
    refuse them; `locate` finds the records behind the column `@origin` of rows that are rejected;
    `accept` is called before the commit, and may refuse to leave so many rows out.
    """
    return branch.load(
        FrameSource(tuple(frames), spark, progress, staged, locate, accept),
        mode=mode,
        key=key,
        message=message,
        engine="spark",
        on_error=on_error,
        rejects=rejects,
        stages=progress,
    )
