"""Columns of results as JSON values, for Python's own JSON writer.

Nulls are explicit, dates and times are texts, a 32-bit float is the double with its shortest
digits, and floats that JSON has no word for are texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import Values, flatten_chunks, to_numpy
from omnigraph.schema.values import compute_shortest_f32, format_date, format_datetime

Json: TypeAlias = Any  # Any: whatever `json.dumps` takes
# One value to its JSON value; None if they are the same.
_Encode: TypeAlias = Callable[[Any], Json] | None

# Up to so many values are encoded one by one: a call into Arrow costs as much as dozens of them.
FEW_VALUES: Final = 32
# The kinds of columns that queries return are few; a struct is a kind for each node type.
_KINDS_MAX: Final = 1_024
# 0000-01-01 and 9999-12-31, between which Arrow and Python spell a moment alike.
_PLAIN_MS_MIN, _PLAIN_MS_MAX = -62_167_219_200_000, 253_402_300_799_999

_NON_FINITE_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encode_json_values(values: Values) -> list[Json]:
    """One JSON value per row."""
    kind = values.type
    if len(values) <= FEW_VALUES and _is_flat(kind):
        return _encode_few(values, kind)
    column = flatten_chunks(values)
    if pa.types.is_struct(kind):
        return _encode_structs(column)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _encode_lists(column)
    if pa.types.is_floating(kind):
        return _encode_floats(column)
    if pa.types.is_date32(kind):
        return _encode_dates(column)
    if pa.types.is_timestamp(kind):
        column = _format_timestamps(column)
    found: list[Json] = column.to_pylist()
    return found


@lru_cache(_KINDS_MAX)
def _is_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _encode_few(values: Values, kind: pa.DataType) -> list[Json]:
    """A few values of a kind that is not nested."""
    stored, encode = _encoder_of(kind)
    found: list[Json] = (
        values if stored is None else flatten_chunks(values).view(stored)
    ).to_pylist()
    if encode is None:
        return found
    return [None if value is None else encode(value) for value in found]


@lru_cache(_KINDS_MAX)
def _encoder_of(kind: pa.DataType) -> tuple[pa.DataType | None, _Encode]:
    """The type whose Python values are wanted, if it is another one, and how each is encoded."""
    if pa.types.is_float32(kind):
        return None, lambda value: _encode_float(compute_shortest_f32(value))
    if pa.types.is_floating(kind):
        return None, _encode_float
    if pa.types.is_date32(kind):
        return pa.int32(), format_date
    if pa.types.is_timestamp(kind):
        return pa.int64(), _encode_timestamp
    return None, None


def _encode_float(value: float) -> Json:
    return value if math.isfinite(value) else _NON_FINITE_NAMES[str(value)]


def _encode_timestamp(milliseconds: int) -> Json:
    if _PLAIN_MS_MIN <= milliseconds <= _PLAIN_MS_MAX:
        return format_datetime(milliseconds)
    return _format_timestamps(pa.array([milliseconds], pa.timestamp("ms")))[0].as_py()


def _encode_structs(column: pa.StructArray) -> list[Json]:
    names = column.type.names
    members = [encode_json_values(member) for member in column.flatten()]
    objects: list[Json] = [dict(zip(names, row, strict=True)) for row in zip(*members, strict=True)]
    if column.null_count:
        for place in np.flatnonzero(to_numpy(column.is_null())):
            objects[place] = None
    return objects


def _encode_lists(column: pa.Array) -> list[Json]:
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    starts = column.offsets.to_pylist()
    elements = encode_json_values(column.values.slice(starts[0], starts[-1] - starts[0]))
    arrays: list[Json] = [
        elements[start - starts[0] : end - starts[0]] for start, end in pairwise(starts)
    ]
    if column.null_count:
        for place in np.flatnonzero(to_numpy(column.is_null())):
            arrays[place] = None
    return arrays


def _encode_floats(column: pa.Array) -> list[Json]:
    texts = column.cast(pa.utf8()) if pa.types.is_float32(column.type) else None
    # The text of a 32-bit float has its shortest digits; read as a double, it keeps them.
    numbers: list[Json] = (column if texts is None else texts.cast(pa.float64())).to_pylist()
    is_odd = pc.fill_null(pc.invert(pc.is_finite(column)), False)
    for place in np.flatnonzero(to_numpy(is_odd)):
        numbers[place] = _NON_FINITE_NAMES[str(numbers[place])]
    return numbers


def _encode_dates(column: pa.Array) -> list[Json]:
    # Years beyond four digits have no text in Arrow, so the distinct days are spelled here.
    days = column.cast(pa.int32()).dictionary_encode()
    texts = pa.array([format_date(day) for day in days.dictionary.to_pylist()], pa.utf8())
    found: list[Json] = texts.take(days.indices).to_pylist()
    return found


def _format_timestamps(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.timestamp("ms")).cast(pa.utf8())
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")
