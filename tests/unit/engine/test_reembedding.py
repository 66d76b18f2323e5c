"""Another model for the vectors of a property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.embedding import FunctionEmbedder
from omnigraph.errors import EmbeddingError, MigrationUnsupportedError

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  title: String?
  vec: Vector(2)? @embed(text, model="old")
}
"""
NEW = SCHEMA.replace('"old"', '"new"')
SEARCH = """
query q($t: String) { match { $d: Doc } return { $d.slug } order { nearest($d.vec, $t) } limit 9 }
"""
VECTORS = "query q() { match { $d: Doc } return { $d.slug as s, $d.vec as v } }"


def model(name: str) -> FunctionEmbedder:
    sign = 1.0 if name == "old" else -1.0
    return FunctionEmbedder(
        name, lambda texts, dimension, _: [[len(t), *[sign] * (dimension - 1)] for t in texts]
    )


def opened(path: Path, name: str) -> Any:
    return omnigraph.open(path, embedder=model(name))


def ratios(state: Any) -> dict[str, int | None]:
    return {
        row["s"]: None if row["v"] is None else round(row["v"][0] / row["v"][1])
        for row in state.query(VECTORS)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two documents with vectors of the old model."""
    rows = [
        {"type": "Doc", "data": {"slug": "a", "text": "one"}},
        {"type": "Doc", "data": {"slug": "b", "text": "three"}},
    ]
    with omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=model("old")) as graph:
        graph.branch().load(rows, mode="append", embed="write")
    return tmp_path / "g"


def test_another_model_empties_the_vectors_and_old_commits_keep_theirs(path: Path) -> None:
    with opened(path, "new") as graph:
        main = graph.branch()
        before = main.head.id
        plan = main.plan_schema(NEW)
        assert [str(step) for step in plan.steps] == [
            "make the vectors of node:Doc.vec anew: old to new"
        ]
        assert plan.to_json()["steps"][0]["kind"] == "reembed_property"
        main.apply_schema(NEW)
        assert ratios(main) == {"a": None, "b": None}
        assert main.embed_status().pending == 2
        assert main.embed().filled == 2
        assert ratios(main) == {"a": -3, "b": -5}
        assert ratios(graph.snapshot(before)) == {"a": 3, "b": 5}
        assert len(main.query(SEARCH, params={"t": "x"})) == 2
        with pytest.raises(EmbeddingError, match="made by the model 'old'"):
            graph.snapshot(before).query(SEARCH, params={"t": "x"})
        assert graph.check(deep=True).problems == ()
    with opened(path, "old") as graph:
        assert len(graph.snapshot(before).query(SEARCH, params={"t": "x"})) == 2


def test_a_branch_is_filled_and_merged(path: Path) -> None:
    with opened(path, "new") as graph:
        main = graph.branch()
        before = main.head.id
        side = graph.create_branch("remodel")
        side.apply_schema(NEW)
        side.embed()
        main.mutate('query q() { update Doc set { text: "sixsix" } where slug = "a" }')
        main.merge(side)
        # The text of a changed after its new vector was made: it waits for another one.
        assert ratios(main) == {"a": None, "b": -5}
        main.embed()
        assert ratios(main) == {"a": -6, "b": -5}
        assert ratios(graph.snapshot(before)) == {"a": 3, "b": 5}
        assert graph.check(deep=True).problems == ()


def test_a_branch_that_only_remodels_is_adopted(path: Path) -> None:
    with opened(path, "new") as graph:
        side = graph.create_branch("remodel")
        side.apply_schema(NEW)
        side.embed()
        graph.branch().merge(side)
        assert ratios(graph.branch()) == {"a": -3, "b": -5}
        assert graph.check(deep=True).problems == ()


def test_a_model_may_have_another_dimension_and_another_text(path: Path) -> None:
    other = NEW.replace("Vector(2)", "Vector(3)").replace("@embed(text", "@embed(title")
    with opened(path, "new") as graph:
        main = graph.branch()
        main.apply_schema(other)
        main.load([{"type": "Doc", "data": {"slug": "c", "title": "t"}}], mode="append")
        assert main.embed().filled == 1
        vectors = {row["s"]: row["v"] for row in main.query(VECTORS)}
        assert len(vectors["c"]) == 3
        assert vectors["a"] is None
        assert graph.check(deep=True).problems == ()


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (NEW.replace(', model="new"', ""), "changing the source or model of @embed"),
        (NEW.replace("Vector(2)?", "Vector(2)"), "make it nullable"),
    ],
    ids=["no model", "required"],
)
def test_what_cannot_be_made_anew_is_refused(path: Path, schema: str, problem: str) -> None:
    with opened(path, "new") as graph, pytest.raises(MigrationUnsupportedError, match=problem):
        graph.branch().apply_schema(schema)
