"""Vectors that are made after the write, in commits of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.embedding import FunctionEmbedder, MockEmbedder
from omnigraph.errors import (
    ConflictError,
    EmbeddingError,
    EmbeddingUnavailableError,
    WriteRefusedError,
)
from unit.embedding.loopback import Loopback, client, loopback, says

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  rank: I32?
  vec: Vector(2)? @embed(text, model="m")
}
"""
VECTORS = "query q() { match { $d: Doc } return { $d.slug as s, $d.text as t, $d.vec as v } }"


def doc(slug: str, **values: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, **values}}


def lengths(texts: list[str], *_: object) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def create(tmp_path: Path, function: Any = lengths, **options: Any) -> Any:
    embedder = FunctionEmbedder("m", function)
    return omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=embedder, **options)


def ratios(graph: Any, branch: str = "main") -> dict[str, int | None]:
    rows = graph.branch(branch).query(VECTORS)
    return {e["s"]: None if e["v"] is None else round(e["v"][0] / e["v"][1]) for e in rows}


def wait_for(is_done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_load_is_committed_first_and_its_vectors_follow(tmp_path: Path) -> None:
    may_go = threading.Event()

    def slow(texts: list[str], *_: object) -> list[list[float]]:
        assert may_go.wait(60)
        return lengths(texts)

    with create(tmp_path, slow, embed="later") as graph:
        main = graph.branch()
        main.load([doc("a", text="one"), doc("b", text="three"), doc("c")], mode="append")
        assert ratios(graph) == {"a": None, "b": None, "c": None}
        status = main.embed_status()
        assert (status.ready, status.pending, status.failed) == (0, 2, 0)
        assert [(each.type_name, each.property, each.model) for each in status.properties] == [
            ("Doc", "vec", "m")
        ]
        may_go.set()
        wait_for(lambda: main.embed_status().pending == 0)
        assert ratios(graph) == {"a": 3, "b": 5, "c": None}
        assert main.head.message == "vectors of texts"
        assert graph.check().problems == ()


def test_nothing_is_filled_before_it_is_asked_for_and_then_all_of_it(tmp_path: Path) -> None:
    with create(tmp_path) as graph:
        main = graph.branch()
        main.load([doc(str(n), text="t" * n) for n in range(1, 6)], mode="append")
        counts: list[int] = []
        result = main.embed(progress=counts.append)
        assert (result.filled, result.failed, len(result.commits)) == (5, 0, 1)
        assert counts == [5]
        assert ratios(graph) == {str(n): n for n in range(1, 6)}
        again = main.embed()
        assert (again.filled, again.commits) == (0, ())
        assert result.to_json()["filled"] == 5


def test_a_text_that_changes_during_a_fill_gets_the_vector_of_the_new_text(
    tmp_path: Path,
) -> None:
    main: Any = None
    asked: list[list[str]] = []

    def embed(texts: list[str], *_: object) -> list[list[float]]:
        asked.append(texts)
        if len(asked) == 1:
            # Another writer is faster than the provider.
            main.mutate('query q() { update Doc set { text: "longer" } where slug = "a" }')
        return lengths(texts)

    with create(tmp_path, embed) as graph:
        main = graph.branch()
        main.load([doc("a", text="one"), doc("b", text="three")], mode="append")
        assert main.embed().filled == 2
        assert ratios(graph) == {"a": 6, "b": 5}
    assert asked == [["one", "three"], ["longer"]]


def test_an_entity_that_is_deleted_during_a_fill_stays_deleted(tmp_path: Path) -> None:
    main: Any = None

    def embed(texts: list[str], *_: object) -> list[list[float]]:
        main.mutate('query q() { delete Doc where slug = "a" }')
        return lengths(texts)

    with create(tmp_path, embed) as graph:
        main = graph.branch()
        main.load([doc("a", text="one"), doc("b", text="three")], mode="append")
        main.embed()
        assert ratios(graph) == {"b": 5}


def prepared_before_a_fill(graph: Any, *, between: Callable[[], object] = lambda: None) -> Any:
    """An update whose snapshot is older than the commit of a fill."""
    session = graph.branch().session
    read, main = session.read_head, graph.branch()
    stale = read(main.stream)
    between()
    session.read_head = lambda _: stale
    try:
        return main.mutate('query q() { update Doc set { rank: 7 } where slug = "a" }')
    finally:
        del session.__dict__["read_head"]


def test_an_update_that_met_only_a_fill_is_prepared_again(tmp_path: Path) -> None:
    with create(tmp_path) as graph:
        main = graph.branch()
        main.load([doc("a", text="one")], mode="append")
        result = prepared_before_a_fill(graph, between=main.embed)
        assert result.affected_nodes == 1
        rows = list(
            main.query("query q() { match { $d: Doc } return { $d.rank as r, $d.vec as v } }")
        )
        assert [(row["r"], round(row["v"][0] / row["v"][1])) for row in rows] == [(7, 3)]


def test_an_update_that_met_another_update_is_refused(tmp_path: Path) -> None:
    with create(tmp_path) as graph:
        main = graph.branch()
        main.load([doc("a", text="one")], mode="append")

        def between() -> None:
            main.embed()
            main.mutate('query q() { update Doc set { rank: 1 } where slug = "a" }')

        with pytest.raises(ConflictError):
            prepared_before_a_fill(graph, between=between)
        assert [
            row["r"]
            for row in main.query("query q() { match { $d: Doc } return { $d.rank as r } }")
        ] == [1]


def test_texts_that_the_provider_refuses_are_counted_and_the_others_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    schema = SCHEMA.replace('"m"', '"demo/mini"')
    refuses = ["bad"]

    def answers(state: Loopback) -> Any:
        def answer(handler: Any) -> None:
            given = state.asked[-1].body["input"]
            texts = [given] if isinstance(given, str) else given
            if any(text in refuses for text in texts):
                says({"error": "no such text"}, 400)(handler)
                return
            says({"data": [{"embedding": [len(text), 1]} for text in texts]})(handler)

        return answer

    with loopback() as server:
        server.answers.append(answers(server))
        embedder = client(server.url)
        with omnigraph.create(tmp_path / "g", schema=schema, embedder=embedder) as graph:
            main = graph.branch()
            texts = [*(f"{n:03d}" for n in range(20)), "bad"]
            main.load([doc(text, text=text) for text in texts], mode="append")
            result = main.embed()
            assert (result.filled, result.failed) == (20, 1)
            assert "no such text" in str(result.reason)
            status = main.embed_status()
            assert (status.ready, status.pending, status.failed) == (20, 1, 1)
            assert "no such text" in str(status.properties[0].reason)
            # Halves were asked for, and no text that has its vector is asked for again.
            before = len(server.asked)
            refuses.clear()
            assert main.embed().filled == 1
            assert [each.body["input"] for each in server.asked[before:]] == ["bad"]
            assert main.embed_status().failed == 0


def test_a_provider_that_is_down_leaves_texts_pending_and_reads_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", "off")
    schema = SCHEMA.replace('"m"', '"demo/mini"')
    with loopback(says(b"", 503)) as server:
        embedder = client(server.url)
        with omnigraph.create(
            tmp_path / "g", schema=schema, embedder=embedder, embed="later"
        ) as graph:
            main = graph.branch()
            main.load([doc("a", text="one")], mode="append")
            wait_for(lambda: main.embed_status().reason is not None)
            status = main.embed_status()
            assert (status.pending, status.failed) == (1, 0)
            assert "503" in str(status.reason)
            assert len(main.query(VECTORS)) == 1
            with pytest.raises(EmbeddingUnavailableError):
                main.embed()
            server.answers[:] = [says({"data": [{"embedding": [3, 1]}]})]
            assert main.embed(wait=True).filled == 1
            assert ratios(graph) == {"a": 3}


def test_another_model_is_refused_before_any_request(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str], *_: object) -> list[list[float]]:
        asked.append(texts)
        return lengths(texts)

    embedder = FunctionEmbedder("other", embed)
    with omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=embedder) as graph:
        main = graph.branch()
        main.load([doc("a", text="one")], mode="append")
        with pytest.raises(EmbeddingError) as caught:
            main.embed()
        assert caught.value.reason == "wrong_model"
    assert asked == []


