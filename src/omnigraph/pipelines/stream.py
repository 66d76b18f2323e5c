"""Files as they come: Structured Streaming, one run of the targets for each batch.

The slot of a batch is the id of the query, which lies in its checkpoint, and the number of the
batch. Spark gives a batch again after a failure, with the same files: its keys are found then.
"""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from omnigraph.engine.distributed import spark_module
from omnigraph.errors import (
    ApprovalRequired,
    InvalidArgument,
    RunFailed,
    SparkDriverLost,
    SparkFailed,
)
from omnigraph.pipelines.definition import FileSource, Pipeline, Target
from omnigraph.pipelines.encodings import UTF_8
from omnigraph.pipelines.guards import CORRUPT
from omnigraph.pipelines.ledger import SUCCEEDED, Ledger, Run
from omnigraph.pipelines.loading import LoadTerms, load_records
from omnigraph.pipelines.origins.locating import Origins
from omnigraph.pipelines.origins.numbering import by_block, in_blocks
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import Running, RunOptions
from omnigraph.pipelines.slots import Slot
from omnigraph.pipelines.sources import Survey
from omnigraph.pipelines.sources.files import (
    Listed,
    csv_reader,
    listed,
    local_frame,
    spark_pattern,
    without_replacements,
)
from omnigraph.pipelines.sources.json_lines import PERMISSIVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch
    from omnigraph.engine import LoadResult

STREAM: Final = "stream"
_CHECKPOINT: Final = "checkpoint"
# A stream may go on for years; the ledger has all of its runs.
RUNS_KEPT_MAX: Final = 100
# For so long a batch that failed waits to hear whether it was because the stream is stopped.
STOP_TOLD_S: Final = 1.0


def stream_pipeline(
    pipeline: Pipeline, options: RunOptions, *, is_available_now: bool = False
) -> list[Run]:
    """Run a pipeline for every batch of new files; the answer is the newest runs of this call.

    With `is_available_now` it ends behind the files that are there, else it goes on until it is
    interrupted or a batch fails.
    """
    if pipeline.overwrites and options.approve != pipeline.digest:
        raise ApprovalRequired(pipeline.name, pipeline.digest)
    resolver = Resolver.of(pipeline, options.environment)
    with resolver.hiding():
        resolver.require_all()
        return _streamed(pipeline, options, resolver, is_available_now=is_available_now)


def _streamed(
    pipeline: Pipeline, options: RunOptions, resolver: Resolver, *, is_available_now: bool
) -> list[Run]:
    name, source = _source(pipeline, resolver)
    checkpoint = _checkpoint(resolver.ledger(), pipeline)
    session = spark_module("session")
    spark = session.strict(session.session(options.spark))
    if session.is_connect(spark):
        raise InvalidArgument("remote", "files as they come need a session without a server")
    found = listed(source)
    batches = _Batches(pipeline, options, resolver, _Streamed(name, source, found), checkpoint)
    records = _stream(source, found, spark)
    writer = records.writeStream.foreachBatch(batches).option("checkpointLocation", str(checkpoint))
    query = (writer.trigger(availableNow=True) if is_available_now else writer).start()
    try:
        query.awaitTermination()
    except Exception as failure:
        if batches.failure is not None:
            raise batches.failure from failure
        if spark_module("failures").is_driver_lost(failure):
            raise SparkDriverLost(f"stream {pipeline.name}") from failure
        reason = session.first_line(failure)
        raise SparkFailed(f"stream {pipeline.name}", reason) from failure
    except BaseException:
        # Its batch fails now, because nobody wants it any more.
        batches.stopped.set()
        raise
    finally:
        query.stop()
    return list(batches.runs)


@dataclass(frozen=True, slots=True)
class _Streamed:
    """The source of a stream, and its files when that began."""

    name: str
    source: FileSource
    files: Listed


