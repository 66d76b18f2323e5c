"""The bytes and batches of a unit: lines of a byte range, or batches of row groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.storage.objects import Objects
from omnigraph.storage.source_files import open_source_file
from omnigraph.writers.bulk.notes import read_task_object
from omnigraph.writers.bulk.units import FileRange, Format, LoadJob
from omnigraph.writers.inputs.csv_ranges import RecordRange, SeekableStream
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.lines import Stream
from omnigraph.writers.inputs.reading import RowSink
from omnigraph.writers.inputs.tables import BATCH_ROWS

# The name of an object of the graph that a load reads.
STAGED: Final = "staged:"
_PROBE_BYTES: Final = 64 * 1024
_NEWLINE: Final = b"\n"


class LineRange:
    """The lines that begin in a range of bytes; the last of them may end behind it."""

    def __init__(self, source: SeekableStream, start: int, end: int) -> None:
        self._source = source
        self._place = start
        self._end = end
        self._rest = b""
        # Whether the next byte begins a line.
        self._is_at_start = True
        if start:
            self._skip_to_line(start - 1)

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes; none at the end."""
        if self._place < self._end:
            data = self._read_next(min(nbytes, self._end - self._place))
        elif self._is_at_start:
            return b""
        else:
            data = self._read_next(_PROBE_BYTES)
            data = data[: data.find(_NEWLINE) + 1 or len(data)]
        self._place += len(data)
        self._is_at_start = data.endswith(_NEWLINE) or not data
        return data

    def _skip_to_line(self, place: int) -> None:
        self._source.seek(place)
        while data := self._source.read(_PROBE_BYTES):
            end = data.find(_NEWLINE) + 1
            if end:
                self._place, self._rest = place + end, data[end:]
                return
            place += len(data)
        self._place = max(place, self._end)

    def _read_next(self, nbytes: int) -> bytes:
        if self._rest:
            data, self._rest = self._rest[:nbytes], self._rest[nbytes:]
            return data
        return self._source.read(nbytes)


@contextmanager
def open_range(piece: FileRange, job: LoadJob, objects: Objects) -> Iterator[pa.NativeFile]:
    """The file of a piece, unpacked if it is compressed."""
    uri = piece.file.uri
    if uri.startswith(STAGED):
        with pa.BufferReader(read_task_object(objects, uri.removeprefix(STAGED))) as stream:
            yield stream
        return
    with open_source_file(piece.file, job.location.options) as stream:
        if not piece.is_compressed:
            yield stream
            return
        with pa.CompressedInputStream(stream, pa.Codec.detect(uri).name) as unpacked:
            yield unpacked


def open_lines(stream: pa.NativeFile, piece: FileRange) -> Stream:
    """The lines of a piece."""
    if piece.is_compressed:
        whole: Stream = stream
        return whole
    return LineRange(stream, piece.start, piece.end)


def open_csv_records(stream: pa.NativeFile, piece: FileRange, reading: RowSink) -> CsvRecords:
    """The records of a piece of a CSV file."""
    if not piece.start and piece.end == piece.file.size:
        return CsvRecords(stream, reading)
    header = CsvRecords(stream, reading).header if piece.start else None
    stream.seek(0)
    found = RecordRange(stream, piece.start, piece.end, is_within=piece.is_within_quotes)
    return CsvRecords(found, reading, header)


def read_batches(
    stream: pa.NativeFile, piece: FileRange
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the rows of a piece of a table file."""
    match piece.format:
        case Format.PARQUET:
            parquet = pq.ParquetFile(stream)
            groups = list(range(piece.start, piece.end))
            return parquet.schema_arrow, parquet.iter_batches(BATCH_ROWS, row_groups=groups)
        case Format.ORC:
            found = orc.ORCFile(stream)
            return found.schema, map(found.read_stripe, range(piece.start, piece.end))
        case Format.ARROW:
            reader = pa.ipc.open_stream(stream)
            return reader.schema, iter(reader)
    raise AssertionError(f"{piece.format} holds no table")
