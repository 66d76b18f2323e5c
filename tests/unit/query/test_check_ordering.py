from __future__ import annotations

import pytest

from omnigraph.lang.lexer import Mode
from omnigraph.query import typed_reads, typed_tree
from omnigraph.schema.property_types import PropertyType, Scalar, VectorType, make_scalar_type
from unit.query.checking import problems_of, read_of

PARAMETERS = "$v: Vector(2), $q: String, $n: I64"
NEAREST = "nearest($b.vec, $v)"
BM25 = "bm25($b.title, $q)"
RRF = f"rrf({NEAREST}, {BM25})"
NEAREST_SCORE = typed_tree.NearestScore(
    "b", "vec", typed_tree.ParameterValue("v", PropertyType(VectorType(2)))
)
BM25_SCORE = typed_tree.Bm25Score("b", "title", typed_tree.ParameterValue("q", typed_tree.STRING))


def ordered(items: str, keys: str, *, limit: str = "limit 3") -> typed_reads.Read:
    body = f"match {{ $a: Author  $a $w:wrote $b }} return {{ {items} }} order {{ {keys} }} {limit}"
    return read_of(body, parameters=PARAMETERS)


def order_problems(
    items: str, keys: str, *, limit: str = "", mode: Mode = Mode.LENIENT
) -> list[str]:
    body = f"match {{ $a: Author  $a $w:wrote $b }} return {{ {items} }} order {{ {keys} }} {limit}"
    return problems_of(body, parameters=PARAMETERS, mode=mode)


def keys_of(items: str, keys: str) -> list[tuple[typed_tree.Expr, bool]]:
    return [(key.value, key.is_descending) for key in ordered(items, keys).order]


def test_properties_and_fields_need_not_be_returned() -> None:
    assert keys_of("1", "$a.name desc, $w.@id, $b.pages asc") == [
        (typed_tree.PropertyValue("a", "name", typed_tree.STRING), True),
        (typed_tree.SystemValue("w", typed_tree.SystemName.ID), False),
        (
            typed_tree.PropertyValue("b", "pages", make_scalar_type(Scalar.I64, is_nullable=True)),
            False,
        ),
    ]


def test_an_alias_stands_for_its_item() -> None:
    assert keys_of("$a.name as n", "n desc") == [
        (typed_tree.PropertyValue("a", "name", typed_tree.STRING), True)
    ]


def test_a_node_is_ordered_by_its_id() -> None:
    by_id = [(typed_tree.SystemValue("a", typed_tree.SystemName.ID), True)]
    assert keys_of("$a", "$a desc") == by_id
    assert keys_of("$a as who", "who desc") == by_id
    assert keys_of("$a", "a desc") == by_id


def test_constant_keys_order_nothing() -> None:
    name = [(typed_tree.PropertyValue("a", "name", typed_tree.STRING), False)]
    items = "$n, 1 as one, now() as t, $v"
    assert keys_of(items, "$n, n, one, 1, $a.name, t, now(), $w.@type, $v") == name
    assert keys_of("now()", "now, __nanograph_now, $a.name") == name
    assert ordered("$n", f"{BM25}, $n").order == ()


def test_a_query_with_constant_keys_only_is_still_ordered() -> None:
    assert keys_of("$n, 1 as one", "n desc, one") == [
        (typed_tree.ParameterValue("n", make_scalar_type(Scalar.I64)), True)
    ]
    assert keys_of("$n, count($b) as c", "n") == [
        (typed_tree.ColumnValue("n", make_scalar_type(Scalar.I64)), False)
    ]


def test_an_edge_type_of_a_selection_is_a_key() -> None:
    body = "match { $a: Author  $a $e:(follows | mentors) $x } return { 1 } order { $e.@type }"
    assert [key.value for key in read_of(body).order] == [
        typed_tree.SystemValue("e", typed_tree.SystemName.TYPE)
    ]


def test_an_equal_returned_expression_is_a_key() -> None:
    ((value, _),) = keys_of('$b.tags contains "x" as t', '"x" in $b.tags')
    assert isinstance(value, typed_tree.Member)


def test_the_keys_of_an_aggregated_query_are_columns() -> None:
    items = "$a, $a.name as n, count($b) as c"
    assert keys_of(items, "count($b) desc, n, $a.name, c, $a") == [
        (typed_tree.ColumnValue("c", make_scalar_type(Scalar.I64)), True),
        (typed_tree.ColumnValue("n", typed_tree.STRING), False),
        (typed_tree.ColumnValue("n", typed_tree.STRING), False),
        (typed_tree.ColumnValue("c", make_scalar_type(Scalar.I64)), False),
        (typed_tree.ColumnValue("a", typed_tree.NodeObject("Author")), False),
    ]


def test_the_first_equal_item_is_the_key() -> None:
    ((value, _),) = keys_of("count($b) as c, count($b) as d", "count($b)")
    assert value == typed_tree.ColumnValue("c", make_scalar_type(Scalar.I64))


def test_a_leading_rank_call_is_the_rank() -> None:
    read = ordered(f"{NEAREST}, $b.title", f"{NEAREST}, $b.title desc")
    assert read.rank == NEAREST_SCORE
    assert [key.is_descending for key in read.order] == [True]
    assert read.columns[0] == typed_reads.Column("b._distance", NEAREST_SCORE, typed_tree.F32)
    assert ordered("1", BM25, limit="").rank == BM25_SCORE


