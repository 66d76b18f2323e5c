"""Search in the model: text predicates, ranks, scores and their order."""

from __future__ import annotations

import math
from typing import Any

import pytest

from model import ModelGraph
from omnigraph.embedding.mock_embedder import compute_mock_embedding
from omnigraph.errors import ExecutionError
from omnigraph.schema.property_values import round_to_f32
from unit.model_world import ask, change, column, graph_of

SCHEMA = """
node Doc { k: String @key  t: String?  n: I64?  v: Vector(2)? }
node Tag { k: String @key }
edge Has: Doc -> Tag
"""
SEED = """
{"type":"Doc","data":{"k":"d1","t":"Running cats","n":1,"v":[0,0]}}
{"type":"Doc","data":{"k":"d2","t":"The cat RUNS and runs","n":2,"v":[3,0]}}
{"type":"Doc","data":{"k":"d3","t":"a Café by the sea","n":3,"v":[0,1]}}
{"type":"Doc","data":{"k":"d4","t":null,"n":4,"v":null}}
{"type":"Doc","data":{"k":"d5","t":"sea cats","n":5,"v":[0,0]}}
{"type":"Tag","data":{"k":"x"}}
{"type":"Tag","data":{"k":"y"}}
{"edge":"Has","id":"h1","from":"d2","to":"x"}
{"edge":"Has","id":"h2","from":"d2","to":"y"}
{"edge":"Has","id":"h3","from":"d3","to":"x"}
"""


@pytest.fixture
def graph() -> ModelGraph:
    return graph_of(SCHEMA, SEED)


def found(graph: ModelGraph, clauses: str, params: str = "", **supplied: Any) -> list[str]:
    text = (
        f"query q({params}) {{ match {{ $d: Doc {clauses} }} return {{ $d.k }} order {{ $d.k }} }}"
    )
    result: list[str] = column(graph, text, supplied)
    return result


def ranked(graph: ModelGraph, order: str, clauses: str = "", **options: Any) -> list[str]:
    returned = f"return {{ $d.k }} order {{ {order} }} limit 9"
    text = f"query q() {{ match {{ $d: Doc {clauses} }} {returned} }}"
    result: list[str] = column(graph, text, **options)
    return result


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ('search($d.t, "run")', ["d1", "d2"]),
        ('search($d.t, "sea run")', ["d1", "d2", "d3", "d5"]),
        ('match_text($d.t, "sea run")', ["d1", "d2", "d3", "d5"]),
        ('search($d.t, "cafe")', ["d3"]),
        ('search($d.t, "the")', []),
        ('search($d.t, "zebra")', []),
        ('search($d.t, "cat") search($d.t, "sea")', ["d5"]),
        ('search($d.t, "cat") and $d.n > 1', ["d2", "d5"]),
        ('search($d.t, "cat") = true', ["d1", "d2", "d5"]),
        ('fuzzy($d.t, "bats", 1)', ["d1", "d2", "d5"]),
        ('fuzzy($d.t, "bats", 0)', []),
        ('fuzzy($d.t, "pea", 1)', ["d3", "d5"]),
        ('not { search($d.t, "cat") }', ["d3", "d4"]),
    ],
)
def test_a_text_predicate_matches_analysed_tokens(
    graph: ModelGraph, clauses: str, expected: list[str]
) -> None:
    assert found(graph, clauses) == expected


def test_a_text_predicate_filters_the_target_of_a_traversal(graph: ModelGraph) -> None:
    text = """query q() { match { $t: Tag $d has $t search($d.t, "sea") }
        return { $d.k, $t.k as t } }"""
    assert ask(graph, text) == [{"d.k": "d3", "t": "x"}]


@pytest.mark.parametrize("edits", [None, -1, 2**32])
def test_a_bad_option_is_refused_even_without_rows(graph: ModelGraph, edits: int | None) -> None:
    with pytest.raises(ExecutionError, match="search option"):
        found(graph, '$d.n > 99 fuzzy($d.t, "cat", $n)', "$n: I64?", n=edits)
    text = """query q($k: I64?) { match { $d: Doc { n: 99 } } return { $d.k }
        order { rrf(bm25($d.t, "cat"), bm25($d.t, "sea"), $k) } limit 2 }"""
    with pytest.raises(ExecutionError, match="search option"):
        ask(graph, text, {"k": edits})


def test_nearest_ranks_by_squared_distance_and_then_by_id(graph: ModelGraph) -> None:
    assert ranked(graph, "nearest($d.v, [0.0, 0.0])") == ["d1", "d5", "d3", "d2"]
    text = """query q($q: Vector(2)) { match { $d: Doc } return { $d.k, nearest($d.v, $q) }
        order { nearest($d.v, $q) } limit 3 }"""
    assert ask(graph, text, {"q": [0.5, 0]}) == [
        {"d.k": "d1", "d._distance": 0.25},
        {"d.k": "d5", "d._distance": 0.25},
        {"d.k": "d3", "d._distance": 1.25},
    ]


def test_keys_after_the_rank_come_before_ids(graph: ModelGraph) -> None:
    assert ranked(graph, "nearest($d.v, [0.0, 0.0]), $d.n desc") == ["d5", "d1", "d3", "d2"]


