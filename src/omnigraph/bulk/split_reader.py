"""One unit read by the readers of every load: its rows in portions, and what was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.bulk.mapped_records import RecordBlock, RecordReader, RowMapper
from omnigraph.bulk.row_checks import RecordProblem
from omnigraph.bulk.splits import FileRange, Format, InputSplit, LoadJob, Stores, noun_of
from omnigraph.bulk.task_tracking import read_task_object
from omnigraph.errors import LoadError, Violation
from omnigraph.lang.quoting import sanitize_message
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.objects.source_files import open_source_file
from omnigraph.writers.inputs.coerced_columns import coerce_column
from omnigraph.writers.inputs.csv_ranges import SeekableStream, open_csv_range
from omnigraph.writers.inputs.csv_reader import read_csv, read_header
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.input_rows import NONE_ABSENT, AbsentColumns, InputOptions
from omnigraph.writers.inputs.input_tables import (
    BATCH_ROWS,
    TableColumns,
    read_table,
    resolve_named_type,
)
from omnigraph.writers.inputs.json_reader import check_first_record, read_json
from omnigraph.writers.inputs.line_blocks import Stream
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.validate.findings import CheckStage

# Rows and bytes of one type that wait in memory before they are given away.
_PORTION_ROWS: Final = 1024 * 1024
PORTION_BYTES: Final = 256 * 1024**2

# Takes rows of a type, their numbers, and the columns that their file does not have.
RowsCallback: TypeAlias = Callable[[TypeKey, pa.Table, RowNumbers, AbsentColumns], None]
RejectedCallback: TypeAlias = Callable[[TypeKey, pa.Table, RowNumbers], None]

# The name of an object of the graph that a load reads.
STAGED: Final = "staged:"
_PROBE_BYTES: Final = 64 * 1024
_NEWLINE: Final = b"\n"


class SplitSink(RowSink):
    """A reading that gives its rows away in portions, and names records by their numbers.

    `examine` gets what is good of refused records, to report what else is wrong with them.
    """

    def __init__(
        self,
        accepted: AcceptedSchema,
        unit: InputSplit,
        keep: RowsCallback,
        examine: RejectedCallback | None = None,
    ) -> None:
        mode = unit.job.mode
        options = InputOptions(
            type=unit.file_range.type,
            is_patch=mode.keeps_entities,
            patches_records=mode is LoadMode.PATCH,
            now=unit.job.terms.now,
        )
        super().__init__(accepted, options)
        self.shown_max = unit.job.problems_max
        self.may_mark = unit.job.may_mark
        self.problems: list[RecordProblem] = []
        self.refused = 0
        # Blank lines count too: the numbers of the next unit go on from here.
        self.lines = 0
        self.is_complete = False
        self._keep = keep
        self._examine = examine
        self._waiting: dict[TypeKey, list[tuple[pa.Table, RowNumbers]]] = {}
        self._absent: dict[TypeKey, AbsentColumns] = {}

    def add_rows(
        self,
        type_key: TypeKey,
        rows: pa.Table,
        numbers: RowNumbers,
        absent: AbsentColumns = NONE_ABSENT,
        *,
        are_named: bool = False,
    ) -> None:
        """Keep rows of a type until they are a portion."""
        filled = self.choose_filled(type_key, absent, are_named=are_named)
        if filled:
            rows, numbers = self.fill_defaults(type_key, filled, rows, numbers)
            absent -= filled
        # A portion has rows with the same columns; plain records may have different ones.
        if type_key in self._waiting and self._absent[type_key] != absent:
            self._flush_type(type_key)
        self._absent[type_key] = absent
        waiting = self._waiting.setdefault(type_key, [])
        waiting.append((rows, numbers))
        count = sum(len(found) for _, found in waiting)
        if count >= _PORTION_ROWS or sum(each.nbytes for each, _ in waiting) >= PORTION_BYTES:
            self._flush_type(type_key)

    def check_rejected_rows(self, type_key: TypeKey, rows: pa.Table, numbers: RowNumbers) -> None:
        """Have looked what else is wrong with refused records."""
        if self._examine is not None and self._has_room:
            self._examine(type_key, rows, numbers)

    def reject_record(self, number: int, refused: RecordError) -> None:
        """Note what is wrong with a record."""
        self.refused += 1
        if not self._has_room:
            return
        message = str(refused)
        if refused.suggestion is not None and (hint := suggest_similar(*refused.suggestion)):
            message = f"{message}; {hint}"
        violation = Violation(refused.rule, message, **refused.fields)
        self.problems.append(RecordProblem(CheckStage.READ, number, violation, refused.hint))

    def count_rejected(self, count: int) -> None:
        """So many more records are wrong in the way that was noted before."""
        self.refused += max(count, 0)

    def build_failure(self, number: int, refused: RecordError) -> LoadError:
        """The error after which nothing more of the unit can be read."""
        self.reject_record(number, refused)
        return LoadError(str(refused), record=number)

    def flush_rest(self) -> None:
        """Give away what is left."""
        for type_key in list(self._waiting):
            self._flush_type(type_key)

    @property
    def _has_room(self) -> bool:
        return len(self.problems) < self.shown_max

    def _flush_type(self, type_key: TypeKey) -> None:
        waiting = self._waiting.pop(type_key)
        rows = pa.concat_tables([each for each, _ in waiting])
        numbers = np.concatenate([found for _, found in waiting])
        self._keep(type_key, rows, numbers, self._absent[type_key])


_Reader: TypeAlias = Callable[[pa.NativeFile, FileRange, SplitSink], None]


def read_split(
    unit: InputSplit, stores: Stores, keep: RowsCallback, examine: RejectedCallback | None = None
) -> SplitSink:
    """Read a unit; what stops the reading is a problem of its file."""
    reading = SplitSink(stores.get_schema(unit.job).accepted, unit, keep, examine)
    return _run_reader(unit, stores, reading, _read_rows)


def read_split_header(unit: InputSplit, stores: Stores) -> SplitSink:
    """Look at the type and the columns of the table file of a unit, and at none of its rows."""
    reading = SplitSink(stores.get_schema(unit.job).accepted, unit, _ignore_rows)
    return _run_reader(unit, stores, reading, _read_header)


def _run_reader(unit: InputSplit, stores: Stores, reading: SplitSink, read: _Reader) -> SplitSink:
    piece = unit.file_range
    reading.begin_file(piece.name, noun=noun_of(piece.format))
    with _finish_readings([reading]), open_range(piece, unit.job, stores.objects) as stream:
        read(stream, piece, reading)
    return reading


@contextmanager
def _finish_readings(readings: Sequence[SplitSink]) -> Iterator[None]:
    """Give away the rest of readings that reach their end; what stops them is a problem."""
    try:
        yield
    except LoadError:
        assert any(reading.problems for reading in readings), "a reading that stops says why"
    except (OSError, pa.ArrowException) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        readings[0].reject_record(0, RecordError(sanitize_message(reason), rule="source"))
    else:
        for reading in readings:
            reading.flush_rest()
            reading.is_complete = True


def read_mapped_splits(
    reader: RecordReader, units: Sequence[InputSplit], readings: Sequence[SplitSink]
) -> int:
    """Read records once, for all units whose rules map them; how many records there are."""
    count = 0
    with _finish_readings(readings):
        targets = [_MappedTarget.open(*pair) for pair in zip(units, readings, strict=True)]
        for block in reader.iter_blocks():
            count += block.rows.num_rows
            for target in targets:
                target.read_block(block)
    return count


@dataclass(frozen=True, slots=True)
class _MappedTarget:
    """A rule, and where its rows go."""

    rule: RowMapper
    columns: TableColumns
    reading: SplitSink

    @classmethod
    def open(cls, unit: InputSplit, reading: SplitSink) -> _MappedTarget:
        piece = unit.file_range
        assert piece.mapped is not None, "asked for units of mapped records"
        reading.begin_file(piece.name, noun=noun_of(piece.format))
        type_key = resolve_named_type(reading)
        columns = TableColumns.from_schema(
            piece.mapped.rule.schema, type_key, reading, coerce_column
        )
        columns.begin(reading)
        return cls(piece.mapped.rule, columns, reading)

    def read_block(self, block: RecordBlock) -> None:
        rows, first = self.rule.map_block(block), self.reading.records + 1
        numbers = np.arange(first, first + rows.num_rows, dtype=np.int64)
        self.columns.read_batch(rows, numbers, self.reading)
        self.reading.count_records(rows.num_rows)
        self.reading.lines = self.reading.records


def _read_rows(stream: pa.NativeFile, piece: FileRange, reading: SplitSink) -> None:
    if piece.format is Format.JSONL:
        lines = _CountedLines(open_lines(stream, piece))
        read_json(lines, reading)
        reading.lines = lines.count
        return
    if piece.format is Format.CSV:
        resolve_named_type(reading)
        reading.lines = read_csv(open_csv_records(stream, piece, reading), reading)
        return
    schema, batches = read_batches(stream, piece)
    read_table(batches, schema, reading)
    reading.lines = reading.records


def _read_header(stream: pa.NativeFile, piece: FileRange, reading: SplitSink) -> None:
    resolve_named_type(reading)
    if piece.format is Format.JSONL:
        check_first_record(open_lines(stream, piece), reading)
        return
    if piece.format is Format.CSV:
        read_header(CsvRecords(stream, reading.build_failure), reading)
        return
    schema, _ = read_batches(stream, piece)
    read_table((), schema, reading)


def _ignore_rows(
    _type: TypeKey, _rows: pa.Table, _numbers: RowNumbers, _absent: AbsentColumns
) -> None:
    """A head has no rows."""


class _CountedLines:
    """A stream that knows how many lines were read from it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.count = 0

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes."""
        data = self._stream.read(nbytes)
        self.count += data.count(b"\n")
        return data


class LineRange:
    """The lines that begin in a range of bytes; the last of them may end after it."""

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
    if piece.csv is None or (not piece.start and piece.end == piece.file.size):
        return CsvRecords(stream, reading.build_failure)
    return open_csv_range(stream, piece.csv, reading.build_failure)


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
