"""What callers name: each method that takes a state takes it in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from omnigraph import Branch, Commit, Graph, errors
from omnigraph.engine.refs import StateRef
from unit.engine.company import ages, company, person


@dataclass(frozen=True)
class World:
    """Main after its third commit, with a fourth one; the third is tagged and a branch."""

    graph: Graph
    main: Branch
    third: Commit


@pytest.fixture
def world() -> Iterator[World]:
    """A graph in which Cyd came with the third commit and Dov with the fourth."""
    with company() as graph:
        main = graph.branch()
        third = main.load([person("Cyd")], mode="append").commit
        assert third is not None
        graph.tag("release")
        graph.create_branch("review")
        main.load([person("Dov")], mode="append")
        yield World(graph, main, third)


_WAYS: dict[str, Callable[[World], StateRef]] = {
    "branch": lambda world: world.graph.branch("review"),
    "branch name": lambda _: "review",
    "tag": lambda _: "release",
    "snapshot": lambda world: world.graph.snapshot(world.third.id),
    "commit": lambda world: world.third,
    "id": lambda world: world.third.id,
    "version": lambda world: world.third.version,
    "version as text": lambda world: str(world.third.version),
    "time": lambda world: world.third.created_at,
    "time as text": lambda world: world.third.created_at.isoformat(timespec="microseconds"),
}


@pytest.fixture(params=_WAYS)
def given(request: pytest.FixtureRequest, world: World) -> StateRef:
    """The third commit, named in one way."""
    return _WAYS[request.param](world)


def test_every_method_that_names_a_state_takes_it_in_every_way(
    world: World, given: StateRef
) -> None:
    graph, main, third = world.graph, world.main, world.third
    assert graph.snapshot(given).commit == third
    assert graph.commit(given) == third
    assert [each.id for each in graph.commit_changes(given).changes] == ["Cyd"]
    assert graph.diff(given, "main").old == third
    assert graph.snapshot(0).diff(given).new == third
    assert main.diff(given).new == third
    assert graph.tag("other", given).commit_id == third.id
    assert graph.create_branch("again", source=given).head == third


def test_every_way_of_naming_a_commit_can_be_merged_picked_and_reverted(
    world: World, given: StateRef
) -> None:
    empty = world.graph.create_branch("empty", source=1)
    assert set(ages(empty)) == {"Ada", "Bob"}
    assert empty.plan_cherry_pick(given).source == world.third.id
    assert empty.cherry_pick(given).outcome == "cherry_picked"
    other = world.graph.create_branch("other", source=1)
    assert other.plan_merge(given).outcome == "fast_forward"
    assert other.merge(given).parents[1] == world.third.id
    assert set(ages(other)) == {"Ada", "Bob", "Cyd"}
    assert world.main.plan_revert(given).source == world.third.id
    assert world.main.revert(given).outcome == "reverted"
    assert set(ages(world.main)) == {"Ada", "Bob", "Dov"}


def test_a_version_to_revert_is_one_of_the_branch(world: World) -> None:
    review = world.graph.branch("review")
    review.load([person("Eve")], mode="append")
    assert review.head.version == world.main.head.version
    review.revert(review.head.version)
    assert set(ages(review)) == {"Ada", "Bob", "Cyd"}


@pytest.mark.parametrize("given", [True, 1.5, b"main", None], ids=repr)
def test_what_is_not_a_state_is_refused_by_every_method(world: World, given: object) -> None:
    graph, main = world.graph, world.main
    methods: list[Callable[[StateRef], object]] = [
        graph.snapshot,
        graph.commit,
        graph.commit_changes,
        partial(graph.diff, "main"),
        main.diff,
        main.snapshot().diff,
        partial(graph.tag, "other"),
        lambda source: graph.create_branch("other", source=source),
        main.merge,
        main.revert,
        main.cherry_pick,
    ]
    for method in methods:
        with pytest.raises(errors.InvalidArgumentError, match="is not a state of a graph"):
            method(given)  # type: ignore[arg-type]  # wrong on purpose
