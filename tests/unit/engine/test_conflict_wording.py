"""What conflicts say: who did what, in the words of a merge, a revert or a cherry-pick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import pytest

from omnigraph import Branch, Graph, errors
from unit.writers.merge.merge_world import edge, four_people, person, put, remove, set_age

Change: TypeAlias = Callable[[Branch], None]


@pytest.fixture
def graph() -> Iterator[Graph]:
    with four_people() as graph:
        yield graph


def _age(name: str, age: int) -> Change:
    return partial(set_age, name=name, age=age)


def _put(name: str, age: int) -> Change:
    return lambda branch: put(branch, person(name, age=age))


def _remove(name: str) -> Change:
    return partial(remove, name=name)


def _told(act: Callable[[], object], operation: str) -> str:
    """The only conflict of an operation."""
    with pytest.raises(errors.MergeConflictError) as caught:
        act()
    assert caught.value.operation == operation
    (conflict,) = caught.value.conflicts
    assert caught.value.message == f"{operation} conflicts: {conflict}"
    return conflict.message


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        (_put("x", 1), _put("x", 2), "x was inserted on both sides with different values: age"),
        (_age("dan", 1), _age("dan", 2), "dan was changed on both sides: age"),
        (_age("dan", 1), _remove("dan"), "dan was deleted by ours and changed by theirs"),
        (_remove("dan"), _age("dan", 1), "dan was changed by ours and deleted by theirs"),
    ],
)
def test_a_merge_speaks_of_its_two_sides(
    graph: Graph, theirs: Change, ours: Change, told: str
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    theirs(review)
    ours(main)
    name, _, rest = told.partition(" ")
    assert _told(lambda: main.merge(review), "merge") == f"Person '{name}' {rest}"


@pytest.mark.parametrize(
    ("commit", "since", "told"),
    [
        (_put("x", 1), _age("x", 2), "x was inserted by the commit, and changed since"),
        (_age("dan", 1), _age("dan", 2), "dan was changed by the commit, and again since: age"),
        (_age("dan", 1), _remove("dan"), "dan was changed by the commit, and deleted since"),
        (
            _remove("alice"),
            _put("alice", 1),
            "alice was deleted by the commit, and is there again with other values: age",
        ),
    ],
)
def test_a_revert_speaks_of_the_commit_and_of_what_came_since(
    graph: Graph, commit: Change, since: Change, told: str
) -> None:
    main = graph.branch()
    commit(main)
    undone = main.head
    since(main)
    name, _, rest = told.partition(" ")
    assert _told(lambda: main.revert(undone), "revert") == f"Person '{name}' {rest}"


@pytest.mark.parametrize(
    ("commit", "here", "told"),
    [
        (
            _put("x", 1),
            _put("x", 2),
            "x was inserted by the commit, and is on this branch with other values: age",
        ),
        (
            _age("dan", 1),
            _age("dan", 2),
            "dan was changed by the commit, and has other values on this branch: age",
        ),
        (
            _age("dan", 1),
            _remove("dan"),
            "dan was changed by the commit, and is not on this branch",
        ),
        (
            _remove("dan"),
            _age("dan", 1),
            "dan was deleted by the commit, and has other values on this branch",
        ),
    ],
)
def test_a_cherry_pick_speaks_of_the_commit_and_of_the_branch(
    graph: Graph, commit: Change, here: Change, told: str
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    commit(review)
    here(main)
    name, _, rest = told.partition(" ")
    found = _told(lambda: main.cherry_pick(review.head), "cherry-pick")
    assert found == f"Person '{name}' {rest}"


def _link(source: str, target: str) -> Change:
    return lambda branch: put(branch, {**edge("Knows", source, target), "id": "k9"})


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        (_link("dan", "bob"), _remove("dan"), "of theirs needs Person 'dan' as its source, which "),
        (_link("bob", "dan"), _remove("dan"), "of theirs needs Person 'dan' as its target, which "),
        (_remove("dan"), _link("bob", "dan"), "of ours needs Person 'dan' as its target, which "),
    ],
)
def test_an_edge_without_its_node_says_who_deleted_the_node(
    graph: Graph, theirs: Change, ours: Change, told: str
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    theirs(review)
    ours(main)
    deleted_by = "ours deleted" if "theirs" in told else "theirs deleted"
    expected = f"edge Knows 'k9' {told}{deleted_by}"
    assert _told(lambda: main.merge(review), "merge") == expected
    (planned,) = main.plan_merge(review).conflicts
    assert (planned.kind, planned.entity_id) == ("orphan_edge", "k9")
    assert planned.message == expected


def test_both_ends_of_an_edge_may_be_gone(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    put(review, {**edge("Knows", "alice", "dan"), "id": "k9"})
    remove(main, "alice")
    remove(main, "dan")
    assert [each.message for each in main.plan_merge(review).conflicts] == [
        "edge Knows 'k9' of theirs needs Person 'alice' as its source, which ours deleted",
        "edge Knows 'k9' of theirs needs Person 'dan' as its target, which ours deleted",
    ]


def test_an_edge_that_a_revert_brings_back_needs_its_node(graph: Graph) -> None:
    main = graph.branch()
    main.mutate('query q() { delete Knows where from = "bob" }')
    undone = main.head
    remove(main, "carol")
    assert _told(lambda: main.revert(undone), "revert") == (
        "edge Knows 'k1' would come back and needs Person 'carol' as its target,"
        " which is not on this branch"
    )


def test_a_picked_deletion_leaves_no_edge_of_the_branch_alone(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    remove(review, "dan")
    _link("bob", "dan")(main)
    assert _told(lambda: main.cherry_pick(review.head), "cherry-pick") == (
        "edge Knows 'k9' of this branch needs Person 'dan' as its target, which the commit deleted"
    )


def test_a_unique_value_says_who_has_it(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    put(review, person("dan", email="a@x"))
    put(main, person("bob", email="a@x"))
    broken = "@unique violation on Person.email: a@x"
    found = _told(lambda: main.merge(review), "merge")
    assert found == f"{broken}, which ours has in Person 'bob'"
    found = _told(lambda: main.cherry_pick(review.head), "cherry-pick")
    assert found == f"{broken}, which this branch has in Person 'bob'"
