"""Whole queries that search, by the engine from every source and by the model."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from model import ModelGraph
from omnigraph.rows.view import View
from unit.execution.model_views import add_edges, add_nodes, assert_reads_agree, view_of
from unit.execution.search.searched import documents, graph_of

BM25 = 'bm25($d.t, "sea cat boats")'
NEAREST = "nearest($d.v, [0.1, 0.0, 1.0])"
RRF = f"rrf({NEAREST}, {BM25}, 5)"
TWICE = f'rrf({BM25}, bm25($d.t, "war running"))'


@pytest.fixture(scope="module")
def world() -> tuple[ModelGraph, View]:
    random = Random(11)
    graph = graph_of(documents(random, 45))
    add_nodes(graph, "Tag", [{"k": f"t{number}"} for number in range(6)])
    ends = [(f"d{random.randrange(45)}", f"t{random.randrange(6)}") for _ in range(70)]
    links = [
        {"@id": f"h{number}", "@src": source, "@dst": target}
        for number, (source, target) in enumerate(ends)
    ]
    add_edges(graph, "Has", links)
    return graph, view_of(graph)


def agree(world: tuple[ModelGraph, View], text: str, **params: Any) -> list[dict[str, Any]]:
    return assert_reads_agree(*world, text, params)


@pytest.mark.parametrize("rank", [BM25, NEAREST, RRF, TWICE])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_scores_are_returned_in_order(
    world: tuple[ModelGraph, View], rank: str, limit: int
) -> None:
    rows = agree(
        world,
        f"query q() {{ match {{ $d: Doc }} return {{ $d.k, {rank} }}"
        f" order {{ {rank} }} limit {limit} }}",
    )
    assert len(rows) == min(limit, len(rows))
    assert rows


@pytest.mark.parametrize("rank", [BM25, NEAREST])
@pytest.mark.parametrize(
    "clauses",
    [
        "$d: Doc  $d.n > 2",
        '$d: Doc { n: 1 }  search($d.t, "sea war")',
        '$d: Doc  fuzzy($d.t, "bot", 1)',
        "$d: Doc  $d has $t",
        "$t: Tag  $d has $t",
        '$t: Tag { k: "t1" }  $d has $t',
        "$d: Doc  $d $h:has $t",
        "$d: Doc  $d has $t  $o has $t  $o.n = 2",
        "$d: Doc  not { $d has $t }",
        "$d: Doc  count { $d has $t } >= 2",
        '$d: Doc  exists { $d has $t  $o has $t  search($o.t, "cat") }',
    ],
)
def test_a_pattern_comes_before_the_rank(
    world: tuple[ModelGraph, View], clauses: str, rank: str
) -> None:
    for limit in (3, 50):
        agree(
            world,
            f"query q() {{ match {{ {clauses} }} return {{ $d.k, {rank} as s }}"
            f" order {{ {rank}, $d.n desc }} limit {limit} }}",
        )


@pytest.mark.parametrize("rank", [BM25, NEAREST, RRF])
@pytest.mark.parametrize(
    "returned", ["count($d) as n", "$d.n, count($d) as c, max($d.k) as m", "sum($d.n) as s"]
)
def test_a_rank_selects_what_an_aggregate_is_about(
    world: tuple[ModelGraph, View], returned: str, rank: str
) -> None:
    for limit in (2, 50):
        agree(
            world,
            f"query q() {{ match {{ $d: Doc }} return {{ {returned} }}"
            f" order {{ {rank} }} limit {limit} }}",
        )


def test_a_query_over_a_type_without_data_has_no_rows() -> None:
    graph = graph_of([])
    empty = graph, view_of(graph)
    for rank in (BM25, NEAREST, RRF, TWICE):
        returned = f"return {{ $d.k, {rank} }} order {{ {rank} }} limit 3"
        assert agree(empty, f"query q() {{ match {{ $d: Doc }} {returned} }}") == []
    assert agree(empty, 'query q() { match { $d: Doc search($d.t, "a") } return { $d.k } }') == []


@pytest.mark.parametrize("query", ["sea", "Cats!", "the", "", "zebra", "東京"])
def test_text_predicates_take_parameters(world: tuple[ModelGraph, View], query: str) -> None:
    for predicate in ("search($d.t, $q)", "match_text($d.t, $q)", "fuzzy($d.t, $q)"):
        text = f"query q($q: String) {{ match {{ $d: Doc {predicate} }} return {{ $d.k }} }}"
        agree(world, text, q=query)
