"""Indexes that grow with their tables."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.writers.maintain import keeper
from places import fresh_uri

SCHEMA = "node Person { name: String @key  age: I32? @index }\nnode Team { name: String @key }"


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    monkeypatch.setattr(keeper, "TAIL_ROWS_MIN", 10)
    with omnigraph.create(fresh_uri(), schema=SCHEMA, durable=False) as made:
        yield made


def test_an_index_is_extended_after_much_was_written(graph: Graph) -> None:
    load(graph, "a", 50)
    graph.branch().ensure_indices()
    load(graph, "b", 9)
    settle(graph)
    assert states(graph) == {"stale"}
    load(graph, "c", 9)
    settle(graph)
    assert states(graph) == {"fresh"}
    assert next(iter(graph.branch().commits(limit=1))).message == "index extension"
    assert graph.check().problems == ()


def test_nobody_builds_what_nobody_asked_for(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    assert states(graph) == {"absent"}
    assert not any(commit.is_maintenance for commit in graph.branch().commits())


def test_rows_that_were_replaced_count_too(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LOOK_EVERY", 1)
    load(graph, "a", 50)
    graph.branch().ensure_indices()
    load(graph, "a", 20, mode="merge")
    settle(graph)
    assert states(graph) == {"fresh"}


def test_a_branch_that_is_gone_by_then_is_no_failure(graph: Graph) -> None:
    load(graph, "a", 50)
    child = graph.create_branch("child")
    stream, resources = child._stream, graph._session.resources
    snapshot = child.snapshot().at
    graph.delete_branch("child")
    resources.keeper.consider(snapshot)
    settle(graph)
    assert resources.keeper.last_error is None
    assert stream.id not in resources.keeper._running


def load(graph: Graph, prefix: str, count: int, mode: str = "append") -> None:
    names = [f"{prefix}{number}" for number in range(count)]
    rows = pa.table({"name": names, "age": pa.array(range(count), pa.int32())})
    graph.branch().load(rows, type="Person", mode=mode)


def states(graph: Graph) -> set[str]:
    return {status.state.value for status in graph.index_status() if status.total_rows}


def settle(graph: Graph) -> None:
    """Wait for everything that was to be done after the commits so far."""
    graph._session.resources.background.submit(lambda: None).result(timeout=60)
