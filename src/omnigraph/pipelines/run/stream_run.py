"""Files as they come: Structured Streaming, one run of the targets for each batch.

The slot of a batch is the id of the query, which lies in its checkpoint, and the number of the
batch. Spark gives a batch again after a failure, with the same files: its keys are found then.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import (
    ApprovalRequiredError,
    InvalidArgumentError,
    RunFailedError,
    SourceRefusedError,
    SparkDriverLostError,
    SparkFailedError,
)
from omnigraph.pipelines.config.definition import FileSource, Pipeline, Target
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import uses_slots
from omnigraph.pipelines.config.text_encodings import UTF_8, has_half_characters
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, Ledger, Run
from omnigraph.pipelines.mapping.record_ids import (
    BLOCK,
    FILE,
    PART,
    add_block_columns,
    number_by_block,
)
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.pipelines.run.target_attempt import LoadRequest, load_records
from omnigraph.pipelines.sources import SourceState
from omnigraph.pipelines.sources.column_drift import (
    read_columns,
    select_by_columns,
    select_fitting_files,
)
from omnigraph.pipelines.sources.csv_frames import read_csv_names, read_csv_stream
from omnigraph.pipelines.sources.file_locations import resolve_local_file
from omnigraph.pipelines.sources.file_source import (
    FileListing,
    escape_spark_path,
    escape_spark_pattern,
    list_files,
    read_local_frame,
    select_files,
)
from omnigraph.pipelines.sources.json_frames import PERMISSIVE
from omnigraph.pipelines.sources.provenance import OpenSource, SlotSources
from omnigraph.storage.objects.source_files import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from omnigraph import Branch
    from omnigraph.engine import LoadResult

STREAM: Final = "stream"
_CHECKPOINT: Final = "checkpoint"
# What Spark says of a file that it does not read itself; nothing of the content is asked for.
_FILE_COLUMNS: Final = "path string, modificationTime timestamp, length long, content binary"
# A stream may go on for years; the ledger has all of its runs.
RUNS_KEPT_MAX: Final = 100
# For so long a batch that failed waits to hear whether it was because the stream is stopped.
STOP_WAIT_S: Final = 1.0


def stream_pipeline(
    pipeline: Pipeline, options: RunOptions, *, is_available_now: bool = False
) -> list[Run]:
    """Run a pipeline for every batch of new files; the answer is the newest runs of this call.

    With `is_available_now` it ends after the files that are there, else it goes on until it is
    interrupted or a batch fails.
    """
    if pipeline.overwrites and options.approve != pipeline.digest:
        raise ApprovalRequiredError(pipeline.name, pipeline.digest)
    if any(rule.missing_max for target in pipeline.targets for rule in target.mapping.rules):
        reason = "a batch has only new files: 'delete_missing' would delete everything else"
        raise InvalidArgumentError("stream", reason)
    if uses_slots(pipeline):
        raise InvalidArgumentError("stream", "a batch has no ${SLOT}: it is what is new")
    resolver = Resolver.from_environment(pipeline, options.environment)
    with resolver.hide_secrets_in_errors():
        resolver.require_secrets()
        return _run_stream(pipeline, options, resolver, is_available_now=is_available_now)


def _run_stream(
    pipeline: Pipeline, options: RunOptions, resolver: Resolver, *, is_available_now: bool
) -> list[Run]:
    name, source = _resolve_stream_source(pipeline, resolver)
    checkpoint = _locate_checkpoint(resolver.resolve_ledger(), pipeline)
    session = import_spark_module("spark_session")
    spark = session.get_strict_session(session.get_session(options.spark))
    if session.is_connect(spark):
        raise InvalidArgumentError("remote", "files as they come need a session without a server")
    found = list_files(source)
    found = select_fitting_files(source, found.files, found)
    batches = _BatchRunner(
        pipeline, options, resolver, _StreamSource.open(name, source, found, spark), checkpoint
    )
    records = _open_stream(source, found, spark)
    writer = records.writeStream.foreachBatch(batches).option("checkpointLocation", str(checkpoint))
    query = (writer.trigger(availableNow=True) if is_available_now else writer).start()
    try:
        query.awaitTermination()
    except Exception as failure:
        if batches.failure is not None:
            raise batches.failure from failure
        if import_spark_module("spark_failures").is_driver_lost(failure):
            raise SparkDriverLostError(f"stream {pipeline.name}") from failure
        reason = session.first_line_of(failure)
        raise SparkFailedError(f"stream {pipeline.name}", reason) from failure
    except BaseException:
        # Its batch fails now, because it is not wanted any more.
        batches.stopped.set()
        raise
    finally:
        query.stop()
    return list(batches.runs)


@dataclass(frozen=True, slots=True)
class _StreamSource:
    """The source of a stream, and its files when that began."""

    name: str
    source: FileSource
    files: FileListing
    # The columns that files have; those files may be gone when a batch comes.
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    csv_names: tuple[str, ...] = ()
    schema: StructType | None = None

    @classmethod
    def open(
        cls, name: str, source: FileSource, files: FileListing, spark: SparkSession
    ) -> _StreamSource:
        """The source, with the columns that its files have now."""
        if files.format == "json":
            return cls(name, source, files)
        columns = read_columns(files, files.schema_files[0])
        if files.format == "csv":
            return cls(name, source, files, columns, tuple(read_csv_names(files)))
        schema = read_local_frame(source, files, spark).schema
        return cls(name, source, files, columns, schema=schema)

    def read_files(self, uris: Mapping[SourceFile, str], spark: SparkSession) -> DataFrame:
        """The records of files of a batch, with the file of each."""
        if self.schema is None:
            return read_csv_stream(
                spark.createDataFrame([(uri,) for uri in uris.values()], f"{FILE} string"),
                self.files,
                self.csv_names,
                self.source.columns,
            )
        if not uris:
            empty = spark.createDataFrame([], self.schema)
            return empty.selectExpr("*", f"'' AS {FILE}", f"0L AS {BLOCK}")
        reader = spark.read.schema(self.schema).format(self.files.format)
        return add_block_columns(reader.load([escape_spark_path(file.uri) for file in uris]))


class _BatchRunner:
    """What Spark calls with every batch."""

    def __init__(
        self,
        pipeline: Pipeline,
        options: RunOptions,
        resolver: Resolver,
        source: _StreamSource,
        checkpoint: Path,
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._resolver = resolver
        self._source = source
        self._checkpoint = checkpoint
        self.runs: deque[Run] = deque(maxlen=RUNS_KEPT_MAX)
        self.failure: Exception | None = None
        # Set by the thread that was interrupted.
        self.stopped = Event()

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Run the targets for a batch; a target that fails stops the stream there."""
        try:
            self._run_batch(rows, number)
        except Exception as failure:
            self.failure = failure
            raise
        except KeyboardInterrupt as stop:
            # Another thread was interrupted: here it is only why the batch ends.
            raise RunFailedError("the stream was stopped", run_id="") from stop

    def _run_batch(self, rows: DataFrame, number: int) -> None:
        query = json.loads((self._checkpoint / "metadata").read_text())["id"]
        position = {"kind": STREAM, "query": query, "batch": number}
        name, listing, failure = self._source.name, self._source.files, None
        try:
            rows, listing = self._select_fitting(rows)
        except SourceRefusedError as refused:
            # The run says so, with its targets.
            failure = refused
        survey = SourceState(position, listing=listing)
        slot = Slot(f"stream-{query}-{number:08}", {name: survey})
        ledger = Ledger(
            self._options.open_store(self._resolver.resolve_ledger()), self._pipeline.name
        )
        with ExitStack() as stack:
            running = RunContext(self._pipeline, self._options, self._resolver, ledger, stack)
            is_numbered = failure is not None or PART in rows.columns
            numbered = rows if is_numbered else number_by_block(rows)
            origins = OpenSource.from_records(name, self._source.source, survey, numbered)
            ended = running.run_slot(
                slot, running.open_graphs(), _BatchRecords(self, origins, failure)
            )
        self.runs.append(ended)
        if ended.status != SUCCEEDED:
            raise RunFailedError(
                "\n".join(ended.errors), run_id=ended.id, hint="mend it, and start again"
            )

    def _select_fitting(self, rows: DataFrame) -> tuple[DataFrame, FileListing]:
        """The records of the files of a batch whose columns fit, and what became of the others."""
        files, source = self._source.files, self._source.source
        if files.format == "json" or FILE not in rows.columns:
            return rows, files
        uris = sorted(rows.select(FILE).toArrow().column(0).to_pylist())
        found = {resolve_local_file(uri): uri for uri in uris}
        whole = replace(files, files=tuple(found), skipped=())
        fitting = select_by_columns(source.drift, whole, self._source.columns)
        own = {file: found[file] for file in fitting.files}
        return self._source.read_files(own, rows.sparkSession), fitting


