"""Records of files for rules that need no Spark: read by tasks, the columns that are wanted alone.

In: a listing of CSV or Parquet files. Out: the types of their columns, and readers of parts of
them. Guarantee: the records, those that cannot be read, and their numbers are those of the frames
of the same files. Files of which that is not certain have no readers: Spark reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.mapped_records import RecordBlock, RecordReader
from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.config.text_encodings import UNDECODABLE, mark_undecodable
from omnigraph.pipelines.mapping.record_ids import ROW
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources.csv_frames import (
    CsvInput,
    build_batches,
    match_columns,
    open_csv_input,
    plan_csv_inputs,
    read_csv_names,
)
from omnigraph.pipelines.sources.csv_signs import parse_dialect_block
from omnigraph.pipelines.sources.file_source import (
    FileListing,
    read_file_schema,
    read_wide_schema,
)
from omnigraph.pipelines.sources.row_groups import RowGroups, plan_row_groups
from omnigraph.storage.objects.source_files import SourceFile, open_source_file
from omnigraph.writers.inputs.csv_reader import ParsedBlock
from omnigraph.writers.inputs.csv_records import CsvBlock, CsvRecords
from omnigraph.writers.inputs.input_tables import BATCH_ROWS

_CSV_LINE_BYTES: Final = 24
_PLAIN_TYPES: Final = (
    pa.string(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
)
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class PlannedReader:
    """A reader, the file it reads, and about how many records there are."""

    reader: RecordReader
    file: SourceFile
    rows: int


def read_column_types(source: FileSource, found: FileListing) -> Mapping[str, pa.DataType] | None:
    """The types of the columns that rules may use; None for files that only Spark reads."""
    if source.columns is not None or (found.fills_missing and len(found.schema_files) > 1):
        return None
    if found.format == "csv":
        return dict.fromkeys(read_csv_names(found), pa.string())
    if found.format == "parquet":
        return _read_parquet_types(found)
    return None


def _read_parquet_types(found: FileListing) -> Mapping[str, pa.DataType] | None:
    if any(file.uri.rpartition("/")[2].startswith(_HIDDEN) for file in found.files):
        return None
    schemas = [read_file_schema(found, file) for file in found.schema_files]
    names = schemas[0].names
    # Which column a name means, and what one stands for that is missing, Spark decides.
    if len({name.lower() for name in names}) < len(names):
        return None
    if any(set(schema.names) != set(names) for schema in schemas):
        return None
    wide = read_wide_schema(found) or schemas[0]
    types = {field.name: _find_plain_type(field.type) for field in wide if "." not in field.name}
    return {name: type_ for name, type_ in types.items() if type_ is not None}


def _find_plain_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that Spark has for a column; None where it is not plain."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_list(type_) and type_.value_type in _PLAIN_TYPES:
        return type_
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz) if type_.unit in ("ms", "us") else None
    return type_ if type_ in _PLAIN_TYPES else None


def plan_readers(
    name: str, found: FileListing, wanted: Mapping[str, pa.DataType]
) -> list[PlannedReader]:
    """Readers of the records of a source, each of a part of a file."""
    if found.format == "csv":
        names = tuple(read_csv_names(found))
        return [
            PlannedReader(
                CsvRecordReader(name, each, names, tuple(wanted), found.options),
                each.file,
                _count_bytes(each) // _CSV_LINE_BYTES,
            )
            for each in plan_csv_inputs(found)
            if each.file.size
        ]
    schema = pa.schema(list(wanted.items()))
    return [
        PlannedReader(
            ParquetRecordReader(name, file, part, groups, schema, found.options), file, rows
        )
        for part, file in enumerate(found.files)
        for groups, rows in plan_row_groups(file, found.options)
    ]


def _count_bytes(each: CsvInput) -> int:
    return each.file.size if each.range is None else each.range.end - each.range.start


@dataclass(frozen=True, slots=True)
class CsvRecordReader(RecordReader):
    """The records of a CSV file, or of a range of it."""

    source: str
    input: CsvInput
    names: tuple[str, ...]
    wanted: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def iter_blocks(self) -> Iterator[RecordBlock]:
        """The records, a block of the file at a time."""
        with open_csv_input(self.input, self.options) as records:
            own, places = match_columns(records, self.names, self.input)
            assert -1 not in places, "Spark reads files whose missing columns are filled"
            found = dict(zip(self.names, places, strict=True))
            wanted = {name: own[found[name]] for name in self.wanted or self.names[:1]}
            for block in records.iter_blocks():
                yield from self._build_blocks(block, records, own, wanted)

    def _build_blocks(
        self, block: CsvBlock, records: CsvRecords, own: Sequence[str], wanted: Mapping[str, str]
    ) -> Iterator[RecordBlock]:
        marked, before = mark_undecodable(block.data), records.lines_before - 1
        is_text = UNDECODABLE.encode() not in marked
        parsed = self._parse_block(block, own, list(wanted.values())) if is_text else None
        if parsed is None or len(parsed.ragged):
            yield from self._build_all(block, own, wanted, records.lines_before)
            return
        numbers, start = pa.array(parsed.lines + before), 0
        for rows in parsed.rows.to_batches():
            read_all = partial(self._parse_all, block, own, start, rows.num_rows)
            shown = rows.rename_columns(list(wanted))
            part_numbers = numbers.slice(start, rows.num_rows)
            yield RecordBlock(shown, self.input.part, part_numbers, read_all)
            start += rows.num_rows

    def _build_all(
        self, block: CsvBlock, own: Sequence[str], wanted: Mapping[str, str], lines_before: int
    ) -> Iterator[RecordBlock]:
        """A block in which some records cannot be read."""
        for rows in build_batches(block, own, lines_before, self.input.dialect):
            columns = [rows.column(name) for name in wanted.values()]
            shown = pa.record_batch(columns, list(wanted))
            read_all = partial(self._sort_columns, rows, own)
            unreadable = rows.column(CORRUPT)
            yield RecordBlock(shown, self.input.part, rows.column(ROW), read_all, unreadable)

    def _parse_all(
        self, block: CsvBlock, own: Sequence[str], start: int, count: int
    ) -> pa.RecordBatch:
        rows = self._parse_block(block, own).rows.combine_chunks().to_batches()[0]
        return self._sort_columns(rows.slice(start, count), own)

    def _parse_block(
        self, block: CsvBlock, own: Sequence[str], wanted: Sequence[str] | None = None
    ) -> ParsedBlock:
        return parse_dialect_block(block, own, self.input.dialect, wanted)

    def _sort_columns(self, rows: pa.RecordBatch, own: Sequence[str]) -> pa.RecordBatch:
        """All columns of a record, in the order and with the names of the source."""
        lower = [name.lower() for name in own]
        columns = [rows.column(lower.index(name.lower())) for name in self.names]
        return pa.record_batch(columns, list(self.names))


@dataclass(frozen=True, slots=True)
class ParquetRecordReader(RecordReader):
    """The rows of some row groups of a Parquet file."""

    source: str
    file: SourceFile
    part: int
    groups: RowGroups
    schema: pa.Schema = field(hash=False)
    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def iter_blocks(self) -> Iterator[RecordBlock]:
        """The rows, some at a time."""
        pa.set_cpu_count(1)
        try:
            with open_source_file(self.file, self.options) as stream:
                yield from self._iter_blocks(pq.ParquetFile(stream))
        except pa.ArrowException as failure:
            raise SourceRefusedError(f"{self.file.uri}: {failure}") from failure

    def _iter_blocks(self, parquet: pq.ParquetFile) -> Iterator[RecordBlock]:
        groups = list(range(self.groups.start, self.groups.end))
        names = self.schema.names or parquet.schema_arrow.names[:1]
        place = self.groups.first
        for batch in parquet.iter_batches(BATCH_ROWS, row_groups=groups, columns=names):
            columns = [batch.column(each.name).cast(each.type) for each in self.schema]
            rows = pa.record_batch(columns, schema=self.schema) if columns else batch
            numbers = pa.array(np.arange(place, place + rows.num_rows, dtype=np.int64))
            read_all = partial(self._read_all, parquet, place, rows.num_rows)
            yield RecordBlock(rows, self.part, numbers, read_all)
            place += rows.num_rows

    def _read_all(self, parquet: pq.ParquetFile, start: int, count: int) -> pa.RecordBatch:
        """All columns of some rows, of the row groups that they are in."""
        metadata, wanted, before, first = parquet.metadata, [], self.groups.first, None
        for group in range(self.groups.start, self.groups.end):
            rows = metadata.row_group(group).num_rows
            if before < start + count and before + rows > start:
                wanted.append(group)
                first = before if first is None else first
            before += rows
        assert first is not None, "asked for rows of these groups"
        table = parquet.read_row_groups(wanted).slice(start - first, count)
        return table.combine_chunks().to_batches()[0]
