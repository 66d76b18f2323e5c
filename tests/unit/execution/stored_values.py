"""Values of every property type as a graph keeps them, drawn at random, and columns of them."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.rows.columns import arrow_type_of
from omnigraph.schema.property_types import INTEGER_RANGES, ListType, PropertyType, Scalar
from omnigraph.schema.property_values import DATE_MAX, DATE_MIN, DATETIME_MAX, DATETIME_MIN

# Quotes, backslashes and every kind of control character are drawn often.
TEXTS = st.text(
    st.sampled_from('"\\/\x00\x08\x09\x0a\x0c\x0d\x1f\x7f\u2028é😀a ')
    | st.characters(codec="utf-8"),
    max_size=20,
)
_MANTISSAS = st.integers(-(2**24), 2**24)


def _floats(width: int) -> st.SearchStrategy[float]:
    any_float = st.floats(width=32 if width == 32 else 64)
    powers = st.integers(-140, 120).map(lambda power: math.ldexp(1.0, power))
    decimals = st.builds(lambda digits, power: digits * 10.0**power, _MANTISSAS, st.integers(-9, 9))
    return any_float | powers | decimals | _MANTISSAS.map(float) | st.sampled_from((0.0, -0.0))


SCALAR_VALUES: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.STRING: TEXTS,
    Scalar.BLOB: st.binary(max_size=20),
    Scalar.BOOL: st.booleans(),
    Scalar.F32: _floats(32).map(lambda value: pa.scalar(value, pa.float32()).as_py()),
    Scalar.F64: _floats(64),
    Scalar.DATE: st.integers(DATE_MIN, DATE_MAX) | st.integers(-800_000, 3_000_000),
    Scalar.DATETIME: st.integers(DATETIME_MIN, DATETIME_MAX),
    Scalar.DURATION: st.integers(-(2**63), 2**63 - 1) | st.integers(-90_061_001, 90_061_001),
} | {scalar: st.integers(low, high) for scalar, (low, high) in INTEGER_RANGES.items()}

# What a date looks like to Arrow when Python gives it as a number.
_COUNTS = {pa.date32(): pa.int32(), pa.date64(): pa.int64(), pa.duration("ms"): pa.int64()}


def column(values: list[Any], type_: PropertyType) -> pa.Array:
    """Values as the column of a table; dates are numbers, since Python's end at year 9999."""
    kind = arrow_type_of(type_)
    if isinstance(type_.value, ListType):
        counts = _COUNTS.get(kind.value_type, kind.value_type)
        lists = pa.array(values, pa.list_(counts))
        items = lists.values.view(kind.value_type)
        return pa.ListArray.from_arrays(
            lists.offsets, items, type=kind, mask=lists.is_null() if lists.null_count else None
        )
    return pa.array(values, _COUNTS.get(kind, kind)).view(kind)
