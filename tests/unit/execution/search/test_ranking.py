"""Ranks of rows, compared with the model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.embedding import MockEmbedder
from omnigraph.embedding.mock_embedder import compute_mock_embedding
from omnigraph.errors import EmbeddingError, ExecutionError, QueryTimeoutError, ResourceLimitError
from omnigraph.execution.batch import Batch
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.search import FieldRef, field_cache_of, rank_rows, ranking, share_memory
from omnigraph.execution.sources.topology.memory_cache import MemoryCache
from unit.execution.model_views import view_of
from unit.execution.search.searched import (
    documents,
    graph_of,
    query,
    rank_of,
    ranked,
    ranked_by_model,
    reading_of,
    sources_of,
)

ORDERS = [
    "nearest($d.v, [0.1, 0.0, 1.0])",
    'bm25($d.t, "sea cat the")',
    'bm25($d.t, "Straße runs runs sea zebra")',
    'rrf(nearest($d.v, [0.0, 0.5, 0.0]), bm25($d.t, "cats boat"))',
    'rrf(bm25($d.t, "war"), bm25($d.t, "bat sea"), 3)',
    "rrf(nearest($d.v, [1.0, 1.0, 1.0]), nearest($d.v, [0.0, 0.0, 0.0]), 1)",
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ORDERS)
def test_a_rank_gives_the_scores_of_the_model(order: str, seed: int) -> None:
    random = Random(seed)
    graph = graph_of(documents(random, 60))
    view = view_of(graph)
    op = rank_of(graph, query(order))
    rows = [random.choice(list(graph.nodes["Doc"])) for _ in range(random.randrange(80))]
    for ids in (rows, list(graph.nodes["Doc"]), []):
        expected = ranked_by_model(graph, op, ids)
        for source in sources_of(view):
            assert ranked(op, reading_of(view, source), ids) == expected


def best_rows(
    rows: list[tuple[str, float]], limit: int, *, is_descending: bool
) -> list[tuple[str, float]]:
    """The rows whose scores are among the first of the distinct nodes, with their equals."""
    scores = sorted(dict(rows).values(), reverse=is_descending)
    if limit >= len(scores):
        return rows
    last = scores[limit - 1]
    return [row for row in rows if (row[1] >= last if is_descending else row[1] <= last)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_a_limit_keeps_the_best_nodes_and_their_equals(order: str, limit: int, seed: int) -> None:
    random = Random(seed)
    graph = graph_of(documents(random, 60))
    view = view_of(graph)
    op = rank_of(graph, query(order))
    ids = [random.choice(list(graph.nodes["Doc"])) for _ in range(90)]
    for source in sources_of(view):
        reading = reading_of(view, source)
        every = ranked(op, reading, ids)
        kept = ranked(op, reading, ids, limit=limit)
        is_descending = not order.startswith("nearest")
        assert kept == best_rows(every, limit, is_descending=is_descending)


@pytest.mark.parametrize("bytes_max", [None, 64])
@pytest.mark.parametrize("limit", [None, 4])
def test_distances_are_the_same_from_memory_from_the_table_and_one_by_one(
    limit: int | None, bytes_max: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(documents(Random(5), 60))
    op = rank_of(graph, query(ORDERS[0]))
    ids = list(graph.nodes["Doc"])[10:]
    view = view_of(graph)
    for source in sources_of(view):
        reading = reading_of(view, source)
        one_by_one = ranked(op, reading, ids, limit=limit)
        share_memory(view.tables, MemoryCache(bytes_max))
        with monkeypatch.context() as patched:
            patched.setattr(ranking, "FEW_VECTORS", 0)
            assert sorted(ranked(op, reading, ids, limit=limit)) == sorted(one_by_one)
        asked = FieldRef(view, "Doc", "v")
        assert field_cache_of(view).has_field(asked) == (bytes_max is None)
        # What is in memory is used for a few vectors, too.
        expected = ranked_by_model(graph, op, ids[:5])
        if limit is not None:
            expected = best_rows(expected, limit, is_descending=False)
        assert sorted(ranked(op, reading, ids[:5], limit=limit)) == sorted(expected)


@pytest.mark.parametrize(
    ("order", "params"),
    [
        ("nearest($d.v, $q)", "$q: Vector(3)?"),
        ("nearest($d.v, $q)", "$q: String?"),
        ("bm25($d.t, $q)", "$q: String?"),
        ("rrf(nearest($d.v, $q), nearest($d.v, $q))", "$q: Vector(3)?"),
    ],
)
def test_a_null_query_ranks_nothing(order: str, params: str) -> None:
    graph = graph_of(documents(Random(1), 10))
    view = view_of(graph)
    op = rank_of(graph, query(order, params))
    for source in sources_of(view):
        reading = reading_of(view, source, {"q": None})
        assert ranked(op, reading, list(graph.nodes["Doc"])) == []


@pytest.mark.parametrize("k", [None, 0, -1, 2**32])
def test_a_bad_constant_is_refused_even_without_rows(k: int | None) -> None:
    graph = graph_of([])
    view = view_of(graph)
    op = rank_of(graph, query('rrf(bm25($d.t, "a"), bm25($d.t, "b"), $k)', "$k: I64?"))
    for source in sources_of(view):
        with pytest.raises(ExecutionError, match="search option must be at least 1"):
            ranked(op, reading_of(view, source, {"k": k}), [])


def test_scores_have_the_types_of_their_columns() -> None:
    graph = graph_of(documents(Random(1), 10))
    view = view_of(graph)
    for order, kind in [
        (ORDERS[0], pa.float32()),
        (ORDERS[1], pa.float32()),
        (ORDERS[3], pa.float64()),
    ]:
        op = rank_of(graph, query(order))
        for source in sources_of(view):
            reading = reading_of(view, source)
            for numbers in (source.get_nodes("Doc").list_all(), np.empty(0, np.int32)):
                found = rank_rows(op, Batch(len(numbers), {"d": numbers}), reading)
                assert found.scores is not None
                assert found.scores.type == kind


def test_a_text_is_embedded_by_the_model_that_made_the_vectors() -> None:
    graph = graph_of(documents(Random(1), 20))
    view = view_of(graph)
    ids = list(graph.nodes["Doc"])
    by_text = rank_of(graph, query('nearest($d.v, "hello")'))
    vector = ", ".join(str(abs(each)) for each in compute_mock_embedding("hello", 3))
    by_vector = rank_of(graph, query(f"nearest($d.v, [{vector}])"))
    for source in sources_of(view):

        def embed(text: str, dimension: int) -> list[float]:
            return [abs(each) * 7 for each in compute_mock_embedding(text, dimension)]

        assert ranked(by_text, reading_of(view, source, embed=embed), ids) == ranked(
            by_vector, reading_of(view, source), ids
        )
        named = reading_of(view, source, embed=MockEmbedder("demo/mini"))
        assert len(ranked(by_text, named, ids)) > 10
        other = reading_of(view, source, embed=MockEmbedder("other/model"))
        with pytest.raises(EmbeddingError, match=r"'demo/mini'.*'other/model'") as caught:
            ranked(by_text, other, ids)
        assert caught.value.reason == "wrong_model"


def test_without_an_embedder_only_vectors_can_be_searched_for() -> None:
    graph = graph_of([])
    view = view_of(graph)
    by_text = rank_of(graph, query('nearest($d.v, "hello")'))
    for source in sources_of(view):
        with pytest.raises(EmbeddingError, match="no embedder") as caught:
            ranked(by_text, reading_of(view, source), [])
        assert caught.value.reason == "not_configured"

        def never(text: str, dimension: int) -> list[float]:
            raise AssertionError(f"{text} of {dimension} is not needed")

        assert ranked(by_text, reading_of(view, source, embed=never), []) == []


def test_a_rank_needs_memory_for_its_nodes() -> None:
    graph = graph_of(documents(Random(1), 20))
    view = view_of(graph)
    op = rank_of(graph, query(ORDERS[1]))
    for source in sources_of(view):
        reading = replace(reading_of(view, source), budget=Budget(memory_bytes=100))
        with pytest.raises(ResourceLimitError):
            ranked(op, reading, list(graph.nodes["Doc"]))


def test_a_rank_stops_when_its_time_is_over() -> None:
    graph = graph_of(documents(Random(1), 20))
    view = view_of(graph)
    op = rank_of(graph, query(ORDERS[1]))
    for source in sources_of(view):
        reading = replace(reading_of(view, source), budget=Budget(deadline=0.0))
        with pytest.raises(QueryTimeoutError):
            ranked(op, reading, list(graph.nodes["Doc"]))
