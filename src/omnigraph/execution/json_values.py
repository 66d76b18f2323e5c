"""Columns of results as JSON values, for Python's own JSON writer.

Nulls are explicit, dates and times are texts, a 32-bit float is the double with its shortest
digits, and floats that JSON has no word for are texts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import Values, flat, numpy_of
from omnigraph.schema.values import format_date

Json: TypeAlias = Any  # Any: whatever `json.dumps` takes

_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def json_values(values: Values) -> list[Json]:
    """One JSON value per row."""
    column = flat(values)
    kind = column.type
    if pa.types.is_struct(kind):
        return _objects(column)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _arrays(column)
    if pa.types.is_floating(kind):
        return _numbers(column)
    if pa.types.is_date32(kind):
        return _dates(column)
    if pa.types.is_timestamp(kind):
        column = _timestamps(column)
    found: list[Json] = column.to_pylist()
    return found


def _objects(column: pa.StructArray) -> list[Json]:
    names = column.type.names
    members = [json_values(member) for member in column.flatten()]
    objects: list[Json] = [dict(zip(names, row, strict=True)) for row in zip(*members, strict=True)]
    for place in np.flatnonzero(numpy_of(column.is_null())):
        objects[place] = None
    return objects


def _arrays(column: pa.Array) -> list[Json]:
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    starts = column.offsets.to_pylist()
    elements = json_values(column.values.slice(starts[0], starts[-1] - starts[0]))
    arrays: list[Json] = [
        elements[start - starts[0] : end - starts[0]] for start, end in pairwise(starts)
    ]
    for place in np.flatnonzero(numpy_of(column.is_null())):
        arrays[place] = None
    return arrays


def _numbers(column: pa.Array) -> list[Json]:
    texts = column.cast(pa.utf8()) if pa.types.is_float32(column.type) else None
    # The text of a 32-bit float has its shortest digits; read as a double, it keeps them.
    numbers: list[Json] = (column if texts is None else texts.cast(pa.float64())).to_pylist()
    is_odd = pc.fill_null(pc.invert(pc.is_finite(column)), False)
    for place in np.flatnonzero(numpy_of(is_odd)):
        numbers[place] = _NON_FINITE[str(numbers[place])]
    return numbers


def _dates(column: pa.Array) -> list[Json]:
    # Years beyond four digits have no text in Arrow, so the distinct days are spelled here.
    days = column.cast(pa.int32()).dictionary_encode()
    texts = pa.array([format_date(day) for day in days.dictionary.to_pylist()], pa.utf8())
    found: list[Json] = texts.take(days.indices).to_pylist()
    return found


def _timestamps(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.timestamp("ms")).cast(pa.utf8())
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")
