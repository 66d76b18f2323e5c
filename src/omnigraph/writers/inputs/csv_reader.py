"""CSV files of one type: a header of property names, every value a text; an empty one is null."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from omnigraph.lang.quoting import sanitize_text
from omnigraph.rows.columns import arrow_type_of
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGER_RANGES,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.writers.inputs.coerced_columns import (
    CoercedColumn,
    build_coerced,
    coerce_after_texts,
    coerce_column,
)
from omnigraph.writers.inputs.csv_records import (
    BYTE_ORDER_MARK,
    NEVER_CLOSED,
    CsvBlock,
    CsvRecords,
    Offsets,
)
from omnigraph.writers.inputs.input_tables import UTF8_HINT, read_numbered_batches
from omnigraph.writers.inputs.list_texts import coerce_list_texts
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer

# Messages show less of a record.
_SHOWN_BYTES = 4 * 1024
_RAGGED_HINT = "write an empty value for null, and quote a value that holds a comma or a line end"
_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def read_csv(records: CsvRecords, reading: RowSink) -> int:
    """Read the rows of a CSV file whose first line names its columns; how many lines it has."""
    columns = _parse_header(records.header, reading)
    batches = (
        rows
        for block in records.iter_blocks()
        for rows in _iter_numbered_rows(block, columns, reading)
    )
    read_numbered_batches(batches, columns, reading, convert_column=coerce_texts)
    return records.lines


def read_header(records: CsvRecords, reading: RowSink) -> None:
    """Report what is wrong with the columns of a CSV file, without its rows."""
    columns = _parse_header(records.header, reading)
    read_numbered_batches((), columns, reading, convert_column=coerce_texts)


def parse_column_names(header: bytes) -> list[str]:
    """The names that the first record of a file gives its columns."""
    try:
        header.decode()
    except UnicodeDecodeError as failure:
        raise RecordError("the header is not UTF-8", rule="encoding", hint=UTF8_HINT) from failure
    names: list[str] = pcsv.open_csv(pa.BufferReader(header + b"\n")).schema.names
    return names


def parse_text_columns(
    data: bytes, names: Sequence[str], wanted: Sequence[str] | None = None
) -> pa.Table:
    """Records as columns of texts; all must have as many values as there are names."""
    # Arrow removes a mark from the start of every text; here that is not the start of a file.
    marked = BYTE_ORDER_MARK + data if data.startswith(BYTE_ORDER_MARK) else data
    return pcsv.read_csv(
        pa.py_buffer(marked),
        # One block, so that Arrow does not look for the ends of records once more.
        read_options=pcsv.ReadOptions(
            column_names=names, block_size=len(marked) + 1, use_threads=False
        ),
        parse_options=pcsv.ParseOptions(newlines_in_values=True),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.utf8()),
            # Texts are checked where their rows are known.
            check_utf8=False,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=wanted,
        ),
    )


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """The rows of a block as texts, the line of each, and which records are not rows."""

    rows: pa.Table
    lines: RowNumbers
    ragged: Offsets


def parse_block(
    block: CsvBlock, names: Sequence[str], wanted: Sequence[str] | None = None
) -> ParsedBlock:
    """Parse the records of a block that have as many values as there are names.

    The rows have the columns that are wanted, or all.
    """
    rows = None
    if not block.is_open:
        with suppress(pa.ArrowInvalid):
            rows = parse_text_columns(block.data, names, wanted)
    if rows is not None and rows.num_rows == block.line_count and block.has_newlines_only:
        lines = np.arange(block.first_line, block.first_line + rows.num_rows, dtype=np.int64)
        return ParsedBlock(rows, lines, np.array([], np.int64))
    is_whole = block.frame.are_whole(len(names))
    if rows is None and is_whole.any():
        rows = parse_text_columns(block.select_records(is_whole), names, wanted)
    elif rows is None:
        rows = pa.schema([(name, pa.utf8()) for name in wanted or names]).empty_table()
    lines = block.frame.lines[is_whole]
    assert rows.num_rows == len(lines), "records end where Arrow sees them end"
    return ParsedBlock(rows, lines, np.flatnonzero(~is_whole))


def _parse_header(header: bytes, reading: RowSink) -> pa.Schema:
    try:
        return pa.schema([pa.field(name, pa.utf8()) for name in parse_column_names(header)])
    except RecordError as refused:
        raise reading.build_failure(0, refused) from refused


def _iter_numbered_rows(
    block: CsvBlock, columns: pa.Schema, reading: RowSink
) -> Iterator[tuple[pa.RecordBatch, RowNumbers]]:
    """The rows of a block with their lines; records that are not rows are refused."""
    parsed = parse_block(block, columns.names)
    if len(parsed.ragged):
        _reject_ragged(block, parsed.ragged, len(columns), reading)
    start = 0
    for batch in parsed.rows.to_batches():
        yield batch, parsed.lines[start : start + batch.num_rows]
        start += batch.num_rows


def _reject_ragged(block: CsvBlock, others: Offsets, wanted: int, reading: RowSink) -> None:
    """Refuse the records that have too few or too many values, or no end."""
    frame = block.frame
    for record in others[: reading.shown_max].tolist():
        refused = build_ragged_error(block, record, wanted)
        reading.reject_record(int(frame.lines[record]), refused)
    reading.count_rejected(len(others) - reading.shown_max)
    reading.count_records(len(others))


def build_ragged_error(block: CsvBlock, record: int, wanted: int) -> RecordError:
    """What is wrong with a record that has another number of values than the header, or no end."""
    if block.frame.is_open and record == len(block.frame.lines) - 1:
        return NEVER_CLOSED
    values = _format_count(int(block.frame.widths[record]), "value")
    lines = block.count_lines(record)
    # A quote that is closed too late takes lines in that were meant to be records.
    problem = f"has {values}" if lines == 1 else f"has {values} on {lines:,} lines"
    return RecordError(
        f"{problem}, the header names {_format_count(wanted, 'column')}:"
        f" {sanitize_text(block.format_record(record, _SHOWN_BYTES))}",
        rule="csv",
        hint=_RAGGED_HINT,
    )


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def coerce_texts(texts: pa.Array, type_: PropertyType, *, is_strict: bool) -> CoercedColumn:
    """Texts as the values of a property."""
    if isinstance(type_.value, ListType | VectorType):
        return coerce_list_texts(texts, type_, is_strict=is_strict)
    scalar = type_.scalar
    if scalar is Scalar.BOOL:
        return coerce_after_texts(texts, _coerce_booleans)
    if scalar in INTEGER_RANGES:
        return coerce_after_texts(texts, lambda valid: _coerce_numbers(valid, type_, _INTEGER, int))
    if scalar in FLOATS:
        return coerce_after_texts(texts, lambda valid: _coerce_numbers(valid, type_, _FLOAT, float))
    return coerce_column(texts, type_, is_strict=is_strict)


def _coerce_booleans(texts: pa.Array) -> CoercedColumn:
    lower = pc.utf8_lower(texts)
    known = pc.is_in(lower, value_set=pa.array(["true", "false"]))
    return build_coerced(pc.if_else(known, pc.equal(lower, "true"), None), bad_of=texts)


def _coerce_numbers(
    texts: pa.Array, type_: PropertyType, pattern: str, parse: Callable[[str], Any]
) -> CoercedColumn:
    """Numbers by one cast if all are; else each distinct text on its own."""
    target = arrow_type_of(type_)
    matching = pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)
    try:
        wide = pa.float64() if pa.types.is_floating(target) else target
        found = coerce_column(matching.cast(wide), type_, is_strict=True)
        return build_coerced(found.values, bad_of=texts)
    except pa.ArrowInvalid:
        read, distinct = make_coercer(type_, is_strict=True), matching.dictionary_encode()
        numbers = [_parse_number(text, parse, read) for text in distinct.dictionary.to_pylist()]
        return build_coerced(pa.array(numbers, target).take(distinct.indices), bad_of=texts)


def _parse_number(text: str, parse: Callable[[str], Any], read: Callable[[Any], Any]) -> Any:
    try:
        return read(parse(text))
    except (MisfitError, ValueError):
        return None
