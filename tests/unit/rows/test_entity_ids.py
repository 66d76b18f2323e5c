from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import UnusableKeyError
from omnigraph.rows.columns import TableShape, arrow_type_of, build_table_shape
from omnigraph.rows.entity_ids import compute_entity_ids, format_canonical_texts
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind, list_key_members
from omnigraph.schema.property_types import (
    INTEGER_RANGES,
    EnumType,
    PropertyType,
    Scalar,
    make_scalar_type,
)
from omnigraph.schema.property_values import (
    DATE_MAX,
    DATE_MIN,
    DATETIME_MAX,
    DATETIME_MIN,
    encode_composite_id,
    format_canonical,
)
from omnigraph.schema.schema_identity import accept_schema
from unit.schema.catalogs import steady

# Quotes, backslashes and every kind of control character are drawn often.
TEXTS = st.text(
    st.sampled_from('"\\\x00\x08\x09\x0a\x0c\x0d\x1f\x7f\u2028é😀a ') | st.characters(codec="utf-8")
)


def floats(width: int) -> st.SearchStrategy[float]:
    finite = st.floats(allow_nan=False, allow_infinity=False, width=32 if width == 32 else 64)
    powers = st.integers(-140, 120).map(lambda power: math.ldexp(1.0, power))
    # Halfway between two shortest texts of a 32-bit float.
    ties = st.integers(2**23, 2**24 - 1).map(lambda bits: bits / 4)
    whole = st.integers(-(2**24), 2**24).map(float)
    return st.one_of(finite, powers, ties, whole, st.sampled_from((0.0, -0.0, 1e15, -1e-6)))


VALUES: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.STRING: TEXTS,
    Scalar.BOOL: st.booleans(),
    Scalar.F32: floats(32).map(lambda value: pa.scalar(value, pa.float32()).as_py()),
    Scalar.F64: floats(64),
    Scalar.DATE: st.integers(DATE_MIN, DATE_MAX),
    Scalar.DATETIME: st.integers(DATETIME_MIN, DATETIME_MAX),
} | {scalar: st.integers(low, high) for scalar, (low, high) in INTEGER_RANGES.items()}


def column(values: list[Any], type_: PropertyType) -> pa.Array:
    kind = arrow_type_of(type_)
    if kind == pa.date64():
        # Python dates end at year 9999 and have no time of day.
        return pa.array(values, pa.int64()).view(kind)
    return (
        pa.array(values, pa.int32()).view(kind) if kind == pa.date32() else pa.array(values, kind)
    )


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text), domain="01ARZ3NDEKTSV4RRFFQ69G5FAV").schema


def shape_of(text: str, name: str = "A", kind: TypeKind = TypeKind.NODE) -> TableShape:
    return build_table_shape(accept(text), TypeKey(kind, name))


@pytest.mark.parametrize("scalar", VALUES, ids=str)
@steady
@given(data=st.data())
def test_a_column_has_the_texts_of_its_values(scalar: Scalar, data: st.DataObject) -> None:
    type_ = make_scalar_type(scalar)
    values = data.draw(st.lists(st.none() | VALUES[scalar]))
    expected = [None if value is None else format_canonical(value, type_) for value in values]
    assert format_canonical_texts(column(values, type_)).to_pylist() == expected


@steady
@given(values=st.lists(TEXTS))
def test_a_single_text_key_is_the_id_itself(values: list[str]) -> None:
    shape = shape_of("node A { k: String @key }")
    assert compute_entity_ids(pa.table({"c2": values}, pa.schema({"c2": pa.utf8()})), shape) == (
        pa.chunked_array([values], pa.utf8())
    )


def test_an_enum_key_is_the_id_itself() -> None:
    shape = shape_of("node A { k: enum(x, y) @key }")
    assert compute_entity_ids(pa.table({"c2": ["y", "x"]}), shape).to_pylist() == ["y", "x"]
    assert format_canonical("y", PropertyType(EnumType(("x", "y")))) == "y"


# The names of its properties are in the order of the scalars, hence their numbers as well.
SCALARS = list(VALUES)
WIDE_KEY = f"""node A {{
    {"  ".join(f"p{at:02}: {scalar}" for at, scalar in enumerate(SCALARS))}
    @key({", ".join(f"p{at:02}" for at in reversed(range(len(SCALARS))))})
}}"""