def test_the_rank_may_be_named_by_its_alias() -> None:
    assert ordered(f"{NEAREST} as d", "d").rank == NEAREST_SCORE
    assert ordered(f"{BM25} as s", "s desc").rank == BM25_SCORE
    fused = ordered(f"{RRF} as s", "s desc, $a.name")
    assert fused.rank == typed_tree.RrfScore((NEAREST_SCORE, BM25_SCORE))
    assert len(fused.order) == 1


def test_scores_have_default_names_and_types() -> None:
    assert ordered(BM25, BM25).columns[0].name == "b._score"
    column = ordered(RRF, RRF).columns[0]
    assert (column.name, column.type) == ("b._rrf", typed_tree.F64)


def test_the_constant_of_a_fusion_is_kept() -> None:
    rank = ordered("1", f"rrf({BM25}, {BM25}, 10)").rank
    assert isinstance(rank, typed_tree.RrfScore)
    assert rank.k == typed_tree.Constant(10, make_scalar_type(Scalar.I64))


def test_an_aggregated_query_may_be_ranked() -> None:
    read = ordered("$a.name, count($b) as c", f"{BM25}, c desc")
    assert read.rank == BM25_SCORE
    assert [key.value for key in read.order] == [
        typed_tree.ColumnValue("c", make_scalar_type(Scalar.I64))
    ]


@pytest.mark.parametrize(
    ("items", "keys", "problems"),
    [
        ("1", NEAREST, [f"T17 {NEAREST}"]),
        ("1", RRF, [f"T21 {RRF}"]),
        ("1", BM25, []),
        (f"{NEAREST} as d", "d", ["T17 d"]),
        ("$a.name as n", "m", ["T42 m"]),
        ("1", "$a", ["T42 $a"]),
        ("1", "$n", ["T42 $n"]),
        ("1", "2", ["T42 2"]),
        ("1", "$w", ["T23 $w"]),
        ("1", "$z.p, $z", ["T6 $z"]),
        ("1", f"$a.name, {BM25}", [f"T42 {BM25}"]),
        (f"{BM25} as s", "$a.name, s", [f"T33 {BM25}", "T42 s"]),
        ("1", 'search($b.title, "x")', []),
        ("1", "$b.cover, $b.tags, $b.vec", ["T24 $b.cover", "T7 $b.tags", "T7 $b.vec"]),
        ("$a.name", "count($b)", ["T42 count($b)"]),
        ("$a.name", "count($a.nope)", ["T6 nope"]),
        ("$a.name, count($b) as c", "$a.score", ["T42 $a.score"]),
        ("$a.nope as n", "n", ["T6 nope"]),
        ("$a.score > 1 as h", "$a.score > 2", ["T42 $a.score > 2"]),
    ],
)
def test_what_gives_no_order_is_refused(items: str, keys: str, problems: list[str]) -> None:
    assert order_problems(items, keys) == problems


def test_an_alias_after_nearest_is_refused_or_stands_for_its_item() -> None:
    title, both = "$b.title as t", f"{NEAREST} as d, $b.title as t"
    for items, keys, key in (
        (title, f"{NEAREST}, t", "t"),
        (both, "d, t", "t"),
        (both, f"{NEAREST}, d", "d"),
    ):
        limit = "limit 1"
        assert order_problems(items, keys, limit=limit, mode=Mode.STRICT) == [f"T18 {key}"]
        assert order_problems(items, keys, limit=limit) == [f"L318 {key}"]
    assert keys_of(both, "d, t desc") == [
        (typed_tree.PropertyValue("b", "title", typed_tree.STRING), True)
    ]
    assert order_problems(f"{NEAREST} as d", "d desc", limit="limit 1") == ["T18 d desc"]
    assert order_problems(title, f"{NEAREST}, $b.title", limit="limit 1") == []


@pytest.mark.parametrize("call", [NEAREST, BM25, RRF])
def test_a_returned_score_orders_nothing_after_itself(call: str) -> None:
    for keys in (f"{call}, s", "s, s", f"s, {call}", f"{call}, {call}, s"):
        assert keys_of(f"{call} as s", f"{keys}, $a.name") == [
            (typed_tree.PropertyValue("a", "name", typed_tree.STRING), False)
        ]


def test_a_score_that_does_not_lead_cannot_be_a_key() -> None:
    assert order_problems(f"{BM25} as s", f"{BM25}, {NEAREST}") == [f"T42 {NEAREST}"]
    assert order_problems("$a.name", f"{BM25}, {BM25}") == [f"T42 {BM25}"]
    wrong = "nearest($b.title, $v)"
    assert order_problems(f"{BM25} as s", f"{wrong}, s", limit="limit 1") == ["T15 title"]


def test_a_key_may_name_the_column_of_an_aggregate() -> None:
    for items, key in (
        ("count($a.@id)", "$a.@id"),
        ("max($b.pages)", "$b.pages"),
        ("min($w.@type)", "$w.@type"),
    ):
        value = keys_of(f"$a.name, {items}", f"{key} desc")[0][0]
        assert isinstance(value, typed_tree.ColumnValue)
        assert f"${value.name}" == key
        assert order_problems(f"{items} as n", key) == [f"T42 {key}"]


def test_an_ascending_text_rank_is_ignored_or_refused() -> None:
    assert order_problems("1", f"{BM25} asc") == [f"L313 {BM25} asc"]
    assert order_problems(f"{BM25} as s", "s asc", mode=Mode.STRICT) == ["T54 s asc"]
    assert order_problems(f"{BM25} as s", "s", mode=Mode.STRICT) == []


def test_a_wrong_leading_call_says_nothing_about_returned_scores() -> None:
    wrong = "nearest($b.title, $v)"
    assert order_problems(f"{BM25} as s", wrong, limit="limit 1") == ["T15 title"]
