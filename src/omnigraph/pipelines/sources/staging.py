"""Records that only one process can read, written to a store in pieces for tasks to read.

Pieces lie beside a graph, where bulk loads stage theirs too, so that the executors of a cluster
find them. They are removed when nobody needs them any more; those of a process that was killed are
garbage that maintenance collects. No more than a piece and what comes at once is held in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import SourceFailedError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.origins.numbering import PART, ROW
from omnigraph.pipelines.sources.json_lines import TEXT_COLUMN
from omnigraph.storage import layout, open_objects
from omnigraph.storage.objects import Objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES: Final = 8 * 1024**2
_SCHEMA: Final = pa.schema([(PART, pa.int64()), (ROW, pa.int64()), (TEXT_COLUMN, pa.string())])
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")
_COLUMNS: Final = f"{PART} long, {ROW} long, {TEXT_COLUMN} string"


@dataclass(frozen=True, slots=True)
class Staging:
    """A folder of a store that pieces are written to."""

    uri: str
    folder: str

    def path_of(self, number: int) -> str:
        """Where a piece is."""
        return f"{self.folder}/{number:06d}.records"

    def write(self, pages: Iterable[pa.Array]) -> int:
        """Write pages of JSON texts; answers how many pieces there are."""
        objects, count = _open_objects_at(self.uri), 0
        for piece in _split_pieces(pages):
            objects.put(self.path_of(count), _encode_piece(piece))
            count += 1
        return count

    def read_lines(self, count: int, spark: SparkSession) -> DataFrame:
        """The texts of pieces, with the numbers of their pages and in these, both from 1."""
        task = partial(read_pieces, self)
        return spark.range(0, count, 1, max(count, 1)).mapInArrow(task, _COLUMNS)


@contextmanager
def open_staging(uri: str | None) -> Iterator[Staging]:
    """A folder beside a graph, or, without one, of this machine; in the end it is empty again."""
    if uri is None:
        here = tempfile.TemporaryDirectory(prefix="omnigraph-", ignore_cleanup_errors=True)
        with here as folder, open_staging(folder) as own:
            yield own
        return
    staging = Staging(uri, layout.build_staging_folder(generate_ulid()))
    try:
        yield staging
    finally:
        # Any failure: it must not hide how the reading ended, and maintenance collects the rest.
        with suppress(Exception):
            objects = _open_objects_at(uri)
            objects.delete([entry.path for entry in objects.list(f"{staging.folder}/")])


def read_pieces(staging: Staging, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The texts of the pieces whose numbers are in a partition."""
    objects = _open_objects_at(staging.uri)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            data = objects.get(staging.path_of(number))
            if data is None:
                raise SourceFailedError(f"{staging.path_of(number)} was staged, but is gone")
            yield from pa.ipc.open_stream(data)


@lru_cache(maxsize=8)
def _open_objects_at(uri: str) -> Objects:
    # What is written here is of no use after a crash.
    return open_objects(uri, is_durable=False)


def _split_pieces(pages: Iterable[pa.Array]) -> Iterator[list[pa.RecordBatch]]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for number, page in enumerate(pages, 1):
        rows = np.arange(1, len(page) + 1, dtype=np.int64)
        columns = [np.full(len(page), number, np.int64), rows, page]
        waiting.append(pa.record_batch(columns, schema=_SCHEMA))
        size += waiting[-1].nbytes
        if size >= PIECE_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _encode_piece(batches: Iterable[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_COMPRESSED) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
