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
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph.engine.distributed import spark_module
from omnigraph.errors import ApprovalRequired, InvalidArgument, RunFailed, SparkFailed
from omnigraph.pipelines.definition import FileSource, Pipeline, Target
from omnigraph.pipelines.guards import CORRUPT
from omnigraph.pipelines.ledger import SUCCEEDED, Ledger, Run
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import Running, RunOptions
from omnigraph.pipelines.slots import Slot
from omnigraph.pipelines.sources import Survey
from omnigraph.pipelines.sources.files import csv_reader, listed, local_frame
from omnigraph.pipelines.sources.json_lines import PERMISSIVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM: Final = "stream"
_CHECKPOINT: Final = "checkpoint"
# A stream may go on for years; the ledger has all of its runs.
RUNS_KEPT_MAX: Final = 100


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
    resolver.require_all()
    name, source = _source(pipeline, resolver)
    ledger_uri = resolver.ledger()
    checkpoint = _checkpoint(ledger_uri, pipeline)
    session = spark_module("session")
    spark = session.session(options.spark)
    if session.is_connect(spark):
        raise InvalidArgument("remote", "files as they come need a session without a server")
    batches = _Batches(pipeline, options, resolver, name, checkpoint)
    records = _stream(source, spark)
    writer = records.writeStream.foreachBatch(batches).option("checkpointLocation", str(checkpoint))
    query = (writer.trigger(availableNow=True) if is_available_now else writer).start()
    try:
        query.awaitTermination()
    except Exception as failure:
        if batches.failure is not None:
            raise batches.failure from failure
        reason = session.first_line(failure)
        raise SparkFailed(f"stream {pipeline.name}", reason) from failure
    finally:
        query.stop()
    return list(batches.runs)


class _Batches:
    """What Spark calls with every batch."""

    def __init__(
        self,
        pipeline: Pipeline,
        options: RunOptions,
        resolver: Resolver,
        source: str,
        checkpoint: Path,
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._resolver = resolver
        self._source = source
        self._checkpoint = checkpoint
        self.runs: deque[Run] = deque(maxlen=RUNS_KEPT_MAX)
        self.failure: Exception | None = None

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Run the targets for a batch; a target that fails stops the stream there."""
        try:
            self._run(rows, number)
        except Exception as failure:
            self.failure = failure
            raise

    def _run(self, rows: DataFrame, number: int) -> None:
        query = json.loads((self._checkpoint / "metadata").read_text())["id"]
        position = {"kind": STREAM, "query": query, "batch": number}
        slot = Slot(f"stream-{query}-{number:08}", {self._source: Survey(position)})
        ledger = Ledger(self._options.open_store(self._resolver.ledger()), self._pipeline.name)
        with ExitStack() as stack:
            running = Running(self._pipeline, self._options, self._resolver, ledger, stack)
            ended = running.all(slot, running.graphs(), _Batch(rows, self._source))
        self.runs.append(ended)
        if ended.status != SUCCEEDED:
            errors = [target.error for target in ended.targets if target.error is not None]
            raise RunFailed("\n".join(errors), run_id=ended.id, hint="mend it, and start again")


class _Batch:
    """The records of a batch, which Spark holds."""

    def __init__(self, rows: DataFrame, source: str) -> None:
        frame, self._count = spark_module("analysis").counted(rows)
        self._found = rows.sparkSession, {source: frame}

    def __call__(self) -> tuple[SparkSession, Mapping[str, DataFrame]]:
        """The session and the frame of the source."""
        return self._found

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read: all of the batch."""
        del target
        count: int | None = self._count()
        return count

    def require_same(self) -> None:
        """Spark itself says which files are in a batch."""

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
    return name, source


def _checkpoint(ledger: str, pipeline: Pipeline) -> Path:
    """Where Spark notes what it has seen: beside the ledger."""
    if "://" in ledger and not ledger.startswith("file://"):
        hint = "give a 'ledger' on a disk that the driver and the executors share"
        raise InvalidArgument("stream", "the checkpoint needs a ledger on a disk", hint=hint)
    root = Path(ledger.removeprefix("file://"))
    return root / "__pipelines" / pipeline.name / _CHECKPOINT


def _stream(source: FileSource, spark: SparkSession) -> DataFrame:
    """The stream of a source, with the columns that its files have now."""
    found = listed(source)
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
    return reader.load(source.paths[0])
