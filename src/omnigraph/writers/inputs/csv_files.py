"""CSV files of one type: a header of property names, every value a text; an empty one is null."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from omnigraph.diagnostics.shown import shown
from omnigraph.execution.columns import arrow_type
from omnigraph.schema.types import (
    FLOATS,
    INTEGER_RANGES,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.writers.inputs.arrow_values import WrongArrowType, after_texts, convert
from omnigraph.writers.inputs.csv_records import (
    BYTE_ORDER_MARK,
    NEVER_CLOSED,
    CsvBlock,
    CsvRecords,
    Mask,
)
from omnigraph.writers.inputs.fitted import Fitted, fitted
from omnigraph.writers.inputs.reading import Numbers, Reading, Refused
from omnigraph.writers.inputs.tables import UTF8_HINT, read_numbered
from omnigraph.writers.inputs.value_reading import Misfit, value_reader

# Messages show less of a record.
_TOLD_BYTES = 4 * 1024
_RAGGED_HINT = "write an empty value for null, and quote a value that holds a comma or a line end"
_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def read_csv(records: CsvRecords, reading: Reading) -> int:
    """Read the rows of a CSV file whose first line names its columns; how many lines it has."""
    columns = _columns_of(records.header, reading)
    batches = (
        rows for block in records.blocks() for rows in _numbered_rows(block, columns, reading)
    )
    read_numbered(batches, columns, reading, convert_column=texts_to)
    return records.lines


def read_header(records: CsvRecords, reading: Reading) -> None:
    """Tell what is wrong with the columns of a CSV file, without its rows."""
    columns = _columns_of(records.header, reading)
    read_numbered((), columns, reading, convert_column=texts_to)


def column_names(header: bytes) -> list[str]:
    """The names that the first record of a file gives its columns."""
    text = header.decode()
    names: list[str] = pcsv.open_csv(pa.BufferReader(text.encode() + b"\n")).schema.names
    return names


def texts_of(data: bytes, names: Sequence[str]) -> pa.Table:
    """Records as columns of texts; all must have as many values as there are names."""
    # Arrow takes a mark away from the start of every text, which is no start of a file here.
    marked = BYTE_ORDER_MARK + data if data.startswith(BYTE_ORDER_MARK) else data
    return pcsv.read_csv(
        pa.py_buffer(marked),
        # One block, so that nobody looks for the ends of records once more.
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
        ),
    )


def _columns_of(header: bytes, reading: Reading) -> pa.Schema:
    try:
        return pa.schema([pa.field(name, pa.utf8()) for name in column_names(header)])
    except UnicodeDecodeError as failure:
        refused = Refused("the header is not UTF-8", rule="encoding", hint=UTF8_HINT)
        raise reading.fail(0, refused) from failure


def _numbered_rows(
    block: CsvBlock, columns: pa.Schema, reading: Reading
) -> Iterator[tuple[pa.RecordBatch, Numbers]]:
    """The rows of a block with their lines; records that are no rows are refused."""
    rows = None
    if not block.is_open:
        with suppress(pa.ArrowInvalid):
            rows = texts_of(block.data, columns.names)
    if rows is not None and rows.num_rows == block.line_count and block.has_newlines_only:
        numbers = np.arange(block.first_line, block.first_line + rows.num_rows, dtype=np.int64)
    else:
        is_whole = block.frame.are_whole(len(columns))
        _refuse_others(block, is_whole, len(columns), reading)
        numbers = block.frame.lines[is_whole]
        if not len(numbers):
            return
        if rows is None:
            rows = texts_of(block.of(is_whole), columns.names)
    assert rows.num_rows == len(numbers), "records end where Arrow sees them end"
    start = 0
    for batch in rows.to_batches():
        yield batch, numbers[start : start + batch.num_rows]
        start += batch.num_rows


def _refuse_others(block: CsvBlock, is_whole: Mask, wanted: int, reading: Reading) -> None:
    """Refuse the records that have too few or too many values, or no end."""
    frame = block.frame
    others = np.flatnonzero(~is_whole)
    for record in others[: reading.told_max].tolist():
        is_open = frame.is_open and record == len(frame.lines) - 1
        refused = NEVER_CLOSED if is_open else _ragged(block, record, wanted)
        reading.refuse(int(frame.lines[record]), refused)
    reading.refuse_more(len(others) - reading.told_max)
    reading.count(len(others))


def _ragged(block: CsvBlock, record: int, wanted: int) -> Refused:
    values = _counted(int(block.frame.widths[record]), "value")
    lines = block.lines_of(record)
    # A quote that is closed too late takes lines in that were meant to be records.
    problem = f"has {values}" if lines == 1 else f"has {values} on {lines:,} lines"
    return Refused(
        f"{problem}, the header names {_counted(wanted, 'column')}:"
        f" {shown(block.text(record, _TOLD_BYTES))}",
        rule="csv",
        hint=_RAGGED_HINT,
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def texts_to(texts: pa.Array, type_: PropertyType, *, is_strict: bool) -> Fitted:
    """Texts as the values of a property."""
    if isinstance(type_.value, ListType | VectorType):
        raise WrongArrowType(f"a CSV file cannot hold {type_}: use JSON lines or Parquet")
    scalar = type_.scalar
    if scalar is Scalar.BOOL:
        return after_texts(texts, _booleans)
    if scalar in INTEGER_RANGES:
        return after_texts(texts, lambda valid: _numbers(valid, type_, _INTEGER, int))
    if scalar in FLOATS:
        return after_texts(texts, lambda valid: _numbers(valid, type_, _FLOAT, float))
    return convert(texts, type_, is_strict=is_strict)


def _booleans(texts: pa.Array) -> Fitted:
    lower = pc.utf8_lower(texts)
    known = pc.is_in(lower, value_set=pa.array(["true", "false"]))
    return fitted(pc.if_else(known, pc.equal(lower, "true"), None), bad_of=texts)


def _numbers(
    texts: pa.Array, type_: PropertyType, pattern: str, parse: Callable[[str], Any]
) -> Fitted:
    """Numbers by one cast if all are; else each distinct text on its own."""
    target = arrow_type(type_)
    matching = pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)
    try:
        wide = pa.float64() if pa.types.is_floating(target) else target
        found = convert(matching.cast(wide), type_, is_strict=True)
        return fitted(found.values, bad_of=texts)
    except pa.ArrowInvalid:
        read, distinct = value_reader(type_, is_strict=True), matching.dictionary_encode()
        numbers = [_or_none(text, parse, read) for text in distinct.dictionary.to_pylist()]
        return fitted(pa.array(numbers, target).take(distinct.indices), bad_of=texts)


def _or_none(text: str, parse: Callable[[str], Any], read: Callable[[Any], Any]) -> Any:
    try:
        return read(parse(text))
    except (Misfit, ValueError):
        return None
