"""CSV files as frames: texts by the reader of every load, as declared columns if there are any.

Tasks read the files, so that a file has the same records in a pipeline, a load and a bulk load: a
value between two commas that is empty is null, `""` is the empty text, and a record that has more
or fewer values than the header cannot be read. A large file in UTF-8 is read by several tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.csv_dialect import STANDARD_CSV, CsvDialect
from omnigraph.pipelines.config.text_encodings import (
    REPLACEMENT,
    UNDECODABLE,
    UTF_8,
    TranscodedStream,
    decompress_stream,
    mark_undecodable,
)
from omnigraph.pipelines.mapping.mapping_sql import quote_name
from omnigraph.pipelines.mapping.record_ids import FILE, PART, ROW
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources.csv_signs import (
    ExchangedStream,
    parse_dialect_block,
    restore_text,
)
from omnigraph.pipelines.sources.file_locations import resolve_local_file
from omnigraph.storage.objects.source_files import SourceFile, open_source_file
from omnigraph.writers.inputs.csv_ranges import CsvRange, cut_csv, open_csv_range
from omnigraph.writers.inputs.csv_reader import ParsedBlock, parse_column_names
from omnigraph.writers.inputs.csv_records import CsvBlock, CsvRecords
from omnigraph.writers.inputs.row_sink import RecordError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipelines.sources.file_source import FileListing

# Smaller ranges cost more tasks; larger ones leave cores idle at the end.
_RANGE_BYTES: Final = 64 * 1024**2
# Small files share tasks when there are more of them than this.
_TASKS_MIN: Final = 64
_BATCH_ROWS: Final = 65_536
# Of a record that cannot be read, so much is kept.
_SHOWN_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CsvInput:
    """A file, or a range of it, with the number of the file among those of its source."""

    file: SourceFile
    part: int
    encoding: str = UTF_8
    range: CsvRange | None = None
    dialect: CsvDialect = STANDARD_CSV
    # Whether a column that the file lacks is null.
    fills_missing: bool = False


def read_csv_frame(found: FileListing, columns: str | None, spark: SparkSession) -> DataFrame:
    """The records of files, numbered by file and line."""
    names = read_csv_names(found)
    inputs = tuple(plan_csv_inputs(found))
    tasks = max(_TASKS_MIN, sum(file.size for file in found.files) // _RANGE_BYTES)
    numbers = spark.range(0, len(inputs), 1, min(len(inputs), tasks))
    task = partial(read_csv_inputs, inputs, names, found.options)
    rows = numbers.mapInArrow(task, f"{build_text_columns(names)}, {ROW} long, {PART} long")
    return rows if columns is None else _cast_columns(rows, columns, spark)


def read_csv_stream(
    files: DataFrame, found: FileListing, names: Sequence[str], columns: str | None
) -> DataFrame:
    """The records of files whose addresses are in a frame, numbered by file and line."""
    task = partial(read_csv_files, names, found.csv, found.fills_missing)
    rows = files.mapInArrow(task, f"{build_text_columns(names)}, {ROW} long, {FILE} string")
    rows = rows if columns is None else _cast_columns(rows, columns, files.sparkSession)
    return rows.selectExpr("*", f"xxhash64({FILE}) AS {PART}")


def read_csv_names(found: FileListing) -> list[str]:
    """The columns of the first file; the others must have them too."""
    # A file without a byte has no header, and no record that would need one.
    files = found.schema_files
    first = next((file for file in files if file.size), files[0])
    names = read_header_names(found, first)
    for file in files if found.fills_missing else ():
        own = read_header_names(found, file) if file.size else []
        known = {name.lower() for name in names}
        names += [name for name in own if name.lower() not in known]
    for number, name in enumerate(names):
        if not name:
            raise SourceRefusedError(f"{first.uri} line 1: column {number + 1} has no name")
        if name.lower() in (other.lower() for other in names[:number]):
            raise SourceRefusedError(f"{first.uri} line 1: two columns are named {name}")
    return names


def read_header_names(found: FileListing, file: SourceFile) -> list[str]:
    """The columns of a file."""
    with open_source_file(file, found.options) as stream:
        each = CsvInput(file, 0, found.encoding, dialect=found.csv)
        return _parse_names(_open_records(stream, each), each)


def _parse_names(records: CsvRecords, each: CsvInput) -> list[str]:
    if each.dialect.names:
        return list(each.dialect.names)
    names = parse_column_names(mark_undecodable(records.header))
    names = [restore_text(name, each.dialect) for name in names]
    if bad := [name for name in names if UNDECODABLE in name]:
        shown_name = bad[0].replace(UNDECODABLE, REPLACEMENT)
        hint = "give the 'encoding' of the file"
        raise SourceRefusedError(
            f"{each.file.uri} line 1: column {shown_name} is not text", hint=hint
        )
    return names


def plan_csv_inputs(found: FileListing) -> Iterator[CsvInput]:
    """The files, and the ranges of large ones."""
    for number, file in enumerate(found.files):
        whole = CsvInput(
            file,
            number,
            found.encoding,
            dialect=found.csv,
            fills_missing=found.fills_missing,
        )
        # Only bytes of UTF-8 have the same meaning wherever a range starts.
        if found.encoding != UTF_8 or _is_compressed(file.uri):
            yield whole
            continue
        open_file = partial(_open_exchanged, whole, found.options)
        ranges = cut_csv(open_file, file.size, _RANGE_BYTES)
        if len(ranges) == 1:
            yield whole
            continue
        yield from (replace(whole, range=each) for each in ranges)


@contextmanager
def _open_exchanged(each: CsvInput, options: Mapping[str, str]) -> Iterator[ExchangedStream]:
    with open_source_file(each.file, options) as stream:
        yield ExchangedStream(stream, each.dialect)


def _is_compressed(uri: str) -> bool:
    return uri.lower().endswith((".gz", ".zst", ".bz2"))


def build_text_columns(names: Sequence[str]) -> str:
    """Columns of texts as Spark writes them, and one for the text of an unreadable record."""
    return ", ".join(f"{quote_name(name)} string" for name in (*names, CORRUPT))


def _cast_columns(rows: DataFrame, columns: str, spark: SparkSession) -> DataFrame:
    """Texts as the columns that a definition declares; a text that does not fit spoils a record."""
    wanted = spark.createDataFrame([], columns).schema
    casts = {
        each.name: f"try_cast({quote_name(each.name)} AS {each.dataType.simpleString()})"
        for each in wanted
    }
    unfit = " OR ".join(
        f"({quote_name(name)} IS NOT NULL AND {cast} IS NULL)" for name, cast in casts.items()
    )
    record = f"to_json(struct({', '.join(map(quote_name, casts))}))"
    corrupt = f"CASE WHEN {unfit} THEN {record} ELSE {quote_name(CORRUPT)} END"
    items = [f"{cast} AS {quote_name(name)}" for name, cast in casts.items()]
    origin = FILE if FILE in rows.columns else PART
    return rows.selectExpr(*items, f"{corrupt} AS {quote_name(CORRUPT)}", ROW, origin)


def read_csv_inputs(
    inputs: Sequence[CsvInput],
    names: Sequence[str],
    options: Mapping[str, str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The records of the inputs whose numbers are in a partition."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            each = inputs[number]
            for rows in _iter_records(each, names, options):
                part = pa.repeat(pa.scalar(each.part, pa.int64()), rows.num_rows)
                yield rows.append_column(PART, part)


def read_csv_files(
    names: Sequence[str],
    dialect: CsvDialect,
    fills_missing: bool,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The records of the files of this machine whose addresses are in a partition."""
    for batch in batches:
        for uri in batch.column(0).to_pylist():
            file = resolve_local_file(uri)
            each = CsvInput(file, 0, dialect=dialect, fills_missing=fills_missing)
            for rows in _iter_records(each, names, {}):
                yield rows.append_column(FILE, pa.repeat(uri, rows.num_rows))


