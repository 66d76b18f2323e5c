"""CSV files of one type: a header of property names, every value a text; an empty one is null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from omnigraph.writers.inputs.fitted import Fitted, fitted
from omnigraph.writers.inputs.reading import Reading, Refused
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.inputs.tables import UTF8_HINT, named_type, read_table
from omnigraph.writers.inputs.value_reading import Misfit, value_reader

_BLOCK_BYTES = 4 * 1024**2
_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def read_csv(stream: pa.NativeFile, reading: Reading) -> None:
    """Read the rows of a CSV file whose first line names its columns."""
    names = [*type_of(reading.accepted, named_type(reading)).properties, "id", "@id", "from", "to"]
    ragged: list[pcsv.InvalidRow] = []
    try:
        batches = open_texts(stream, names, ragged)
        columns = batches.schema
        read_table(batches, columns, reading, convert_column=texts_to)
    except UnicodeDecodeError as failure:
        refused = Refused("the header is not UTF-8", rule="encoding", hint=UTF8_HINT)
        raise reading.fail(0, refused) from failure
    except pa.ArrowInvalid as failure:
        if not ragged:
            raise
        raise reading.fail(*_ragged(ragged[0])) from failure


def open_texts(
    stream: pa.NativeFile, names: list[str], ragged: list[pcsv.InvalidRow]
) -> pcsv.CSVStreamingReader:
    """A reader of texts, which notes the row that has not as many values as the header."""

    def note(row: pcsv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    return pcsv.open_csv(
        stream,
        # Rows are counted only by a reader without threads, and it is as fast.
        read_options=pcsv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.utf8()),
            # Texts are checked where their rows are known.
            check_utf8=False,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _ragged(row: pcsv.InvalidRow) -> tuple[int, Refused]:
    """The number of a row after the header, and what is wrong with it."""
    found, wanted = row.actual_columns, row.expected_columns
    problem = f"has {found} of the {wanted} values" if found < wanted else f"has {found} values"
    return row.number - 1, Refused(
        f"{problem}, the header names {wanted} columns: {shown(row.text)}",
        rule="csv",
        hint="write an empty value for null, and quote a value that holds a comma or a line end",
    )


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
