from __future__ import annotations

import pytest

from omnigraph.query import typed_tree
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from unit.query.checking import column_of, problems_of, read_of

PARAMETERS = "$n: I32?, $v: Vector(2), $blob: Blob"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("$a.name", "a.name"),
        ("$a.@id", "a.@id"),
        ("$a", "a"),
        ("$n", "n"),
        ('"x"', "literal"),
        ("[1]", "literal"),
        ('date("2020-01-01")', "literal"),
        ("now()", "__nanograph_now"),
        ("count($a)", "a"),
        ("count($a.name)", "a.name"),
        ("max($a.@id)", "a.@id"),
        ("count(1)", "literal"),
        ("$a.score > 1 as high", "high"),
    ],
)
def test_a_column_is_named_by_its_alias_or_its_expression(item: str, name: str) -> None:
    assert column_of(item, parameters=PARAMETERS).name == name


@pytest.mark.parametrize(
    ("item", "type_"),
    [
        ("$a.score", "F64?"),
        ("$b.state", "enum(draft, out)?"),
        ("$a", "Author"),
        ("$a.@id", "String"),
        ("$n", "I32?"),
        ("$v", "Vector(2)"),
        ("now()", "DateTime"),
        ("$a.score > 1 as high", "Bool?"),
        ("$a.name is null as no", "Bool"),
        ("count($a)", "I64"),
        ("count($a.score)", "I64"),
        ("sum($a.small)", "F64?"),
        ("avg($a.small)", "F64?"),
        ("min($a.small)", "I32?"),
        ("max($a.name)", "String?"),
        ("min($a.bornOn)", "Date?"),
        ("max($a.seen)", "DateTime?"),
        ("max($a.active)", "Bool?"),
        ("max($a.score > 1) as m", "Bool?"),
    ],
)
def test_a_column_has_the_type_of_its_expression(item: str, type_: str) -> None:
    column = column_of(item, parameters=PARAMETERS)
    assert str(column.type) == type_
    assert column.type == column.value.type


def test_constants_have_their_natural_types() -> None:
    assert column_of("1").type == make_scalar_type(Scalar.I64)
    assert column_of("1.5").type == typed_tree.F64
    assert column_of("[1, 2]").type == PropertyType(ListType(Scalar.I64))


def test_a_query_aggregates_if_an_item_does() -> None:
    body = "match {{ $a: Author }} return {{ $a.name, $a, $a.@id, $n{} }}"
    assert not read_of(body.format(""), parameters=PARAMETERS).is_aggregated
    assert read_of(body.format(", count($a) as c"), parameters=PARAMETERS).is_aggregated


@pytest.mark.parametrize(
    ("items", "problems"),
    [
        ("$a.name, $a.name", ["T25 $a.name"]),
        ("$a, $b.title as a", ["T25 a"]),
        ("$a.name, count($a.name)", ["T25 count($a.name)"]),
        ("$n, $a.name as n", ["T25 n"]),
        ("$a.name as n, n as m", ["T36 n"]),
        ("n as m, $a.name as n", ["T102 n"]),
        ("$a.score > 1", ["T43 $a.score > 1"]),
        ("not $a.active", ["T43 not $a.active"]),
        ("count($a.score > 1)", ["T43 count($a.score > 1)"]),
        ('search($b.title, "x")', ['T43 search($b.title, "x")']),
        ('search($b.title, "x") = true as s', []),
        ('bm25($b.title, "x") as s', ['T33 bm25($b.title, "x")']),
        ('bm25($b.title, "x") > 1.0 as s', ['T33 bm25($b.title, "x")']),
        ('count($a) as n, bm25($b.title, "x") as s', ['T9 bm25($b.title, "x")']),
        ('max(bm25($b.title, "x")) as s', ['T32 bm25($b.title, "x")']),
        ("count($a) > 1 or $a.active as c", ["T9 count($a) > 1 or $a.active"]),
        ("count($a) as c, $a.nope > 1 as h", ["T6 nope"]),
        ("sum($a)", ["T8 $a"]),
        ("count(count($a)) as c", ["T8 count($a)"]),
        ("sum($a.active)", ["T8 $a.active"]),
        ("max($b.vec)", ["T8 $b.vec"]),
        ("$b.cover, $blob, max($b.cover) as m", ["T24 $b.cover", "T24 $blob", "T24 $b.cover"]),
        ("$z, $z, $z.p", ["T102 $z", "T25 $z"]),
    ],
)
def test_what_cannot_be_returned_is_refused(items: str, problems: list[str]) -> None:
    body = f"match {{ $a: Author  $b: Book }} return {{ {items} }}"
    assert problems_of(body, parameters=PARAMETERS) == problems


def test_a_projected_vector_parameter_keeps_its_dimension() -> None:
    assert column_of("$v", parameters=PARAMETERS).type == PropertyType(VectorType(2))
