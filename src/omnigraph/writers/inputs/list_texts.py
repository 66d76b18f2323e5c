"""Lists and vectors from the JSON texts that stand for them in CSV and GraphML."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.json_encoding import TEXT, concatenate_texts, join_bytes
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
from omnigraph.writers.inputs.exact_json import build_array, decode_line
from omnigraph.writers.inputs.row_sink import RecordError
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer

_LINE_BREAK: Final = r"[\r\n]"


def coerce_list_texts(texts: pa.Array, type_: PropertyType, *, is_strict: bool) -> CoercedColumn:
    """The lists or vectors of texts; a text that is not one is bad."""

    def read(valid: pa.Array) -> CoercedColumn:
        lists = _parse_lists(valid, _json_type_of(type_))
        if lists is None:
            return _coerce_exactly(valid, type_, is_strict=is_strict)
        return build_coerced(coerce_column(lists, type_, is_strict=is_strict).values, bad_of=valid)

    return coerce_after_texts(texts, read)


def _json_type_of(type_: PropertyType) -> pa.DataType:
    """What Arrow reads the elements as: times are texts."""
    element = Scalar.F64 if isinstance(type_.value, VectorType) else _element_of(type_)
    if element in FLOATS:
        return pa.float64()
    if element in INTEGER_RANGES:
        return pa.uint64() if element is Scalar.U64 else pa.int64()
    return pa.bool_() if element is Scalar.BOOL else pa.utf8()


def _element_of(type_: PropertyType) -> Scalar:
    assert isinstance(type_.value, ListType), f"{type_} is not a list"
    return type_.value.element


def _parse_lists(texts: pa.Array, element: pa.DataType) -> pa.Array | None:
    """The lists, if every text is one on its own line; None to have them read one by one."""
    if not len(texts) or pc.any(pc.match_substring_regex(texts, _LINE_BREAK)).as_py():
        return None
    data = join_bytes(concatenate_texts('{"v":', pc.fill_null(texts, "null").cast(TEXT), "}\n"))
    try:
        found = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([("v", pa.list_(element))]),
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
    except pa.ArrowInvalid:
        return None
    return found["v"].combine_chunks() if found.num_rows == len(texts) else None


def _coerce_exactly(texts: pa.Array, type_: PropertyType, *, is_strict: bool) -> CoercedColumn:
    """Each distinct text on its own: some of them are not lists."""
    read, distinct = make_coercer(type_, is_strict=is_strict), texts.dictionary_encode()
    values: list[Any] = []  # Any: a list as its property keeps it
    for text in distinct.dictionary.to_pylist():
        try:
            values.append(read(decode_line(text)))
        except (MisfitError, RecordError):
            values.append(None)
    found = build_array(values, arrow_type_of(type_)).take(distinct.indices)
    return build_coerced(found, bad_of=texts)
