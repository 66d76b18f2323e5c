"""What a source keeps of the tables is memory of the query."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import places
from omnigraph import Graph
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import QueryTimeoutError, ResourceLimitError
from omnigraph.execution.query_budget import Access, Budget
from omnigraph.execution.sources.index.index_source import IndexSource

PEOPLE = 2_000
SCHEMA = """
node Person {
  name: String @key
  bio: String?
}
edge Knows: Person -> Person
"""
BIO_BYTES = 200


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = create_on(
        places.storage_of(places.fresh_uri()),
        schema=SCHEMA,
        environment=Environment(access=Access.LOOKUPS),
    )
    people: list[dict[str, object]] = [
        {"type": "Person", "data": {"name": f"p{number}", "bio": "x" * BIO_BYTES}}
        for number in range(PEOPLE)
    ]
    knows: list[dict[str, object]] = [
        {"edge": "Knows", "from": f"p{number}", "to": f"p{(7 * number + 1) % PEOPLE}"}
        for number in range(PEOPLE)
    ]
    made.branch().load([*people, *knows], mode="append")
    return made


def _ids(source: IndexSource) -> object:
    return source.get_nodes("Person").list_all()


def _values(source: IndexSource) -> object:
    nodes = source.get_nodes("Person")
    return nodes.fetch_values("bio", nodes.list_all())


def _neighbours(source: IndexSource) -> object:
    return source.get_edges("Knows").expand_neighbours(
        source.get_nodes("Person").list_all(), is_reversed=False
    )


@pytest.mark.parametrize(
    ("use", "bytes_min"),
    [
        # An id of at least two characters, and the id of its row.
        (_ids, PEOPLE * 10),
        (_values, PEOPLE * (10 + BIO_BYTES)),
        # The row of an edge, its ends, and itself as seen from its start.
        (_neighbours, PEOPLE * (10 + 8 + 8 + 12)),
    ],
)
def test_all_that_is_kept_is_held_by_the_budget(
    graph: Graph, use: Callable[[IndexSource], object], bytes_min: int
) -> None:
    view = graph.branch().snapshot().view
    with pytest.raises(ResourceLimitError) as refused:
        use(IndexSource(view, Budget(memory_bytes=bytes_min)))
    assert refused.value.resource == "query_memory_bytes"
    enough = 8 * bytes_min
    budget = Budget(memory_bytes=enough)
    use(IndexSource(view, budget))
    budget.require_memory(0)
    with pytest.raises(ResourceLimitError):
        budget.require_memory(enough - bytes_min)


def test_what_was_read_before_is_not_held_twice(graph: Graph) -> None:
    budget = Budget(memory_bytes=100 * PEOPLE)
    source = IndexSource(graph.branch().snapshot().view, budget)
    for _ in range(50):
        _neighbours(source)


def test_a_query_of_a_little_memory_is_refused_and_the_same_one_of_enough_is_not(
    graph: Graph,
) -> None:
    text = "query q() { match { $a: Person $a knows $b } return { max($b.bio) as b } }"
    with pytest.raises(ResourceLimitError) as refused:
        graph.branch().query(text, memory=PEOPLE * BIO_BYTES)
    assert refused.value.resource == "query_memory_bytes"
    found = graph.branch().query(text, memory=PEOPLE * BIO_BYTES * 20)
    assert found.to_pylist() == [{"b": "x" * BIO_BYTES}]


def test_reading_a_whole_type_stops_when_the_time_is_over(graph: Graph) -> None:
    late = Budget(deadline=time.monotonic())
    with pytest.raises(QueryTimeoutError):
        _ids(IndexSource(graph.branch().snapshot().view, late))
