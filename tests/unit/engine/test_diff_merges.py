"""Diffs of branches that were merged, also crosswise, and that changed their schemas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch, Graph
from unit.engine.company import SCHEMA, company, person
from unit.engine.exported import expected, told


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company() as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


@pytest.fixture
def review(graph: Graph, main: Branch) -> Branch:
    """A branch that starts at main."""
    return graph.create_branch("review", source=main)


def _names(branch: Branch, other: Branch) -> set[str]:
    return {entity[2] for entity in told(branch.diff(other))}


def test_a_merge_brings_what_its_review_told(graph: Graph, main: Branch, review: Branch) -> None:
    review.load([person("Cyd"), person("Ada", 37)], mode="merge")
    main.load([person("Dan"), person("Bob", 42)], mode="merge")
    before = main.snapshot()
    reviewed = told(main.diff(review))
    main.merge(review)
    assert told(before.diff(main)) == reviewed == expected(before, main.snapshot())
    assert set(reviewed) == {("node", "Person", "Ada"), ("node", "Person", "Cyd")}
    # Nothing is left to review, and the branch lacks what main did.
    assert not main.diff(review)
    assert {op for op, *_ in told(graph.diff(main, review)).values()} == {"delete", "update"}


def test_after_a_fast_forward_both_branches_are_the_same(
    graph: Graph, main: Branch, review: Branch
) -> None:
    start = main.snapshot()
    review.load([person("Cyd")], mode="append")
    main.merge(review)
    assert not graph.diff(main, review)
    assert not main.diff(review)
    assert not review.diff(main)
    assert told(start.diff(main)) == expected(start, main.snapshot())


def test_a_review_after_merges_crosswise_tells_what_came_later(
    graph: Graph, main: Branch, review: Branch
) -> None:
    main.load([person("m1"), person("m2")], mode="append")
    review.load([person("r1")], mode="append")
    ours, theirs = main.snapshot(), review.snapshot()
    main.merge(theirs)
    review.merge(ours)
    assert not graph.diff(main, review)
    main.load([person("m3"), person("Ada", 1)], mode="merge")
    review.load([person("r2"), person("Bob", 2)], mode="merge")
    assert told(graph.diff(main, review)) == expected(main.snapshot(), review.snapshot())
    # Both starts of the merges are equally near; the base lacks what the other one brought.
    assert {"r2", "Bob"} <= _names(main, review) <= {"r1", "r2", "m1", "m2", "Bob"}
    main.merge(review)
    assert not main.diff(review)
    assert _names(review, main) == {"Ada", "m3"}


def test_branches_that_changed_their_schemas_are_compared_by_what_both_mean(
    graph: Graph, main: Branch, review: Branch
) -> None:
    start = main.snapshot()
    main.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?"))
    review.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n  home: String?"))
    for branch, name, value in ((main, "nick", "Countess"), (review, "home", "London")):
        record = person("Ada", 36)
        record["data"][name] = value
        branch.load([record], mode="merge")
    (change,) = graph.diff(main, review)
    ada = {"name": "Ada", "age": 36, "badge": None}
    assert change.before == {"properties": {**ada, "nick": "Countess"}}
    assert change.after == {"properties": {**ada, "home": "London"}}
    main.merge(review, prefer="theirs")
    assert told(start.diff(main)) == expected(start, main.snapshot())
    both = main.snapshot()
    review.merge(main)
    assert not graph.diff(main, review)
    record = person("Bob", 41)
    record["data"]["home"] = "Paris"
    review.load([record], mode="merge")
    assert told(both.diff(review)) == expected(both, review.snapshot())
    assert _names(main, review) == {"Bob"}


def test_a_type_that_both_branches_added_is_one_after_their_merge(
    graph: Graph, main: Branch, review: Branch
) -> None:
    wider = SCHEMA + "node Tool { name: String @key }\n"
    for branch, names in ((main, "ab"), (review, "bc")):
        branch.apply_schema(wider)
        tools = [{"type": "Tool", "data": {"name": name}} for name in names]
        branch.load(tools, mode="append")
    before = main.snapshot()
    main.merge(review)
    assert {entity[2]: op for entity, (op, *_) in told(before.diff(main)).items()} == {
        "c": "insert"
    }
    assert told(graph.diff(review, main)) == expected(review.snapshot(), main.snapshot())
    review.merge(main)
    assert not graph.diff(main, review)
    assert told(before.diff(review)) == expected(before, review.snapshot())


def test_what_a_branch_dropped_is_a_change_of_its_schema_only(
    graph: Graph, main: Branch, review: Branch
) -> None:
    review.apply_schema(SCHEMA.replace("  age: I32?\n", ""))
    main.load([person("Ada", 36), person("Bob", 42)], mode="merge")
    for diff in (graph.diff(review, main), graph.diff(main, review)):
        assert diff.schema_changes
        assert told(diff) == {}
    # A property that is added again under its old name is another one.
    review.apply_schema(SCHEMA)
    review.load([person("Bob", 42), person("Ada")], mode="merge")
    assert {name: op for (_, _, name), (op, *_) in told(graph.diff(main, review)).items()} == {
        "Bob": "update"
    }
