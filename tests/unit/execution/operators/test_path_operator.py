"""Paths in a graph that is too large for the model: networkx finds the same."""

from __future__ import annotations

import random
from collections import Counter

import networkx  # type: ignore[import-untyped]  # it has no types
import pytest

import omnigraph
from omnigraph.errors import QueryCancelledError
from omnigraph.writers.inputs import Text

PEOPLE, EDGES, PAIRS = 300, 900, 60


@pytest.fixture(scope="module")
def network() -> networkx.DiGraph:
    dice = random.Random(7)
    drawn = networkx.DiGraph()
    drawn.add_nodes_from(f"p{number}" for number in range(PEOPLE))
    while drawn.number_of_edges() < EDGES:
        drawn.add_edge(f"p{dice.randrange(PEOPLE)}", f"p{dice.randrange(PEOPLE)}")
    return drawn


@pytest.fixture(scope="module")
def branch(network: networkx.DiGraph) -> omnigraph.Branch:
    schema = "node Person { name: String @key }\nedge Knows: Person -> Person"
    graph = omnigraph.create("memory://paths", schema=schema)
    lines = [f'{{"type": "Person", "data": {{"name": "{name}"}}}}' for name in network]
    lines += [f'{{"edge": "Knows", "from": "{one}", "to": "{two}"}}' for one, two in network.edges]
    graph.branch("main").load(Text("\n".join(lines)), mode="append")
    return graph.branch("main")


def test_ends_that_are_given_are_as_far_apart_as_they_are(
    network: networkx.DiGraph, branch: omnigraph.Branch
) -> None:
    dice = random.Random(8)
    people = list(network)
    pairs = {(dice.choice(people), dice.choice(people)) for _ in range(PAIRS)}
    pairs = {(one, two) for one, two in pairs if one != two}
    text = """query q($ones: [String], $twos: [String]) { match {
      for $one, $i in $ones
      for $two, $j in $twos
      $i = $j
      $a: Person  $a.name = $one
      $b: Person  $b.name = $two
      path $p = $a knows{1,} $b
    } return { $a.name, $b.name, length($p) as n, edges($p) as way } }"""
    ones, twos = zip(*sorted(pairs), strict=True)
    params = {"ones": list(ones), "twos": list(twos)}
    found = branch.query(text, params=params).to_json_rows()
    for row in found:
        way = [row["a.name"], *(edge["@dst"] for edge in row["way"])]
        assert networkx.is_path(network, way)
        assert len(way) == row["n"] + 1
        assert way[-1] == row["b.name"]
    lengths = {(row["a.name"], row["b.name"]): row["n"] for row in found}
    assert lengths == {
        (one, two): networkx.shortest_path_length(network, one, two)
        for one, two in pairs
        if networkx.has_path(network, one, two)
    }


def test_all_that_a_node_reaches_has_its_distance(
    network: networkx.DiGraph, branch: omnigraph.Branch
) -> None:
    text = """query q() { match {
      $a: Person { name: "p5" }  $b: Person
      path $p = $a ^knows{0,} $b
    } return { $b.name, length($p) as n } }"""
    found = {row["b.name"]: row["n"] for row in branch.query(text).to_json_rows()}
    assert found == dict(networkx.single_target_shortest_path_length(network, "p5"))


def test_all_paths_within_bounds_are_counted(
    network: networkx.DiGraph, branch: omnigraph.Branch
) -> None:
    text = """query q() { match {
      $a: Person { name: "p5" }  $b: Person
      path $p = all $a knows{2,4} $b
      length($p) > 0
    } return { $b.name, count(*) as n } }"""
    ends = Counter(
        path[-1]
        for other in network
        if other != "p5"
        for path in networkx.all_simple_paths(network, "p5", other, cutoff=4)
        if len(path) > 2
    )
    assert {row["b.name"]: row["n"] for row in branch.query(text).to_json_rows()} == dict(ends)


class LateCancellation(omnigraph.Cancellation):
    """Is cancelled as soon as a query has looked so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._left = looks

    @property
    def is_cancelled(self) -> bool:
        self._left -= 1
        return self._left < 0


def test_a_search_for_all_paths_looks_at_its_time_at_each_node_on_the_way(
    branch: omnigraph.Branch,
) -> None:
    text = """query q() { match {
      $a: Person { name: "p5" }  $b: Person
      path $p = all $a knows{8,8} $b
    } return { count(*) as n } }"""
    with pytest.raises(QueryCancelledError):
        branch.query(text, cancel=LateCancellation(60))
