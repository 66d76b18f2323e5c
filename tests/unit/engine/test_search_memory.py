"""What searches know of texts and vectors: bounded with all else, and kept for the next process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.execution.search import FieldRef, field_cache, field_cache_of
from omnigraph.execution.search import field_cache as fields_module
from omnigraph.execution.search.text_segment import build_text_segment
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, MEMORY_VARIABLE
from omnigraph.execution.sources.topology.memory_cache import MemoryCache
from places import fresh_uri

SCHEMA = """
node Doc { k: String @key  one: String  two: String  vec: Vector(8) }
"""
WORDS = ["sea", "cats", "running", "boats", "hills", "storm", "quiet", "harbour", "sailors"]
SEARCH = 'query q() { match { $d: Doc search($d.one, "storm") } return { $d.k } order { $d.k } }'
DOCS = field_cache.ROWS_MIN + 200


def create(folder: Path) -> Graph:
    """A graph with so many documents that their texts are worth a file."""
    random = Random(7)
    graph = omnigraph.create(fresh_uri(folder / "docs.omni"), schema=SCHEMA, durable=False)
    records = [
        {
            "type": "Doc",
            "data": {
                "k": f"d{number}",
                "one": " ".join(random.choices(WORDS, k=12)),
                "two": " ".join(random.choices(WORDS, k=12)),
                "vec": [random.random() for _ in range(8)],
            },
        }
        for number in range(DOCS)
    ]
    graph.branch().load(records, mode="append")
    return graph


def memory_of(graph: Graph) -> MemoryCache:
    return graph._session.resources.reads.sources.memory


def ranked(graph: Graph, name: str) -> int:
    order = "nearest($d.vec, [1, 1, 1, 1, 1, 1, 1, 1])"
    order = order if name == "vec" else f'bm25($d.{name}, "storm")'
    text = f"query q() {{ match {{ $d: Doc }} return {{ $d.k }} order {{ {order} }} limit 5 }}"
    return len(graph.branch().query(text))


def kept(graph: Graph, names: Sequence[str] = ("one", "two", "vec")) -> set[str]:
    """The properties that searches keep in memory."""
    view = graph.branch().snapshot().view
    return {name for name in names if field_cache_of(view).has_field(FieldRef(view, "Doc", name))}


def test_analysed_texts_outlive_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    with create(tmp_path) as graph:
        uri, expected = graph.uri, graph.branch().query(SEARCH).to_json_rows()
        files = graph._session.resources.reads.sources.files
        assert files is not None
        files.flush()
    assert 0 < len(expected) < DOCS

    def analysed(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the texts were analysed again")

    monkeypatch.setattr(fields_module, "build_text_segment", analysed)
    with omnigraph.open(uri) as graph:
        assert kept(graph) == set()
        assert graph.branch().query(SEARCH).to_json_rows() == expected
        assert kept(graph) == {"one"}


def test_without_a_folder_texts_are_analysed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, "off")
    analysed: list[int] = []

    def counted(row_ids: object, texts: object, analyze: object, **options: object) -> object:
        analysed.append(1)
        return build_text_segment(row_ids, texts, analyze, **options)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(fields_module, "build_text_segment", counted)
    with create(tmp_path) as graph:
        uri = graph.uri
        graph.branch().query(SEARCH)
    with omnigraph.open(uri) as graph:
        graph.branch().query(SEARCH)
        graph.branch().query(SEARCH)
    assert len(analysed) == 2


def test_texts_and_vectors_count_against_the_memory_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, str(10 * 1024**2))
    with create(tmp_path) as graph:
        view = graph.branch().snapshot().view
        assert field_cache_of(view).memory is memory_of(graph)
        graph.branch().query("query q() { match { $d: Doc } return { $d.k, $d.one, $d.two } }")
        for name in ("one", "two", "vec"):
            before = memory_of(graph).nbytes
            assert ranked(graph, name) == 5
            assert memory_of(graph).nbytes > before + DOCS * 8
        assert kept(graph) == {"one", "two", "vec"}


def test_what_was_not_searched_for_longest_is_given_up_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path) as graph:
        ranked(graph, "one")
        view = graph.branch().snapshot().view
        size = field_cache_of(view).get_texts(FieldRef(view, "Doc", "one")).nbytes
        uri = graph.uri
    # Room for one of them, and for the numbers and ids of the documents.
    monkeypatch.setenv(MEMORY_VARIABLE, str(int(1.8 * size)))
    with omnigraph.open(uri) as graph:
        ranked(graph, "one")
        assert kept(graph) == {"one"}
        ranked(graph, "two")
        assert kept(graph) == {"two"}
        assert memory_of(graph).nbytes <= memory_of(graph).bytes_max
        assert ranked(graph, "one") == 5


def test_texts_beyond_the_memory_are_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path) as graph:
        uri, expected = graph.uri, graph.branch().query(SEARCH).to_json_rows()
        assert kept(graph) == {"one"}
    monkeypatch.setenv(MEMORY_VARIABLE, "4096")
    with omnigraph.open(uri) as graph:
        assert graph.branch().query(SEARCH).to_json_rows() == expected
        assert kept(graph) == set()