class _Batches:
    """What Spark calls with every batch."""

    def __init__(
        self,
        pipeline: Pipeline,
        options: RunOptions,
        resolver: Resolver,
        source: _Streamed,
        checkpoint: Path,
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._resolver = resolver
        self._source = source
        self._checkpoint = checkpoint
        self.runs: deque[Run] = deque(maxlen=RUNS_KEPT_MAX)
        self.failure: Exception | None = None
        # Set by the thread that somebody interrupted.
        self.stopped = Event()

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Run the targets for a batch; a target that fails stops the stream there."""
        try:
            self._run(rows, number)
        except Exception as failure:
            self.failure = failure
            raise
        except KeyboardInterrupt as stop:
            # Another thread was interrupted: here it is only why the batch ends.
            raise RunFailed("the stream was stopped", run_id="") from stop

    def _run(self, rows: DataFrame, number: int) -> None:
        query = json.loads((self._checkpoint / "metadata").read_text())["id"]
        position = {"kind": STREAM, "query": query, "batch": number}
        name, survey = self._source.name, Survey(position, state=self._source.files)
        slot = Slot(f"stream-{query}-{number:08}", {name: survey})
        ledger = Ledger(self._options.open_store(self._resolver.ledger()), self._pipeline.name)
        with ExitStack() as stack:
            running = Running(self._pipeline, self._options, self._resolver, ledger, stack)
            origins = Origins.of(name, self._source.source, survey, by_block(rows))
            ended = running.all(slot, running.graphs(), _Batch(self, origins))
        self.runs.append(ended)
        if ended.status != SUCCEEDED:
            errors = [target.error for target in ended.targets if target.error is not None]
            raise RunFailed("\n".join(errors), run_id=ended.id, hint="mend it, and start again")


class _Batch:
    """The records of a batch, which Spark holds."""

    def __init__(self, batches: _Batches, origins: Origins) -> None:
        self._batches = batches
        self._origins = origins

    def load(self, branch: Branch, terms: LoadTerms) -> LoadResult:
        """Load what a target takes of them; Spark itself says which files are in a batch."""
        stopped = self._batches.stopped
        if stopped.is_set():
            raise KeyboardInterrupt
        sources = {self._origins.name: self._origins}
        try:
            return load_records(branch, sources, terms, staged=lambda: None)
        except Exception as failure:
            # Who interrupts a stream cancels its jobs first: they may fail before it is said why.
            if stopped.wait(STOP_TOLD_S):
                raise KeyboardInterrupt from failure
            raise

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read: all of the batch."""
        del target
        return self._origins.count()

    def keep(self) -> None:
        """They are the same for all targets."""

    def forget(self) -> None:
        """They stay as they are: Spark gives the batch again if the run fails."""


def _source(pipeline: Pipeline, resolver: Resolver) -> tuple[str, FileSource]:
    name = next(iter(pipeline.sources))
    source = resolver.source(name)
    is_folder = isinstance(source, FileSource) and len(source.paths) == 1
    if len(pipeline.sources) > 1 or not isinstance(source, FileSource) or not is_folder:
        raise InvalidArgument("stream", "only one source of files with one path can be streamed")
    if "://" in source.paths[0] or os.path.isfile(source.paths[0]):
        raise InvalidArgument("stream", "the path must be a folder or a pattern on a disk")
    if source.encoding != UTF_8:
        raise InvalidArgument("stream", "only files in UTF-8 can be streamed")
    return name, source


def _checkpoint(ledger: str, pipeline: Pipeline) -> Path:
    """Where Spark notes what it has seen: beside the ledger."""
    if "://" in ledger and not ledger.startswith("file://"):
        hint = "give a 'ledger' on a disk that the driver and the executors share"
        raise InvalidArgument("stream", "the checkpoint needs a ledger on a disk", hint=hint)
    root = Path(ledger.removeprefix("file://"))
    return root / "__pipelines" / pipeline.name / _CHECKPOINT


def _stream(source: FileSource, found: Listed, spark: SparkSession) -> DataFrame:
    """The stream of a source, with the columns that its files have now."""
    now = local_frame(source, [file.uri for file in found.files], found.format, spark)
    columns = now.schema
    if found.format in ("csv", "json") and CORRUPT not in columns.names:
        # Files that are still to come may hold records that cannot be read.
        columns = columns.add(CORRUPT, "string")
    reader = spark.readStream.schema(columns).format(found.format)
    if found.format == "csv":
        reader = csv_reader(reader, source)
    if found.format == "json":
        reader = reader.option("mode", PERMISSIVE).option("multiLine", source.is_multiline)
    records = reader.load(spark_pattern(source.paths[0]))
    # Files that are still to come are not looked at before they are read.
    return in_blocks(without_replacements(records) if found.format == "csv" else records)
