from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.value_conversion import convert_values
from omnigraph.schema.property_types import INTEGER_RANGES, PropertyType, Scalar, ScalarType
from omnigraph.schema.type_conversions import is_widening, may_lose_values


def arrow_type(scalar: Scalar) -> pa.DataType:
    return arrow_type_of(PropertyType(ScalarType(scalar)))


@pytest.mark.parametrize("source", INTEGER_RANGES)
def test_a_wider_type_keeps_the_smallest_and_the_largest_integer(source: Scalar) -> None:
    low, high = INTEGER_RANGES[source]
    values = pa.array([low, high], arrow_type(source))
    for target in Scalar:
        old, new = ScalarType(source), ScalarType(target)
        if is_widening(old, new) and not may_lose_values(old, new):
            assert convert_values(values, arrow_type(target)).to_pylist() == [low, high]


def test_floats_get_no_integer_beyond_those_that_they_hold_without_gaps() -> None:
    values = pa.array([2**53, -(2**53), 2**53 + 1, -(2**63)], pa.int64())
    assert convert_values(values, pa.float64()).to_pylist() == [2.0**53, -(2.0**53), None, None]
    short = pa.array([2**24, 2**24 + 1, -(2**31)], pa.int32())
    assert convert_values(short, pa.float32()).to_pylist() == [2.0**24, None, None]
