from __future__ import annotations

import pytest

from omnigraph.query import typed_tree
from omnigraph.schema.property_types import PropertyType, VectorType
from omnigraph.schema.property_values import round_to_f32
from unit.query.checking import filter_problems, problems_of, read_of

PARAMETERS = "$v: Vector(2), $other: Vector(3), $q: String?, $n: I64, $f: F64"
VECTOR = PropertyType(VectorType(2))


def query_of(call: str) -> typed_tree.Expr:
    body = f"match {{ $b: Book }} return {{ 1 }} order {{ {call} }} limit 1"
    rank = read_of(body, parameters=PARAMETERS).rank
    assert isinstance(rank, typed_tree.NearestScore)
    return rank.query


def rank_problems(call: str) -> list[str]:
    body = (
        "match { $a: Author  $a $w:wrote $b  exists { $a wrote $hidden } }"
        f" return {{ 1 }} order {{ {call} }} limit 1"
    )
    return problems_of(body, parameters=PARAMETERS)


def test_a_list_literal_is_a_query_vector() -> None:
    assert query_of("nearest($b.vec, [1, 0.1])") == typed_tree.Constant(
        (1.0, round_to_f32(0.1)), VECTOR
    )
    assert query_of("nearest($b.vec, [$f, 1])") == typed_tree.ListOf(
        (typed_tree.ParameterValue("f", typed_tree.F64), typed_tree.Constant(1.0, typed_tree.F32)),
        VECTOR,
    )


def test_the_numbers_of_a_query_vector_have_32_bits() -> None:
    mixed = query_of("nearest($b.vec, [0.1, $f])")
    assert isinstance(mixed, typed_tree.ListOf)
    assert mixed.items[0] == typed_tree.Constant(round_to_f32(0.1), typed_tree.F32)
    for items in (f"[1{'0' * 39}.0, 0]", f"[1{'0' * 39}.0, $f]"):
        assert rank_problems(f"nearest($b.vec, {items})") == [f"T15 {items}"]


def test_texts_and_vectors_are_queries() -> None:
    assert query_of('nearest($b.vec, "x")') == typed_tree.Constant("x", typed_tree.STRING)
    assert query_of("nearest($b.vec, $v)") == typed_tree.ParameterValue("v", VECTOR)
    assert query_of("nearest($b.vec, $q)").type == typed_tree.STRING.as_nullable()


@pytest.mark.parametrize(
    ("call", "problems"),
    [
        ("nearest($b.title, $v)", ["T15 title"]),
        ("nearest($b.nope, $v)", ["T15 nope"]),
        ("nearest($z.vec, $v)", ["T15 $z"]),
        ("nearest($hidden.vec, $v)", ["T15 $hidden"]),
        ("nearest($w.role, $v)", ["T23 $w"]),
        ("nearest($b.vec, [1])", ["T15 [1]"]),
        ("nearest($b.vec, [])", ["T15 []"]),
        ('nearest($b.vec, ["x", "y"])', ['T15 ["x", "y"]']),
        ("nearest($b.vec, $other)", ["T15 $other"]),
        ("nearest($b.vec, $n)", ["T15 $n"]),
        ("nearest($b.vec, $b.vec)", []),
        ("nearest($b.vec, $b.title)", ["T15 $b.title"]),
        ("nearest($b.vec, now())", ["T15 now()"]),
        ("bm25($b.pages, $q)", ["T20 pages"]),
        ("bm25($b.title, $n)", ["T20 $n"]),
        ("bm25($b.title, $a.name)", ["T20 $a.name"]),
        ("bm25($b.nope, $q)", ["T6 nope"]),
        ("bm25(title, $q)", ["T20 title"]),
        ("rrf(bm25($b.title, $q), bm25($b.isbn, $q), 0)", ["T21 0"]),
        ("rrf(bm25($b.title, $q), bm25($b.isbn, $q), 1.5)", ["T21 1.5"]),
        ("rrf(bm25($b.title, $q), bm25($b.isbn, $q), 4294967296)", ["T21 4294967296"]),
        ("rrf(bm25($b.title, $q), bm25($b.isbn, $q), $n)", []),
        ("rrf(bm25($b.title, $q), bm25($a.name, $q))", ["P005 bm25($a.name, $q)"]),
        ("rrf(bm25($b.pages, $q), bm25($b.nope, $q))", ["T20 pages", "T6 nope"]),
    ],
)
def test_wrong_arguments_of_a_rank_call_are_refused(call: str, problems: list[str]) -> None:
    assert rank_problems(call) == problems


@pytest.mark.parametrize(
    ("predicate", "problems"),
    [
        ('search($b.title, "x")', []),
        ("search($b.state, $q)", []),
        ("fuzzy($b.title, $q, $n)", []),
        ("search($b.pages, $q)", ["T19 pages"]),
        ("fuzzy($b.title, $n)", ["T19 $n"]),
        ("fuzzy($b.title, $q, 1.5)", ["T19 1.5"]),
        ("fuzzy($b.title, $q, $f)", ["T19 $f"]),
        ("search($b, $q)", ["T19 $b"]),
        ("match_text($b.tags, $q)", ["T20 tags"]),
        ("match_text($b.title, 3)", ["T20 3"]),
        ("search($b.title, $nope)", ["T19 $nope"]),
        ("not search($b.title, $q)", []),
        ("search($b.title, $q) != true", []),
        ("$a.score = 1 and (search($b.title, $q) or true)", []),
        ("exists { $a wrote $c  search($c.title, $q) and $c.pages > 1 }", []),
    ],
)
def test_search_predicates_are_whole_conditions_over_text(
    predicate: str, problems: list[str]
) -> None:
    assert filter_problems(predicate, parameters=PARAMETERS) == problems