def _require_whole_characters(rows: DataFrame) -> None:
    """Refuse files that escape half of a character: Spark would put a question mark there."""
    uris = rows.select(FILE).distinct().toArrow().column(0).to_pylist()
    found = FileListing(tuple(resolve_local_file(uri) for uri in sorted(uris)), "json")
    if found.files and (bad := select_files(found, has_half_characters, rows.sparkSession)):
        raise SourceRefusedError(
            f"{bad[0].uri} escapes half of a character", hint="mend it, and start again"
        )


class _BatchRecords:
    """The records of a batch, which Spark holds."""

    def __init__(
        self, batches: _BatchRunner, origins: OpenSource, failure: SourceRefusedError | None
    ) -> None:
        self._batches = batches
        self._origins = origins
        self._failure = failure

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load what a target takes of them; Spark itself says which files are in a batch."""
        stopped = self._batches.stopped
        if stopped.is_set():
            raise KeyboardInterrupt
        if self._failure is not None:
            raise self._failure
        sources = SlotSources([self._origins.name], lambda _: self._origins)
        try:
            if self._origins.state.listing.format == "json":
                _require_whole_characters(self._origins.records)
            return load_records(branch, sources, terms, staged=lambda: None)
        except Exception as failure:
            # Who interrupts a stream cancels its jobs first: they may fail before it is said why.
            if stopped.wait(STOP_WAIT_S):
                raise KeyboardInterrupt from failure
            raise

    def count_rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read: all of the batch."""
        del target
        return self._origins.count()

    def retain(self) -> None:
        """They are the same for all targets."""

    def discard(self) -> None:
        """They stay as they are: Spark gives the batch again if the run fails."""


