"""Plans of merges across schemas: they answer as the merge does, and write nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import Branch, Graph, errors
from unit.writers.merge.merge_world import new_graph, person, problems, put, set_age

START = """
node Person {
  name: String @key
  age: I32?
  nick: String? @unique
}
edge Knows: Person -> Person
"""
WIDER = """
node Person {
  name: String @key
  age: I32?
  nick: String? @unique
  email: String?
}
node City { name: String @key  code: String? @unique }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(0..1)
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph on disk, whose branch `review` has a type and a property more."""
    graph = new_graph(
        person("ada", age=1),
        person("bob"),
        {"edge": "Knows", "from": "ada", "to": "bob", "id": "k1"},
        schema=START,
        uri=str(tmp_path / "g.omni"),
    )
    review = graph.create_branch("review")
    review.apply_schema(WIDER)
    put(
        review,
        person("ada", age=1, email="a@x"),
        {"type": "City", "data": {"name": "Rome", "code": "r"}},
        {"edge": "LivesIn", "from": "ada", "to": "Rome", "id": "l1"},
    )
    return graph


def _files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _nothing(_: Branch) -> None:
    """Leave main as it was."""


def _touch(main: Branch) -> None:
    set_age(main, "bob", 7)


def _extend(main: Branch) -> None:
    main.apply_schema(START + "node Team { name: String @key }\n")
    put(main, {"type": "Team", "data": {"name": "red"}})


@pytest.mark.parametrize(
    ("ours", "outcome"), [(_nothing, "fast_forward"), (_touch, "merged"), (_extend, "merged")]
)
def test_a_plan_across_schemas_writes_nothing(
    graph: Graph, tmp_path: Path, ours: Callable[[Branch], None], outcome: str
) -> None:
    main = graph.branch()
    ours(main)
    before = _files(tmp_path)
    plan = main.plan_merge("review")
    assert _files(tmp_path) == before
    assert (plan.outcome, plan.conflicts) == (outcome, ())
    done = main.merge("review")
    assert (done.outcome, done.done) == (plan.outcome, plan.done)
    assert main.count("City") == main.count("LivesIn") == 1
    assert problems(graph) == []


def _delete_ada(main: Branch) -> None:
    main.mutate('query q() { delete Person where name = "ada" }')


def test_a_conflict_across_schemas_is_found_without_a_write(graph: Graph, tmp_path: Path) -> None:
    main = graph.branch()
    _delete_ada(main)
    before = _files(tmp_path)
    planned = main.plan_merge("review", prefer="ours")
    assert [(each.kind, each.message) for each in planned.conflicts] == [
        (
            "orphan_edge",
            "edge LivesIn 'l1' of theirs needs Person 'ada' as its source, which ours deleted",
        )
    ]
    with pytest.raises(errors.MergeConflictError) as caught:
        main.merge("review", prefer="ours")
    assert caught.value.conflicts == planned.conflicts
    assert _files(tmp_path) == before


def test_a_plan_of_a_pick_or_a_revert_answers_as_it_does_and_writes_nothing(
    graph: Graph, tmp_path: Path
) -> None:
    main, review = graph.branch(), graph.branch("review")
    main.apply_schema(WIDER)
    before = _files(tmp_path)
    picked = main.plan_cherry_pick(review.head)
    assert _files(tmp_path) == before
    assert (picked.outcome, picked.base.id) == ("cherry_picked", review.head.parents[0])
    assert main.cherry_pick(review.head).done == picked.done
    before = _files(tmp_path)
    reverted = main.plan_revert(main.head)
    assert _files(tmp_path) == before
    assert (reverted.outcome, reverted.base) == ("reverted", main.head)
    assert main.revert(main.head).done == reverted.done
    assert problems(graph) == []


def test_a_plan_of_a_revert_finds_what_changed_since(graph: Graph, tmp_path: Path) -> None:
    main = graph.branch()
    set_age(main, "ada", 2)
    undone = main.head
    set_age(main, "ada", 3)
    before = _files(tmp_path)
    planned = main.plan_revert(undone)
    assert [each.kind for each in planned.conflicts] == ["divergent_update"]
    assert main.plan_revert(undone, prefer="ours").outcome == "nothing_to_do"
    assert _files(tmp_path) == before
    with pytest.raises(errors.MergeConflictError) as caught:
        main.revert(undone)
    assert caught.value.conflicts == planned.conflicts


def test_a_pick_of_nothing_new_writes_nothing_but_its_holds(graph: Graph, tmp_path: Path) -> None:
    main = graph.branch()
    main.merge("review")
    before = _files(tmp_path)
    assert main.cherry_pick(graph.branch("review").head).outcome == "nothing_to_do"
    assert _files(tmp_path) == before
