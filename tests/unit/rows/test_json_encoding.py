from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialects.values import to_json
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.json_encoding import encode_json_texts
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from unit.execution.stored_values import SCALAR_VALUES, column

SCALARS = [scalar for scalar in Scalar if scalar is not Scalar.BLOB]


def spelled(value: Any, type_: PropertyType) -> str | None:
    """The text that the slow way gives a value."""
    if value is None:
        return None
    shown = to_json(value, type_, Catalog())
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def check(values: list[Any], type_: PropertyType) -> None:
    texts = encode_json_texts(column(values, type_))
    texts.validate(full=True)
    assert texts.to_pylist() == [spelled(value, type_) for value in values]


@pytest.mark.parametrize("scalar", Scalar)
@given(data=st.data())
def test_a_value_is_spelled_like_the_dump_of_its_json(scalar: Scalar, data: st.DataObject) -> None:
    check(data.draw(st.lists(st.none() | SCALAR_VALUES[scalar])), make_scalar_type(scalar))


@pytest.mark.slow
@pytest.mark.parametrize("scalar", SCALARS)
@given(data=st.data())
def test_a_list_is_spelled_with_its_nulls(scalar: Scalar, data: st.DataObject) -> None:
    items = st.lists(st.none() | SCALAR_VALUES[scalar], max_size=4).map(tuple)
    check(data.draw(st.lists(st.none() | items)), PropertyType(ListType(scalar)))


@given(st.lists(st.none() | st.tuples(*[SCALAR_VALUES[Scalar.F32]] * 3)))
@example([None, (0.5, -0.0, 1e-7)])
def test_a_vector_is_spelled_by_its_32_bit_numbers(values: list[Any]) -> None:
    check(values, PropertyType(VectorType(3)))


def test_every_character_that_json_escapes_is_escaped() -> None:
    characters = [chr(code) for code in range(0x100)]
    check(
        ["".join(characters), *characters, "\\n", '\\"', "\x01\n"], make_scalar_type(Scalar.STRING)
    )


def test_numbers_on_both_sides_of_an_exponent_are_spelled_alike() -> None:
    bounds = [1e-6, 1e-5, 1e-4, 1e14, 1e15, 1e16, 1e17, 1e22, 123456789012345680.0]
    nearby = [math.nextafter(bound, to) for bound in bounds for to in (0, math.inf)]
    numbers = [*bounds, *nearby, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf]
    check([*numbers, *(-number for number in numbers)], make_scalar_type(Scalar.F64))


def test_a_part_of_an_array_is_spelled_like_the_part_alone() -> None:
    columns: dict[PropertyType, list[Any]] = {
        make_scalar_type(Scalar.DATE): [0, None, 10**6, 10**7, -(10**7)],
        make_scalar_type(Scalar.DATETIME): [0, None, 1, 1_700_000_000_123],
        PropertyType(ListType(Scalar.STRING)): [("a",), None, (), ("b", '"', None)],
        PropertyType(VectorType(2)): [(1.0, 2.0), None, (3.0, 1e-9), (0.1, 0.2)],
        make_scalar_type(Scalar.BLOB): [b"a", None, b"", b"\xff"],
    }
    for type_, values in columns.items():
        texts = encode_json_texts(column(values, type_).slice(1, 3))
        assert texts.to_pylist() == [spelled(value, type_) for value in values[1:4]]


def test_a_column_without_rows_has_no_texts() -> None:
    for scalar in SCALARS:
        assert (
            encode_json_texts(
                pa.array([], arrow_type_of(PropertyType(ListType(scalar))))
            ).to_pylist()
            == []
        )
        assert (
            encode_json_texts(pa.array([], arrow_type_of(make_scalar_type(scalar)))).to_pylist()
            == []
        )