@steady
@given(rows=st.lists(st.tuples(*VALUES.values()), max_size=5))
def test_a_composite_key_is_the_json_of_its_texts_in_key_order(rows: list[tuple[Any, ...]]) -> None:
    shape = shape_of(WIDE_KEY)
    types = [make_scalar_type(scalar) for scalar in SCALARS]
    columns = {
        name: column([row[at] for row in rows], types[at])
        for at, name in enumerate(shape.columns.values())
    }
    expected = [encode_composite_id(list(map(format_canonical, row, types))) for row in rows]
    assert compute_entity_ids(pa.table(columns), shape).to_pylist() == expected


def test_the_order_of_a_composite_key_is_that_of_the_accepted_schema() -> None:
    accepted = accept("node A { tenant: String  slot: I64  @key(tenant, slot) }")
    shape = build_table_shape(accepted, TypeKey(TypeKind.NODE, "A"))
    assert list_key_members(accepted, "A") == ("slot", "tenant")
    rows = pa.table({shape.columns["tenant"]: ["acme"], shape.columns["slot"]: [7]})
    assert compute_entity_ids(rows, shape).to_pylist() == ['["7","acme"]']


def test_the_id_of_an_edge_starts_with_its_ends() -> None:
    text = "node A {}  edge E: A -> A { at: Date  @key(@src, @dst, at) }"
    shape = shape_of(text, "E", TypeKind.EDGE)
    at = pa.array([-1], pa.int32()).cast(pa.date32())
    rows = pa.table({shape.columns["at"]: at, "__dst": ['b"'], "__src": ["a"], "__id": [None]})
    assert compute_entity_ids(rows, shape).to_pylist() == [encode_composite_id(["a", 'b"', "-1"])]


def test_ids_do_not_depend_on_chunks_or_slices() -> None:
    shape = shape_of("node A { k: F64  s: String  @key(k, s) }")
    kinds = pa.schema({"c2": pa.float64(), "c3": pa.utf8()})
    whole = pa.table({"c2": [1e300, 1.5, -0.0, 1e300] * 3, "c3": ['"', "a", "\n", ""] * 3}, kinds)
    expected = compute_entity_ids(whole, shape).to_pylist()
    parts = pa.concat_tables([whole.slice(0, 5), whole.slice(5, 0), whole.slice(5)])
    assert compute_entity_ids(parts, shape).to_pylist() == expected
    assert compute_entity_ids(whole.slice(3, 4), shape).to_pylist() == expected[3:7]


def test_no_rows_have_no_ids() -> None:
    found = compute_entity_ids(
        pa.table({"c2": pa.array([], pa.utf8())}), shape_of("node A { k: String @key }")
    )
    assert (found.type, len(found)) == (pa.utf8(), 0)


@pytest.mark.parametrize("scalar", [Scalar.F32, Scalar.F64], ids=str)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None], ids=str)
@pytest.mark.parametrize("row", [0, 70_000])
def test_a_value_that_cannot_identify_is_refused_with_its_row(
    scalar: Scalar, value: float | None, row: int
) -> None:
    shape = shape_of(f"node A {{ k: {scalar} @key }}")
    values = pa.array([1.0] * row + [value, math.nan], arrow_type_of(make_scalar_type(scalar)))
    with pytest.raises(UnusableKeyError) as caught:
        compute_entity_ids(pa.table({"c2": values}), shape)
    assert (caught.value.type_key, caught.value.member, caught.value.row) == ("node:A", "k", row)
    shown = "null" if value is None else value
    assert caught.value.message == (
        f"node:A row {row}: 'k' is {shown}, which cannot identify an entity"
    )


def test_a_null_end_is_refused() -> None:
    text = "node A {}  edge E: A -> A { @key(@src, @dst) }"
    rows = pa.table({"__src": ["a", "b"], "__dst": ["a", None]})
    with pytest.raises(UnusableKeyError, match="edge:E row 1: '@dst' is null"):
        compute_entity_ids(rows, shape_of(text, "E", TypeKind.EDGE))