def _resolve_stream_source(pipeline: Pipeline, resolver: Resolver) -> tuple[str, FileSource]:
    name = next(iter(pipeline.sources))
    source = resolver.resolve_source(name)
    is_folder = isinstance(source, FileSource) and len(source.paths) == 1
    if len(pipeline.sources) > 1 or not isinstance(source, FileSource) or not is_folder:
        raise InvalidArgumentError(
            "stream", "only one source of files with one path can be streamed"
        )
    if "://" in source.paths[0] or os.path.isfile(source.paths[0]):
        raise InvalidArgumentError("stream", "the path must be a folder or a pattern on a disk")
    if source.encoding != UTF_8:
        raise InvalidArgumentError("stream", "only files in UTF-8 can be streamed")
    return name, source


def _locate_checkpoint(ledger: str, pipeline: Pipeline) -> Path:
    """Where Spark notes what it has seen: beside the ledger."""
    if "://" in ledger and not ledger.startswith("file://"):
        hint = "give a 'ledger' on a disk that the driver and the executors share"
        raise InvalidArgumentError("stream", "the checkpoint needs a ledger on a disk", hint=hint)
    root = Path(ledger.removeprefix("file://"))
    return root / "__pipelines" / pipeline.name / _CHECKPOINT


def _open_stream(source: FileSource, found: FileListing, spark: SparkSession) -> DataFrame:
    """The stream of a source, with the columns that its files have now."""
    pattern = escape_spark_pattern(source.paths[0])
    if found.format != "json":
        # Spark finds the files; they are read when it is known which ones fit.
        files = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS).load(pattern)
        return files.selectExpr(f"_metadata.file_path AS {FILE}")
    columns = read_local_frame(source, found, spark).schema
    if CORRUPT not in columns.names:
        # Files that are still to come may hold records that cannot be read.
        columns = columns.add(CORRUPT, "string")
    reader = spark.readStream.schema(columns).format(found.format)
    reader = reader.option("mode", PERMISSIVE).option("multiLine", source.is_multiline)
    return add_block_columns(reader.load(pattern))
