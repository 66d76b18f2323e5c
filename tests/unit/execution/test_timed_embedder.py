"""Texts that a query has embedded take no longer than the query may."""

from __future__ import annotations

import time

import pytest

import places
from omnigraph import Graph
from omnigraph.embedding import MockEmbedder, NamedEmbedder
from omnigraph.embedding.embedding_profile import RetryPolicy
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import EmbeddingError, QueryTimeoutError
from omnigraph.execution.execution_context import Embedder
from omnigraph.execution.executor import TimedEmbedder
from omnigraph.execution.query_budget import Budget
from unit.embedding.loopback import client, embedding, loopback, says, stalls

SEARCH = (
    'query near() { match { $d: Doc } return { $d.slug } order { nearest($d.vec, "sea") } limit 1 }'
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def searchable(embed: Embedder) -> Graph:
    graph = create_on(
        places.storage_of(places.fresh_uri()),
        schema="node Doc { slug: String @key\n vec: Vector(2)? }",
        environment=Environment(embed=embed),
    )
    graph.branch().load([{"type": "Doc", "data": {"slug": "a", "vec": [1, 0]}}], mode="append")
    return graph


def test_a_provider_that_stalls_ends_the_query_when_the_time_of_the_query_is_over() -> None:
    patient = RetryPolicy(deadline_s=60, timeout_s=30, attempts=1)
    with loopback(stalls(20)) as server:
        branch = searchable(client(server.url, patience=patient)).branch()
        started = time.monotonic()
        with pytest.raises(QueryTimeoutError) as stopped:
            branch.query(SEARCH, timeout=0.5)
    assert stopped.value.timeout_s == pytest.approx(0.5, abs=0.1)
    assert time.monotonic() - started < 10


def test_a_provider_that_stalls_ends_the_query_when_its_own_time_is_over_first() -> None:
    hasty = RetryPolicy(deadline_s=0.3, timeout_s=30, attempts=1)
    with loopback(stalls(20)) as server:
        branch = searchable(client(server.url, patience=hasty)).branch()
        with pytest.raises(EmbeddingError) as caught:
            branch.query(SEARCH, timeout=60)
    assert caught.value.reason == "unavailable"


def test_a_query_without_a_bound_leaves_the_provider_its_own() -> None:
    with loopback(embedding(1, 0)) as server:
        found = searchable(client(server.url)).branch().query(SEARCH)
    assert found.to_pylist() == [{"d.slug": "a"}]


def test_a_refusal_is_told_while_there_is_time() -> None:
    with loopback(says(b"", 401)) as server:
        timed = TimedEmbedder(client(server.url), Budget(deadline=time.monotonic() + 60))
        with pytest.raises(EmbeddingError) as caught:
            timed("sea", 2)
    assert caught.value.reason == "refused"


def test_an_embedder_that_cannot_be_hurried_ends_the_query_afterwards() -> None:
    budget = Budget(deadline=time.monotonic() + 0.05)

    def slow(_: str, dimension: int) -> list[float]:
        time.sleep(0.1)
        return [1.0] * dimension

    with pytest.raises(QueryTimeoutError):
        TimedEmbedder(slow, budget)("sea", 2)


def test_a_query_whose_time_is_over_asks_nobody() -> None:
    asked: list[str] = []

    def embed(text: str, _: int) -> list[float]:
        asked.append(text)
        return [1.0]

    with pytest.raises(QueryTimeoutError):
        TimedEmbedder(embed, Budget(deadline=0.0))("sea", 1)
    assert not asked


def test_it_has_the_model_of_what_it_wraps_and_only_if_that_has_one() -> None:
    named = TimedEmbedder(MockEmbedder("demo"), Budget())
    assert isinstance(named, NamedEmbedder)
    assert named.model == "demo"
    assert not isinstance(TimedEmbedder(lambda _, n: [1.0] * n, Budget()), NamedEmbedder)