def test_filters_and_traversals_come_before_the_limit(graph: ModelGraph) -> None:
    text = """query q() { match { $d: Doc $d has $t } return { $d.k, $t.k as t }
        order { nearest($d.v, [0.0, 0.0]) } limit 2 }"""
    assert [list(row.values()) for row in ask(graph, text)] == [["d3", "x"], ["d2", "x"]]
    assert ranked(graph, "nearest($d.v, [0.0, 0.0])", "$d.n > 2") == ["d5", "d3"]


def test_a_text_is_embedded_at_query_time(graph: ModelGraph) -> None:
    order = 'nearest($d.v, "hello")'
    explicit = ", ".join(str(abs(value)) for value in compute_mock_embedding("hello", 2))

    def embed(text: str, dimension: int) -> list[float]:
        return [abs(value) * 7 for value in compute_mock_embedding(text, dimension)]

    assert ranked(graph, order, embed=embed) == ranked(graph, f"nearest($d.v, [{explicit}])")
    with pytest.raises(ExecutionError, match="no embedder"):
        ranked(graph, order)
    with pytest.raises(ExecutionError, match="no direction"):
        ranked(graph, order, embed=lambda _, dimension: [0.0] * dimension)


def bm25(frequency: int, length: int, documents_with: int) -> float:
    """The formula for a corpus of four documents with ten tokens."""
    rarity = math.log(1 + (4 - documents_with + 0.5) / (documents_with + 0.5))
    norm = 1.2 * (0.25 + 0.75 * length / 2.5)
    return round_to_f32(rarity * frequency * 2.2 / (frequency + norm))


def test_bm25_scores_with_the_statistics_of_the_whole_field(graph: ModelGraph) -> None:
    text = """query q() {{ match {{ $d: Doc {} }} return {{ $d.k, bm25($d.t, "run") as s }}
        order {{ bm25($d.t, "run") desc }} }}"""
    rows = ask(graph, text.format(""))
    # d1: run cat; d2: cat run run; d3: cafe sea; d5: sea cat.
    change(graph, 'update Doc set { t: "sea cats ran" } where k = "d5"')
    expected = {"d2": bm25(2, 3, 2), "d1": bm25(1, 2, 2)}
    shown = ask(graph, text.format(""))
    assert {row["d.k"]: pytest.approx(row["s"], rel=1e-6) for row in shown} == expected
    assert [row["d.k"] for row in rows] == ["d2", "d1"]
    assert ask(graph, text.format("$d.n = 1")) == [row for row in shown if row["d.k"] == "d1"]


def test_equal_bm25_scores_are_ordered_by_further_keys_then_by_id() -> None:
    lines = [
        f'{{"type":"Doc","data":{{"k":"{k}","t":"cat","n":{n}}}}}'
        for k, n in [("c", 1), ("a", 1), ("b", 2)]
    ]
    graph = graph_of(SCHEMA, "\n".join(lines))
    assert ranked(graph, 'bm25($d.t, "cats")') == ["a", "b", "c"]
    assert ranked(graph, 'bm25($d.t, "cats"), $d.n desc') == ["b", "a", "c"]


def test_rrf_adds_the_reciprocal_ranks_of_its_arms(graph: ModelGraph) -> None:
    order = 'rrf(nearest($d.v, [0.0, 0.0]), bm25($d.t, "sea"))'
    returned = f"return {{ $d.k, {order} }} order {{ {order} }} limit 9"
    text = f"query q() {{ match {{ $d: Doc }} {returned} }}"
    # nearest: d1 d5 d3 d2; bm25: d3 and d5 are equal, so by id.
    assert ask(graph, text) == [
        {"d.k": "d3", "d._rrf": 1 / 63 + 1 / 61},
        {"d.k": "d5", "d._rrf": 1 / 62 + 1 / 62},
        {"d.k": "d1", "d._rrf": 1 / 61},
        {"d.k": "d2", "d._rrf": 1 / 64},
    ]


def test_a_nearest_arm_ranks_at_most_the_limit(graph: ModelGraph) -> None:
    text = """query q() { match { $d: Doc } return { $d.k }
        order { rrf(nearest($d.v, [3.0, 0.0]), bm25($d.t, "sea"), 1) } limit 2 }"""
    # nearest: d2 d1 | d5 d3; bm25: d3 d5.
    assert column(graph, text) == ["d2", "d3"]
    wide = text.replace("limit 2", "limit 4")
    # d2 1/2; d1 1/3; d5 1/4 + 1/3; d3 1/5 + 1/2.
    assert column(graph, wide) == ["d3", "d5", "d2", "d1"]


def test_a_rank_selects_what_an_aggregate_counts(graph: ModelGraph) -> None:
    text = "query q() {{ match {{ $d: Doc }} return {{ count($d) as n }} order {{ {} }} limit 2 }}"
    assert column(graph, text.format('bm25($d.t, "cat")')) == [3]
    assert column(graph, text.format("nearest($d.v, [0.0, 0.0])")) == [2]
    maximum = """query q() { match { $d: Doc } return { max($d.n) as n }
        order { nearest($d.v, [0.0, 0.0]) } limit 3 }"""
    assert column(graph, maximum) == [5]


def test_a_null_query_ranks_nothing(graph: ModelGraph) -> None:
    text = """query q($q: Vector(2)?, $t: String?) { match { $d: Doc } return { $d.k }
        order { %s } limit 9 }"""
    assert ask(graph, text % "nearest($d.v, $q)") == []
    assert ask(graph, text % "bm25($d.t, $t)") == []