def _iter_records(
    each: CsvInput, names: Sequence[str], options: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    if not each.file.size:
        return
    with open_csv_input(each, options) as records:
        own, places = match_columns(records, names, each)
        for block in records.iter_blocks():
            for rows in build_batches(block, own, records.lines_before, each.dialect):
                nulls = pa.nulls(rows.num_rows, pa.string())
                columns = [nulls if place < 0 else rows.column(place) for place in places]
                columns += rows.columns[len(own) :]
                yield pa.record_batch(columns, [*names, CORRUPT, ROW])


@contextmanager
def open_csv_input(each: CsvInput, options: Mapping[str, str]) -> Iterator[CsvRecords]:
    """The records of a file or a range; what Arrow cannot read is refused."""
    pa.set_cpu_count(1)
    try:
        with open_source_file(each.file, options) as stream:
            yield _open_records(stream, each)
    except pa.ArrowException as failure:
        raise SourceRefusedError(f"{each.file.uri}: {failure}") from failure


def match_columns(
    records: CsvRecords, names: Sequence[str], each: CsvInput
) -> tuple[list[str], list[int]]:
    """The columns of a file, and where those of its source are among them; -1 for one to fill."""
    own = _parse_names(records, each)
    lower = frozenset(name.lower() for name in own)
    return own, [
        -1
        if each.fills_missing and name.lower() not in lower
        else _find_column(own, name, each.file.uri)
        for name in names
    ]


def _open_records(stream: pa.NativeFile, each: CsvInput) -> CsvRecords:
    def build_failure(line: int, error: RecordError) -> SourceRefusedError:
        before = 0 if each.range is None else each.range.lines_before
        place = f" line {before + line}" if line else ""
        return SourceRefusedError(f"{each.file.uri}{place}: {error}", hint=error.hint)

    if each.range is not None:
        exchanged = ExchangedStream(stream, each.dialect)
        return open_csv_range(exchanged, each.range, build_failure, each.dialect.header)
    data = decompress_stream(stream, each.file.uri)
    if each.encoding != UTF_8:
        data = TranscodedStream(data, each.encoding)
    return CsvRecords(ExchangedStream(data, each.dialect), build_failure, each.dialect.header)


def _find_column(names: Sequence[str], wanted: str, uri: str) -> int:
    """Where a column of the first file is in this one: by its name, then in any case."""
    if wanted in names:
        return names.index(wanted)
    lower = [name.lower() for name in names]
    if wanted.lower() not in lower:
        raise SourceRefusedError(
            f"{uri} has no column {wanted}",
            hint="files of one source have the same columns, unless its 'drift' says otherwise",
        )
    return lower.index(wanted.lower())


def build_batches(
    block: CsvBlock, names: Sequence[str], lines_before: int, dialect: CsvDialect
) -> Iterator[pa.RecordBatch]:
    """The rows of a block, its unreadable records after them; a row number is a line from 0."""
    marked = mark_undecodable(block.data)
    block = replace(block, data=marked)
    parsed = parse_dialect_block(block, names, dialect)
    is_text = UNDECODABLE.encode() not in marked
    corrupt = pa.nulls(parsed.rows.num_rows, pa.string())
    if not is_text:
        corrupt = _show_undecodable_rows(parsed.rows)
    numbers = pa.array(parsed.lines + (lines_before - 1))
    rows = parsed.rows.append_column(CORRUPT, corrupt).append_column(ROW, numbers)
    yield from rows.to_batches(max_chunksize=_BATCH_ROWS)
    if len(parsed.ragged):
        yield _build_unreadable(block, parsed, lines_before, dialect)


def _show_undecodable_rows(rows: pa.Table) -> pa.ChunkedArray:
    """The texts of the rows that hold bytes which are not text; null for all others."""
    values = [pc.fill_null(column, "") for column in rows.columns]
    text = pc.binary_join_element_wise(*values, ",")
    is_bad = pc.match_substring(text, UNDECODABLE)
    shown_text = pc.replace_substring(text, UNDECODABLE, REPLACEMENT)
    return pc.if_else(is_bad, shown_text, pa.scalar(None, pa.string()))


def _build_unreadable(
    block: CsvBlock, parsed: ParsedBlock, lines_before: int, dialect: CsvDialect
) -> pa.RecordBatch:
    """Records with more or fewer values than the header: no values, but their texts."""
    texts = [
        restore_text(block.format_record(record, _SHOWN_BYTES), dialect).replace(
            UNDECODABLE, REPLACEMENT
        )
        for record in parsed.ragged.tolist()
    ]
    numbers = np.asarray(block.frame.lines[parsed.ragged] + (lines_before - 1), np.int64)
    nulls = pa.nulls(len(texts), pa.string())
    columns = [nulls] * parsed.rows.num_columns
    return pa.record_batch(
        [*columns, pa.array(texts, pa.string()), pa.array(numbers)],
        [*parsed.rows.column_names, CORRUPT, ROW],
    )
