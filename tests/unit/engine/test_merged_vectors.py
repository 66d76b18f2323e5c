"""Merges of vectors that are made of texts: each follows the side that its text comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.embedding import FunctionEmbedder
from omnigraph.errors import MergeConflictError

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  rank: I32?
  vec: Vector(2)? @embed(text, model="m")
}
"""
ROWS = "query q() { match { $d: Doc } return { $d.text as t, $d.rank as r, $d.vec as v } }"


def lengths(texts: list[str], *_: object) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


@pytest.fixture(params=["property", "entity"])
def by(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    """One document without its vector, and a branch of it."""
    embedder = FunctionEmbedder("m", lengths)
    with omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=embedder) as graph:
        graph.branch().load([{"type": "Doc", "data": {"slug": "a", "text": "one"}}], mode="append")
        graph.create_branch("side")
        yield graph


def change(graph: Any, branch: str, assigned: str, embed: str = "later") -> None:
    text = f'query q() {{ update Doc set {{ {assigned} }} where slug = "a" }}'
    graph.branch(branch).mutate(text, embed=embed)


def state(graph: Any) -> tuple[str, int | None, int | None]:
    (row,) = graph.branch().query(ROWS)
    vector = row["v"]
    return row["t"], row["r"], None if vector is None else round(vector[0] / vector[1])


def test_both_sides_fill_the_same_text(graph: Any, by: Any) -> None:
    graph.branch().embed()
    graph.branch("side").embed()
    change(graph, "side", "rank: 1")
    graph.branch().merge("side", by=by)
    assert state(graph) == ("one", 1, 3)


@pytest.mark.parametrize("filled", ["main", "side"])
def test_a_text_that_one_side_changed_wins_over_the_vector_of_the_other(
    graph: Any, by: Any, filled: str
) -> None:
    changed = "side" if filled == "main" else "main"
    graph.branch(filled).embed()
    change(graph, changed, 'text: "longer"', embed="write")
    graph.branch().merge("side", by=by)
    assert state(graph) == ("longer", None, 6)


@pytest.mark.parametrize("filled", ["main", "side"])
def test_a_fill_and_a_change_of_another_property_are_both_kept(
    graph: Any, by: Any, filled: str
) -> None:
    changed = "side" if filled == "main" else "main"
    graph.branch(filled).embed()
    change(graph, changed, "rank: 7")
    graph.branch().merge("side", by=by)
    assert state(graph) == ("one", 7, 3)


@pytest.mark.parametrize("filled", ["main", "side"])
def test_a_changed_text_without_its_vector_waits_for_it(graph: Any, by: Any, filled: str) -> None:
    changed = "side" if filled == "main" else "main"
    graph.branch(filled).embed()
    change(graph, changed, 'text: "longer"')
    graph.branch().merge("side", by=by)
    # In the background, the text may have its vector already.
    assert state(graph) in [("longer", None, None), ("longer", None, 6)]
    graph.branch().embed()
    assert state(graph) == ("longer", None, 6)


def test_other_vectors_of_one_text_are_not_a_conflict(graph: Any, by: Any) -> None:
    change(graph, "main", "vec: [5.0, 1.0]")
    change(graph, "side", "vec: [8.0, 1.0]")
    graph.branch().merge("side", by=by)
    assert state(graph) == ("one", None, 5)


def test_two_changes_of_the_text_are_a_conflict(graph: Any, by: Any) -> None:
    change(graph, "main", 'text: "mine"', embed="write")
    change(graph, "side", 'text: "theirs"', embed="write")
    with pytest.raises(MergeConflictError):
        graph.branch().merge("side", by=by)
