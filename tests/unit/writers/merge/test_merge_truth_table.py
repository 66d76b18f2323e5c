"""The truth table of merges: every operation on one side against every operation on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from omnigraph import Branch
from omnigraph.errors import MergeConflictError
from unit.writers.merge.merge_world import (
    ages,
    change,
    entities,
    four_people,
    person,
    problems,
    put,
    remove,
    set_age,
)


@dataclass(frozen=True)
class Operation:
    """What is done to a side; the number tells the two sides apart."""

    name: str
    run: Callable[[Branch, int], None]


def _nothing(branch: Branch, side: int) -> None:
    assert (branch.name, side) in {("review", 1), ("main", 1), ("main", 2)}


def _add_node(branch: Branch, side: int) -> None:
    put(branch, person("eve", age=side))


def _remove_node(branch: Branch, _: int) -> None:
    remove(branch, "alice")


def _add_edge(branch: Branch, _: int) -> None:
    change(branch, 'insert Knows { from: "alice", to: "carol" }')


def _remove_edge(branch: Branch, _: int) -> None:
    change(branch, 'delete Knows where from = "bob"')


def _set_property(branch: Branch, side: int) -> None:
    set_age(branch, "alice", 30 + side)


def _net_zero(branch: Branch, _: int) -> None:
    change(branch, 'insert Knows { from: "dan", to: "bob" }')
    change(branch, 'delete Knows where from = "dan"')


OPERATIONS = [
    Operation("noop", _nothing),
    Operation("add_node", _add_node),
    Operation("remove_node", _remove_node),
    Operation("add_edge", _add_edge),
    Operation("remove_edge", _remove_edge),
    Operation("set_property", _set_property),
    Operation("net_zero_edge", _net_zero),
]
NAMES = [operation.name for operation in OPERATIONS]
BY_NAME = {operation.name: operation for operation in OPERATIONS}

# By source and target: what is not listed is a merge.
CONFLICTS = {
    ("add_node", "add_node"): "divergent_insert",
    ("remove_node", "add_edge"): "orphan_edge",
    ("remove_node", "set_property"): "delete_vs_update",
    ("add_edge", "remove_node"): "orphan_edge",
    ("set_property", "remove_node"): "delete_vs_update",
    ("set_property", "set_property"): "divergent_update",
}


def _outcome(source: str, target: str) -> str:
    if source == "noop":
        return "already_up_to_date"
    return "fast_forward" if target == "noop" else "merged"


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_a_cell_of_the_truth_table(source: str, target: str) -> None:
    with four_people() as graph:
        main, review = graph.branch(), graph.create_branch("review")
        BY_NAME[source].run(review, 1)
        BY_NAME[target].run(main, 2)
        before, head = entities(main), main.head
        kind = CONFLICTS.get((source, target))
        if kind is not None:
            with pytest.raises(MergeConflictError) as caught:
                main.merge("review")
            assert [each.kind for each in caught.value.conflicts] == [kind]
            assert (entities(main), main.head) == (before, head)
            return
        result = main.merge("review")
        assert result.outcome == _outcome(source, target)
        assert entities(main) == _expected(source, target)
        assert (result.commit is None) == (source == "noop")
        if result.commit is not None:
            assert result.parents == (head.id, review.head.id)
        assert main.merge("review").outcome == "already_up_to_date"
        assert problems(graph) == []


def _expected(source: str, target: str) -> set[str]:
    """Both operations, one after the other, on one branch."""
    with four_people() as graph:
        main = graph.branch()
        for side, name in ((2, target), (1, source)):
            BY_NAME[name].run(main, side)
        return entities(main)


def test_both_parallel_edges_are_kept() -> None:
    with four_people() as graph:
        main, review = graph.branch(), graph.create_branch("review")
        for branch in (main, review):
            change(branch, 'insert Knows { from: "alice", to: "carol" }')
        main.merge(review)
        assert main.count("Knows") == 3


def test_changes_that_cancel_out_move_no_table() -> None:
    with four_people() as graph:
        main, review = graph.branch(), graph.create_branch("review")
        _net_zero(review, 1)
        set_age(review, "bob", 8)
        set_age(review, "bob", 9)
        before = main.snapshot()
        main.merge(review)
        pins, after = before.at.pins, main.snapshot().at.pins
        assert main.snapshot().version == before.version + 1
        assert after["edge:Knows"] == pins["edge:Knows"]
        assert after["node:Person"] != pins["node:Person"]
        assert ages(main)["bob"] == 9
