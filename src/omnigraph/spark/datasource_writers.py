"""`df.write` and `df.writeStream`: tasks stage rows beside the graph, and one commit takes them.

Spark calls the writer in processes of its own: tasks on executors, and the commit beside the
driver. What a task has staged is in no commit unless its message arrives there, so that failed
tasks and second attempts leave nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, get_args

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from omnigraph.bulk.bulk_sources import BulkSource, batch_rows, stage_rows
from omnigraph.bulk.split_reader import STAGED
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.bulk.task_tracking import delete_task_objects
from omnigraph.engine.load_dispatch import LoadModeName, OnErrorName
from omnigraph.errors import InvalidArgumentError
from omnigraph.ids import generate_ulid
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.spark.datasource_options import SourceOptions, report_errors
from omnigraph.spark.type_scans import address_of
from omnigraph.storage.objects import layout

_APPEND: Final = "append"
_OVERWRITE: Final = "overwrite"
# The id of a stream in the properties of its tasks: the same after each restart.
_QUERY_ID: Final = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class WriteJob:
    """What a write does, for every process that takes part in it."""

    options: SourceOptions = field(repr=False)
    location: GraphLocation
    mode: LoadModeName
    columns: tuple[str, ...]
    folder: str

    def load(self, pieces: Sequence[FileRange], key: str | None) -> None:
        """Commit staged rows: all of them or none."""
        given = self.options
        with given.open_graph() as graph:
            graph.branch(given.branch).load(
                StagedSource(tuple(pieces), given.require("type"), self.columns),
                mode=self.mode,
                key=key,
                message=given.get("message"),
                on_error=_choose(given, "on_error", OnErrorName, "fail"),
                rejects=given.get("rejects"),
            )


def build_write_job(
    options: SourceOptions, columns: Sequence[str], *, is_overwrite: bool
) -> WriteJob:
    """The write that options describe; what is wrong with them is found before a task starts."""
    default = _OVERWRITE if is_overwrite else _APPEND
    mode = _choose(options, "mode", LoadModeName, default)
    if is_overwrite != (mode == _OVERWRITE):
        raise InvalidArgumentError(
            "mode",
            f"the option is '{mode}', and the mode of the writer '{default}'",
            hint="use .mode('append') with the options append and merge",
        )
    with options.open_graph() as graph:
        snapshot = graph.branch(options.branch).snapshot()
        snapshot.type_key(options.require("type"))
        tables = snapshot.view.tables
        address_of(tables)
        location = GraphLocation(tables.root, dict(tables.options or {}))
    folder = layout.build_staging_folder(generate_ulid())
    return WriteJob(options, location, mode, tuple(columns), folder)


def _choose(options: SourceOptions, name: str, choices: Any, default: str) -> Any:  # Literals
    value, known = options.get(name) or default, get_args(choices)
    if value not in known:
        hint = suggest_similar(value, known) or f"write one of {', '.join(known)}"
        raise InvalidArgumentError(name, f"'{value}' is not a choice", hint=hint)
    return value


@dataclass(frozen=True, slots=True)
class StagedSource(BulkSource):
    """Rows of one type that tasks have staged."""

    pieces: tuple[FileRange, ...]
    type: str
    columns: tuple[str, ...]

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The staged pieces; one without rows if there is none, for a type that is overwritten."""
        if self.pieces:
            return self.pieces
        empty = pa.schema([(name, pa.null()) for name in self.columns]).empty_table()
        return (stage_rows(get_stores(place).objects, folder, empty, type_name=self.type),)


@dataclass(frozen=True, slots=True)
class StagedPieces(WriterCommitMessage):
    """What one task has staged, and the stream that it works for."""

    pieces: tuple[FileRange, ...]
    folder: str
    query_id: str | None = None


def _stage_batches(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> StagedPieces:
    """Stage the rows of a task; a task that fails removes what it staged."""
    pa.set_cpu_count(1)
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
    objects, staged = get_stores(job.location).objects, list[FileRange]()
    first = next((batch for batch in batches if batch.num_rows), None)
    try:
        if first is not None:
            for rows in batch_rows(chain([first], batches), first.schema):
                type_name = job.options.require("type")
                staged.append(stage_rows(objects, job.folder, rows, type_name=type_name))
    except BaseException:
        with suppress(Exception):
            objects.delete([each.file.uri.removeprefix(STAGED) for each in staged])
        raise
    return StagedPieces(tuple(staged), job.folder, query_id)


def _remove_staged(job: WriteJob, messages: Iterable[WriterCommitMessage | None]) -> None:
    # Any failure: it must not hide why a write failed; a clean-up finds the rest.
    with suppress(Exception):
        folders = {each.folder for each in messages if isinstance(each, StagedPieces)}
        for folder in folders | {job.folder}:
            delete_task_objects(get_stores(job.location).objects, folder)


class GraphWriter(DataSourceArrowWriter):
    """Writes a DataFrame as one commit."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    @report_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one task."""
        return _stage_batches(self._job, iterator)

    @report_errors
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load what the tasks have staged."""
        try:
            self._job.load(_collect_pieces(messages), self._job.options.get("key"))
        finally:
            _remove_staged(self._job, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks have staged."""
        _remove_staged(self._job, messages)


class GraphStreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a stream as one commit, whose key is the stream and the batch."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    @report_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one task."""
        return _stage_batches(self._job, iterator)

    @report_errors
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 — Spark's name
        """Load what the tasks of a batch have staged, unless a commit has the batch already."""
        try:
            pieces = _collect_pieces(messages)
            ids = {each.query_id for each in messages if isinstance(each, StagedPieces)}
            if pieces or self._job.mode == _OVERWRITE:
                prefix = self._job.options.get("key") or f"spark:{_require_id(ids)}"
                self._job.load(pieces, f"{prefix}:{batchId}")
        finally:
            _remove_staged(self._job, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002 — Spark's
        """Remove what the tasks have staged."""
        _remove_staged(self._job, messages)


def _collect_pieces(messages: Iterable[WriterCommitMessage | None]) -> list[FileRange]:
    return [piece for each in messages if isinstance(each, StagedPieces) for piece in each.pieces]


def _require_id(ids: set[str | None]) -> str:
    """The id of the stream whose tasks staged a batch."""
    (found,) = ids or {None}
    if found is None:
        raise InvalidArgumentError("key", "the stream of this batch has no id: set the option")
    return found