def test_required_vectors_are_not_made_later(tmp_path: Path) -> None:
    schema = SCHEMA.replace("Vector(2)?", "Vector(2)")
    with (
        omnigraph.create(
            tmp_path / "g", schema=schema, embedder=MockEmbedder("m"), embed="later"
        ) as graph,
        pytest.raises(WriteRefusedError, match="non-nullable property 'vec'"),
    ):
        graph.branch().load([doc("a", text="one")], mode="append")


def test_write_and_later_make_the_same_vectors(tmp_path: Path) -> None:
    rows = [doc(f"d{number}", text=f"text {number % 800}") for number in range(2_000)]
    found = []
    for mode in ("write", "later"):
        with omnigraph.create(
            tmp_path / mode, schema=SCHEMA, embedder=MockEmbedder("m"), embed=mode
        ) as graph:
            main = graph.branch()
            main.load(rows, mode="append")
            main.embed()
            found.append({each["s"]: each["v"] for each in main.query(VECTORS)})
    assert found[0] == found[1]
    assert None not in found[0].values()


def test_vectors_that_are_made_after_a_review_leave_it_as_it_is(tmp_path: Path) -> None:
    with create(tmp_path, actor="ada") as graph:
        draft = graph.create_branch("draft")
        draft.load([doc("a", text="one")], mode="append")
        proposal = graph.open_proposal("draft", title="a text")
        proposal.approve()
        assert draft.embed().filled == 1
        (review,) = proposal.read().reviews
        assert not review.is_stale
        proposal.merge()
        assert ratios(graph) == {"a": 3}


def test_a_text_that_is_written_after_a_review_makes_it_stale(tmp_path: Path) -> None:
    with create(tmp_path, actor="ada") as graph:
        draft = graph.create_branch("draft")
        draft.load([doc("a", text="one")], mode="append")
        proposal = graph.open_proposal("draft", title="a text")
        proposal.approve()
        draft.load([doc("b", text="two")], mode="append")
        assert draft.embed().filled == 2
        (review,) = proposal.read().reviews
        assert review.is_stale
