"""What reads of collected states answer: a shorter history, or an error that says what is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import Branch, Graph, Snapshot, errors
from unit.engine.aging_graph import Aging, add, numbered


@pytest.fixture
def aging(tmp_path: Path) -> Aging:
    return Aging(tmp_path / "g.omni")


def older(name: str, age: int) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "age": age}}


@pytest.fixture
def merged(aging: Aging) -> Graph:
    """A graph whose merged branch is deleted and cleaned up, while another keeps its records."""
    graph = aging.create()
    main = graph.branch()
    add(main, "p1")
    add(graph.create_branch("other"), "o1")
    review = graph.create_branch("review")
    add(review, "b1")
    review.load([older("p1", 40)], mode="merge")
    add(main, "p2")
    main.merge("review", delete_branch=True)
    add(main, "p3", "p4")
    aging.later()
    graph.cleanup(keep=50, dry_run=False)
    return aging.open()


def told(branch: Branch, who: str) -> list[tuple[str, str, bool]]:
    """The operations of a history, the branch of each, and whether it was a merge."""
    versions = branch.history("Person", who)
    return [(each.op, each.commit.branch, len(each.commit.parents) > 1) for each in versions]


def test_a_history_ends_where_a_merged_branch_was_cleaned_up(merged: Graph) -> None:
    main = merged.branch()
    assert told(main, "b1") == [("insert", "main", True)]
    assert told(main, "p1") == [("update", "main", True), ("insert", "main", False)]


def test_what_cannot_be_followed_is_blamed_on_the_merge(merged: Graph) -> None:
    main = merged.branch()
    merge, *_ = [commit for commit in main.commits() if len(commit.parents) > 1]
    assert set(main.blame("Person", "b1").values()) == {merge}
    blamed = main.blame("Person", "p1")
    assert blamed["age"] == merge
    assert blamed["name"] is not None
    assert blamed["name"].version == 1


@pytest.fixture(params=[0, 3], ids=["base kept", "base gone"])
def reader(aging: Aging, request: pytest.FixtureRequest) -> tuple[Graph, Snapshot]:
    """Somebody who holds a snapshot of a branch that was deleted and cleaned up since."""
    graph = aging.create()
    add(graph.branch(), "p1")
    add(graph.create_branch("review"), "b1")
    reader = aging.open()
    held = reader.branch("review").snapshot()
    graph.delete_branch("review")
    add(graph.branch(), *numbered(1, request.param))
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    return reader, held


@pytest.mark.parametrize(
    "ask",
    [
        lambda graph, held: graph.diff("main", held),
        lambda graph, held: graph.diff(held, "main"),
        lambda _, held: held.diff("main"),
        lambda graph, held: graph.branch().diff(held),
        lambda graph, held: graph.branch().merge(held),
        lambda graph, held: graph.branch().plan_merge(held),
    ],
    ids=["diff to", "diff from", "snapshot diff", "review", "merge", "plan"],
)
def test_a_collected_snapshot_is_told_as_that(
    reader: tuple[Graph, Snapshot], ask: Callable[[Graph, Snapshot], object]
) -> None:
    with pytest.raises((errors.CommitNotFoundError, errors.HistoryGoneError)) as refused:
        ask(*reader)
    assert ".lance" not in str(refused.value)


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
@pytest.mark.parametrize("is_shared", [True, False])
def test_the_oldest_commit_has_nothing_left_to_be_compared_with(
    aging: Aging, verb: str, *, is_shared: bool
) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    if is_shared:
        # Whose history holds the records, not the tables.
        add(graph.create_branch("other"), "o1")
    add(graph.branch(), *numbered(7, 12))
    aging.later()
    graph.cleanup(keep=3, dry_run=False)
    main = aging.open().branch()
    *_, second, oldest = main.commits()
    with pytest.raises(errors.SnapshotGoneError) as refused:
        getattr(main, verb)(oldest)
    assert ".lance" not in str(refused.value)
    assert main.revert(second).outcome == "reverted"
