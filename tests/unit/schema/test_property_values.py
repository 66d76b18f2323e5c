"""Values: texts of dates, and numbers in narrower types."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.schema.property_types import FLOATS, INTEGER_RANGES, Scalar
from omnigraph.schema.property_values import (
    DATE_MAX,
    DATE_MIN,
    DATETIME_MAX,
    DATETIME_MIN,
    InvalidNumberError,
    ValueTextError,
    coerce_number,
    compute_shortest_f32,
    format_date,
    format_datetime,
    parse_date,
    parse_datetime,
    round_to_f32,
)


@given(st.integers(DATE_MIN, DATE_MAX))
def test_every_date_reads_back_from_its_text(days: int) -> None:
    assert parse_date(format_date(days)) == days


@given(st.integers(DATETIME_MIN, DATETIME_MAX))
def test_every_instant_reads_back_from_its_text(milliseconds: int) -> None:
    assert parse_datetime(format_datetime(milliseconds), is_strict=True) == milliseconds


@pytest.mark.parametrize("days", [DATE_MIN, DATE_MAX])
def test_the_first_and_the_last_date_read_back(days: int) -> None:
    assert parse_date(format_date(days)) == days


@pytest.mark.parametrize("text", ["+5881580-07-12", "-5877641-06-22", "+9999999-01-01"])
def test_a_date_beyond_32_bits_is_refused(text: str) -> None:
    with pytest.raises(ValueTextError, match="out of range"):
        parse_date(text)


@pytest.mark.parametrize(("scalar", "bounds"), INTEGER_RANGES.items())
def test_an_integer_type_holds_its_bounds_and_no_more(
    scalar: Scalar, bounds: tuple[int, int]
) -> None:
    low, high = bounds
    assert (coerce_number(low, scalar), coerce_number(high, scalar)) == bounds
    for beyond in (low - 1, high + 1, math.inf, -math.inf, math.nan, 10**400):
        with pytest.raises(InvalidNumberError, match=f"exceeds {scalar} range"):
            coerce_number(beyond, scalar)


def test_an_integer_type_holds_whole_floats_only() -> None:
    assert repr(coerce_number(4.0, Scalar.I32)) == "4"
    with pytest.raises(InvalidNumberError, match="is not a whole number, as I32 needs"):
        coerce_number(4.5, Scalar.I32)


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_a_32_bit_float_is_rounded_or_refused(value: float) -> None:
    assert coerce_number(value, Scalar.F64) == value
    rounded = round_to_f32(value)
    if math.isfinite(rounded):
        assert coerce_number(value, Scalar.F32) == rounded
    else:
        with pytest.raises(InvalidNumberError, match="exceeds F32 range"):
            coerce_number(value, Scalar.F32)


@pytest.mark.parametrize("scalar", sorted(FLOATS))
def test_a_float_type_holds_finite_numbers_only(scalar: Scalar) -> None:
    for value in (10**400, -(10**400)):
        with pytest.raises(InvalidNumberError, match=f"^exceeds {scalar} range$"):
            coerce_number(value, scalar)
    for endless in (math.inf, -math.inf, math.nan):
        with pytest.raises(
            InvalidNumberError, match=f"^is not a finite number, as {scalar} needs$"
        ):
            coerce_number(endless, scalar)


def test_the_shortest_text_of_a_32_bit_float_is_the_one_numpy_finds() -> None:
    exponents = range(-149, 128)
    powers = [math.ldexp(sign, exponent) for exponent in exponents for sign in (1.0, -1.0)]
    others = [round_to_f32(value * 1.1) for value in powers[200:400]]
    for value in powers + others:
        assert compute_shortest_f32(value) == float(str(np.float32(value))), value
