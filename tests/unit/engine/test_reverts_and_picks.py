"""Reverts and cherry-picks: one commit undone, or done again elsewhere, by the rules of merges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Graph, errors
from unit.writers.merge.merge_world import (
    ages,
    change,
    edge,
    four_people,
    new_graph,
    person,
    problems,
    put,
    set_age,
)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with four_people() as graph:
        yield graph


def test_a_revert_undoes_one_commit_and_keeps_what_came_later(graph: Graph) -> None:
    main = graph.branch()
    change(main, 'delete Person where name = "bob"')
    bad = main.head
    put(main, person("eve", age=7))
    result = main.revert(bad)
    assert result.outcome == "reverted"
    assert result.parents == (main.snapshot().commit.parents[0],)
    assert ages(main) == {"alice": 30, "bob": None, "carol": None, "dan": None, "eve": 7}
    assert main.count("Knows") == 1
    assert main.head.message == f"revert {bad.id}"
    assert problems(graph) == []


def test_a_revert_of_a_revert_does_it_again(graph: Graph) -> None:
    main = graph.branch()
    set_age(main, "bob", 1)
    first = main.head
    reverted = main.revert(first)
    assert ages(main)["bob"] is None
    assert reverted.id is not None
    again = main.revert(reverted.id)
    assert ages(main)["bob"] == 1
    assert again.id is not None
    assert main.head.message == f"revert {reverted.id}, the revert of {first.id}"
    thrice = main.revert(again.id)
    assert ages(main)["bob"] is None
    assert thrice.commit is not None
    assert thrice.commit.message == f"revert {again.id}, the revert of {reverted.id}"


def test_the_message_of_what_is_undone_is_said_once(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    text = 'query q() { update Person set { age: 2 } where name = "dan" }'
    first = review.mutate(text, message="dan: is two\nor so").commit
    assert first is not None
    picked = main.cherry_pick(first).commit
    assert picked is not None
    assert picked.message == f"cherry-pick {first.id}: dan: is two\nor so"
    ids = [picked.id]
    for _ in range(3):
        undone = main.revert(ids[-1]).commit
        assert undone is not None
        ids.append(undone.id)
    told = f"revert {ids[2]}, the revert of {ids[1]}: dan: is two\nor so"
    assert main.head.message == told


def test_a_revert_of_what_changed_since_is_a_conflict(graph: Graph) -> None:
    main = graph.branch()
    set_age(main, "bob", 1)
    first = main.head
    set_age(main, "bob", 2)
    with pytest.raises(errors.MergeConflictError) as caught:
        main.revert(first)
    (conflict,) = caught.value.conflicts
    assert (conflict.base, conflict.ours, conflict.theirs) == ({"age": 1}, {"age": 2}, {})
    assert conflict.message == "Person 'bob' was changed by the commit, and again since: age"
    assert caught.value.message.startswith("revert conflicts: divergent_update Person 'bob'")
    assert caught.value.hint is not None
    assert "what the revert makes of it" in caught.value.hint
    assert main.revert(first, prefer="ours").outcome == "nothing_to_do"
    main.revert(first, prefer="theirs", message="away with it")
    assert ages(main)["bob"] is None
    assert dict(main.head.preferred) == {"divergent_update": "theirs"}


def test_a_revert_of_an_insert_whose_node_has_edges_by_now_is_a_conflict(graph: Graph) -> None:
    main = graph.branch()
    put(main, person("eve"))
    added = main.head
    put(main, edge("Knows", "eve", "bob"))
    with pytest.raises(errors.MergeConflictError) as caught:
        main.revert(added)
    (conflict,) = caught.value.conflicts
    assert conflict.kind == "orphan_edge"
    assert conflict.message == (
        f"edge Knows '{conflict.entity_id}' needs Person 'eve' as its source,"
        " which the commit inserted and the revert would delete"
    )
    assert caught.value.hint == "change the branch so that the revert fits, and try again"


def test_a_merge_is_reverted_relative_to_what_it_was_merged_into(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    set_age(main, "dan", 2)
    merged = main.merge(review)
    assert merged.id is not None
    main.revert(merged.id)
    assert ages(main) == {"alice": 30, "bob": None, "carol": None, "dan": 2}


def test_what_is_undone_already_needs_no_revert(graph: Graph) -> None:
    main = graph.branch()
    set_age(main, "bob", 1)
    first = main.head
    put(main, person("bob"))
    result = main.revert(first)
    assert (result.outcome, result.commit) == ("nothing_to_do", None)


def test_the_first_commit_cannot_be_reverted(graph: Graph) -> None:
    main = graph.branch()
    first = list(main.commits())[-1]
    with pytest.raises(errors.CommitHasNoParentError):
        main.revert(first)


def test_a_cherry_pick_brings_one_commit_and_not_those_before_it(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    review.mutate(
        'query q() { update Person set { age: 2 } where name = "dan" }', message="dan is two"
    )
    picked = review.head
    result = main.cherry_pick(picked)
    assert result.outcome == "cherry_picked"
    assert ages(main) == {"alice": 30, "bob": None, "carol": None, "dan": 2}
    assert main.head.message == f"cherry-pick {picked.id}: dan is two"
    assert len(main.head.parents) == 1
    assert main.cherry_pick(picked).outcome == "nothing_to_do"
    assert main.merge(review).outcome == "merged"
    assert ages(main)["bob"] == 1
    assert problems(graph) == []


def test_a_cherry_pick_of_an_edge_needs_its_nodes(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    put(review, person("eve"))
    put(review, edge("Knows", "eve", "bob"))
    with pytest.raises(
        errors.MergeConflictError, match="cherry-pick conflicts: orphan_edge"
    ) as caught:
        main.cherry_pick(review.head)
    (conflict,) = caught.value.conflicts
    assert conflict.message == (
        f"edge Knows '{conflict.entity_id}' of the commit needs Person 'eve' as its source,"
        " which is not on this branch"
    )


@pytest.mark.parametrize("before", ["", 'where k = "y"', 'where k = "x"'])
def test_a_merge_counts_what_was_picked_again_whatever_else_was_written(before: str) -> None:
    nodes: list[dict[str, object]] = [{"type": "P", "data": {"k": key, "a": 0}} for key in "xy"]
    schema = "node P { k: String @key  a: I64? merge counter  n: I64? }"
    with new_graph(*nodes, schema=schema) as graph:
        main, other = graph.branch(), graph.create_branch("other")
        change(other, 'update P set { a: a + 1000 } where k = "x"')
        if before:
            change(main, f"update P set {{ n: 9 }} {before}")
        main.cherry_pick(other.head)
        text = 'query q() { match { $p: P { k: "x" } } return { $p.a } }'
        assert main.query(text).to_pylist() == [{"p.a": 1000}]
        main.merge(other)
        assert main.query(text).to_pylist() == [{"p.a": 2000}]
