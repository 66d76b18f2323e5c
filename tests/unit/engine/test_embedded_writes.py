"""Writes that fill the vectors of their texts, against an embedder that counts what it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.embedding import BatchEmbedder, FunctionEmbedder, MockEmbedder
from omnigraph.embedding.mock_embedder import compute_mock_embedding
from omnigraph.errors import (
    EmbeddingError,
    EmbeddingUnavailableError,
    InvalidArgumentError,
    WriteRefusedError,
)
from unit.embedding.loopback import client, loopback, says

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  rank: I32?
  vec: Vector(2)? @embed(text, model="m")
}
"""
REQUIRED = SCHEMA.replace("Vector(2)?", "Vector(2)")
UNNAMED = SCHEMA.replace(', model="m"', "")


class Lengths:
    """Makes the vector of a text of its length, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str], _: int, task: str) -> list[list[float]]:
        assert task == "document"
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]


@pytest.fixture
def lengths() -> Lengths:
    return Lengths()


def open_graph(tmp_path: Path, lengths: Any, schema: str = SCHEMA, **options: Any) -> Any:
    embedder = lengths if isinstance(lengths, BatchEmbedder) else FunctionEmbedder("m", lengths)
    return omnigraph.create(tmp_path / "g", schema=schema, embedder=embedder, **options)


def vectors_of(graph: Any) -> dict[str, Any]:
    """The vectors by slug, each as the ratio of its components: the length of its text."""
    rows = graph.branch().query(
        "query q() { match { $d: Doc } return { $d.slug as s, $d.vec as v } }"
    )
    return {
        each["s"]: None if each["v"] is None else round(each["v"][0] / each["v"][1])
        for each in rows
    }


def doc(slug: str, **values: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, **values}}


def test_a_load_fills_null_vectors_and_asks_for_equal_texts_once(
    tmp_path: Path, lengths: Lengths
) -> None:
    with open_graph(tmp_path, lengths) as graph:
        rows = [doc("a", text="one"), doc("b", text="seven"), doc("c", text="one"), doc("d")]
        graph.branch().load([*rows, doc("e", text="x", vec=[9, 1])], mode="append", embed="write")
        assert vectors_of(graph) == {"a": 3, "b": 5, "c": 3, "d": None, "e": 9}
    assert sorted(lengths.asked) == ["one", "seven"]


def test_a_graph_that_was_opened_plainly_fills_nothing(tmp_path: Path, lengths: Lengths) -> None:
    with open_graph(tmp_path, lengths) as graph:
        graph.branch().load([doc("a", text="one")], mode="append")
        assert vectors_of(graph) == {"a": None}
    assert lengths.asked == []


@pytest.mark.parametrize("schema", [SCHEMA, REQUIRED], ids=["nullable", "required"])
def test_a_graph_that_fills_vectors_does_so_in_every_write(
    tmp_path: Path, lengths: Lengths, schema: str
) -> None:
    with open_graph(tmp_path, lengths, schema, embed="write") as graph:
        main = graph.branch()
        main.load([doc("a", text="one")], mode="append")
        main.mutate('query q() { insert Doc { slug: "b", text: "three" } }')
        assert vectors_of(graph) == {"a": 3, "b": 5}
        main.mutate('query q() { update Doc set { text: "sixsix" } where slug = "a" }')
        assert vectors_of(graph) == {"a": 6, "b": 5}
        main.mutate('query q() { update Doc set { rank: 1 } where slug = "a" }')
        main.load([doc("a", text="sixsix"), doc("c", text="1")], mode="merge")
        main.load([doc("b", text="three", rank=2)], mode="overwrite")
        assert vectors_of(graph) == {"b": 5}
        with pytest.raises(WriteRefusedError) if schema is REQUIRED else _nothing():
            main.load([doc("x")], mode="append")
    assert lengths.asked == ["one", "three", "sixsix", "1"]


def _nothing() -> Any:
    from contextlib import nullcontext  # noqa: PLC0415

    return nullcontext()


def test_a_patch_that_does_not_mention_the_vector_follows_its_text(
    tmp_path: Path, lengths: Lengths
) -> None:
    with open_graph(tmp_path, lengths, embed="write") as graph:
        main = graph.branch()
        main.load([doc("a", text="one"), doc("b", text="three")], mode="append")
        main.load([doc("a", rank=1), doc("b", text="sixsix")], mode="patch")
        assert vectors_of(graph) == {"a": 3, "b": 6}
        main.load([doc("a", text=None)], mode="patch")
        assert vectors_of(graph) == {"a": None, "b": 6}
        main.mutate('query q() { update Doc set { text: "z", vec: [7.0, 1.0] } where slug = "b" }')
        assert vectors_of(graph) == {"a": None, "b": 7}
    assert lengths.asked == ["one", "three", "sixsix"]


def test_later_clears_the_vector_of_a_changed_text_in_the_same_commit(
    tmp_path: Path, lengths: Lengths
) -> None:
    with open_graph(tmp_path, lengths) as graph:
        main = graph.branch()
        main.load([doc("a", text="one", vec=[3, 1]), doc("b", text="b", vec=[1, 1])], mode="append")
        commit = main.mutate(
            'query q() { update Doc set { text: "new" } where slug = "a" }', embed="later"
        ).commit
        rows = graph.snapshot(commit).query(
            "query q() { match { $d: Doc } return { $d.slug as s, $d.vec as v } }"
        )
        assert {each["s"]: each["v"] is None for each in rows} == {"a": True, "b": False}


def test_a_failing_provider_refuses_the_write_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", "off")
    with loopback(says(b"", 503)) as server:
        embedder = client(server.url)
        schema = SCHEMA.replace('"m"', '"demo/mini"')
        with open_graph(tmp_path, embedder, schema) as graph:
            head = graph.branch().head.id
            with pytest.raises(EmbeddingUnavailableError, match=r"Doc\.vec") as caught:
                graph.branch().load([doc("a", text="one")], mode="append", embed="write")
            assert caught.value.retryable
            assert graph.branch().head.id == head
            assert graph.check().problems == ()


def test_one_bad_vector_is_reported_with_its_record_and_property(tmp_path: Path) -> None:
    def embed(texts: list[str], *_: object) -> list[list[float]]:
        return [[0.0, 0.0] if text == "bad" else [1.0, 0.0] for text in texts]

    path = tmp_path / "docs.jsonl"
    rows = [doc("a", text="good"), doc("b", text="bad")]
    path.write_text("\n".join(map(json.dumps, rows)))
    with open_graph(tmp_path, embed) as graph:
        with pytest.raises(EmbeddingError, match=r"docs.jsonl line 2: Doc.vec: .*no direction"):
            graph.branch().load(path, mode="append", embed="write")
        assert len(graph.branch().query("query q() { match { $d: Doc } return { $d.slug } }")) == 0


def test_a_bad_vector_is_reported_with_its_record_when_the_cache_knows_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    schema = SCHEMA.replace('"m"', '"demo/mini"')
    good, bad = ({"data": [{"embedding": found}]} for found in ([3, 1], [0, 0]))
    path = tmp_path / "docs.jsonl"
    rows = [doc("a", text="known"), doc("b", text="bad")]
    path.write_text("\n".join(map(json.dumps, rows)))
    with loopback(says(good), says(bad)) as server:
        embedder = client(server.url)
        with open_graph(tmp_path / "one", embedder, schema) as graph:
            graph.branch().load(rows[:1], mode="append", embed="write")
        refused = pytest.raises(EmbeddingError, match=r"docs.jsonl line 2: Doc.vec: ")
        with open_graph(tmp_path / "two", embedder, schema) as graph, refused:
            graph.branch().load(path, mode="append", embed="write")


def test_another_model_or_none_is_refused_before_any_request(
    tmp_path: Path, lengths: Lengths
) -> None:
    with open_graph(tmp_path, FunctionEmbedder("other", lengths)) as graph:
        with pytest.raises(EmbeddingError) as caught:
            graph.branch().load([doc("a", text="one")], mode="append", embed="write")
        assert caught.value.reason == "wrong_model"
    with open_graph(tmp_path / "other", lengths, UNNAMED) as graph:
        with pytest.raises(EmbeddingError, match="@embed names no model") as caught:
            graph.branch().load([doc("a", text="one")], mode="append", embed="write")
        assert caught.value.reason == "no_model"
    assert lengths.asked == []


def test_a_cache_on_disk_serves_texts_that_were_asked_for_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    schema = SCHEMA.replace('"m"', '"demo/mini"')
    answer = says({"data": [{"embedding": [3, 1]}]})
    with loopback(answer) as server:
        for name in ("one", "two"):
            with open_graph(tmp_path / name, client(server.url), schema) as graph:
                graph.branch().load([doc("a", text="one")], mode="append", embed="write")
                graph.branch().load([doc("b", text="one")], mode="append", embed="write")
                assert vectors_of(graph) == {"a": 3, "b": 3}
    assert len(server.asked) == 1


def test_a_bulk_load_says_that_it_fills_no_vectors(tmp_path: Path, lengths: Lengths) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps(doc("a", text="one")))
    with open_graph(tmp_path, lengths) as graph:
        main = graph.branch()
        with pytest.raises(InvalidArgumentError, match="does not fill vectors"):
            main.load(path, mode="append", embed="write", on_error="quarantine")
        with pytest.raises(InvalidArgumentError, match="does not clear"):
            main.load(path, mode="merge", embed="later", on_error="quarantine")


def test_an_embedder_is_checked_when_the_graph_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="embedder"):
        omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=len)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="embed"):
        omnigraph.create(tmp_path / "g", schema=SCHEMA, embed="soon")  # type: ignore[arg-type]


def test_the_mock_gives_many_texts_what_it_gives_each(tmp_path: Path) -> None:
    with open_graph(tmp_path, MockEmbedder("m"), embed="write") as graph:
        texts = {f"d{number}": f"text {number % 7}" for number in range(50)}
        graph.branch().load([doc(slug, text=text) for slug, text in texts.items()], mode="append")
        rows = graph.branch().query(
            "query q() { match { $d: Doc } return { $d.slug as s, $d.vec as v } }"
        )
        for each in rows:
            assert each["v"] == pytest.approx(compute_mock_embedding(texts[each["s"]], 2))
