"""Clean-up beside programs that hold snapshots: what nobody holds cannot be referred to again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faults.world import SCHEMA, problems
from omnigraph import Branch, Commit, Graph, Snapshot, errors, versioning
from omnigraph.engine import merge_operations
from omnigraph.storage.objects import layout
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.retention_roots import RetentionRoots
from omnigraph.writers.merge.three_way import merge_three_way
from unit.engine.aging_graph import Aging, add, numbered, people

Use = Callable[[Graph, Snapshot], object]

USES: dict[str, Use] = {
    "branch": lambda graph, held: graph.create_branch("late", source=held),
    "tag": lambda graph, held: graph.tag("late", held),
    "merge": lambda graph, held: graph.branch().merge(held),
}


@pytest.fixture
def aging(tmp_path: Path) -> Aging:
    return Aging(tmp_path / "g.omni")


@pytest.fixture(params=USES)
def use(request: pytest.FixtureRequest) -> Use:
    return USES[request.param]


def _deleted(graph: Graph) -> Snapshot:
    """A snapshot of a branch that is deleted."""
    add(graph.branch(), "ada")
    review = graph.create_branch("review")
    add(review, "r1", "r2")
    held = review.snapshot()
    graph.delete_branch("review")
    return held


def _require_whole(aging: Aging) -> None:
    """Everything can be read, and cleaned up again."""
    graph = aging.open()
    assert graph.branches() == ["main"]
    assert graph.tags() == []
    assert people(graph.branch()) == ["ada"]
    graph.cleanup(keep=1, dry_run=False)
    assert list(problems(aging.open())) == []


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_snapshot_of_a_branch_deleted_before_the_grace_is_no_source(
    aging: Aging, use: Use, is_collected: bool
) -> None:
    graph = aging.create()
    held = _deleted(graph)
    aging.later()
    if is_collected:
        graph.cleanup(keep=1, dry_run=False)
    with pytest.raises(errors.CommitNotFoundError):
        use(graph, held)
    _require_whole(aging)


def test_a_snapshot_of_a_branch_deleted_lately_is_a_source(aging: Aging, use: Use) -> None:
    graph = aging.create()
    held = _deleted(graph)
    aging.later(days=0.5)
    use(graph, held)
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    other = aging.open()
    states = [other.branch(name) for name in other.branches()]
    found = [people(state) for state in [*states, *(other.snapshot(t.name) for t in other.tags())]]
    assert ["ada", "r1", "r2"] in found
    assert list(problems(other)) == []
    assert not any(name.startswith(layout.LEASES) for name in aging.files())


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("keep", [1, 50])
def test_nobody_refers_to_a_deleted_branch_while_it_is_removed(
    aging: Aging, use: Use, keep: int, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = aging.create()
    held = _deleted(graph)
    sweep = Collector._sweep
    refused = []

    def overtaken(self: Collector, *args: object, **options: object) -> object:
        ahead = aging.clock.ahead_s
        # The clock of a slow one says that the branch was deleted just now.
        aging.clock.ahead_s = 0.0 if is_slow else ahead
        with pytest.raises(errors.CommitNotFoundError) as told:
            use(graph, held)
        aging.clock.ahead_s = ahead
        refused.append(told.value)
        return sweep(self, *args, **options)  # type: ignore[arg-type]

    aging.later()
    with monkeypatch.context() as patch:
        patch.setattr(Collector, "_sweep", overtaken)
        assert graph.cleanup(keep=keep, dry_run=False).objects > 0
    assert len(refused) == 1
    _require_whole(aging)


@contextmanager
def _overtaken(aging: Aging, graph: Graph) -> Iterator[list[int]]:
    """A clean-up between the preparation of the next write and its commit; what it let go."""
    publishers = type(graph._session.resources.publishers)
    of = publishers.get_publisher
    done: list[int] = []

    def overtaken(self: object, stream: object) -> object:
        if not done:
            done.append(aging.open().cleanup(keep=1, dry_run=False).commits)
        return of(self, stream)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishers, "get_publisher", overtaken)
        yield done
    assert done[0] > 0
    assert not any(name.startswith(layout.LEASES) for name in aging.files())


def test_a_merge_keeps_what_it_merges_until_it_is_a_commit(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    review = graph.create_branch("review")
    add(review, "r1", "r2")
    held = review.snapshot()
    add(review, *numbered(1, 3))
    aging.later()
    with _overtaken(aging, graph):
        assert graph.branch().merge(held).outcome == "fast_forward"
    assert people(aging.open().branch()) == ["ada", "r1", "r2"]
    assert list(problems(aging.open())) == []


def test_a_cherry_pick_keeps_what_it_picks_until_it_is_a_commit(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    review = graph.create_branch("review")
    add(review, "r1")
    picked = review.head
    add(review, *numbered(1, 3))
    aging.later()
    with _overtaken(aging, graph):
        assert graph.branch().cherry_pick(picked).outcome == "cherry_picked"
    assert people(aging.open().branch()) == ["ada", "r1"]
    assert list(problems(aging.open())) == []


def test_a_revert_keeps_what_it_brings_back_until_it_is_a_commit(tmp_path: Path) -> None:
    wide = SCHEMA + "node Extra { name: String @key }\n"
    aging = Aging(tmp_path / "wide.omni", schema=wide)
    graph = aging.create()
    main = graph.branch()
    main.load([{"type": "Extra", "data": {"name": "x"}}], mode="append")
    main.apply_schema(SCHEMA)
    drop = main.head
    add(main, *numbered(1, 3))
    aging.later()
    with _overtaken(aging, graph):
        assert main.revert(drop).outcome == "reverted"
    assert aging.open().branch().count("Extra") == 1
    assert list(problems(aging.open())) == []


@pytest.mark.parametrize("act", [Branch.revert, Branch.cherry_pick])
def test_a_commit_whose_parent_was_let_go_is_not_picked(
    aging: Aging, act: Callable[[Branch, Commit], object]
) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    aging.later()
    graph.cleanup(keep=3, dry_run=False)
    main = aging.open().branch()
    *_, oldest = main.commits()
    with pytest.raises(
        errors.SnapshotGoneError, match=f"the commit before '{oldest.id}' was collected"
    ):
        act(main, oldest)


def test_a_plan_that_a_clean_up_overtakes_says_what_is_gone(
    aging: Aging, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    review = graph.create_branch("review")
    add(review, "r1", "r2")
    held = review.snapshot()
    add(review, *numbered(1, 3))
    add(graph.branch(), "bob")
    aging.later()

    def overtaken(*args: Any, **options: Any) -> object:
        aging.open().cleanup(keep=1, dry_run=False)
        return merge_three_way(*args, **options)

    monkeypatch.setattr(merge_operations, "merge_three_way", overtaken)
    with pytest.raises(errors.SnapshotGoneError, match=f"commit '{held.at.commit}' was collected"):
        aging.open().branch().plan_merge(held.at.commit)
    assert not any(name.startswith(layout.LEASES) for name in aging.files())


def test_a_hold_that_was_left_behind_ends_with_the_grace(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    aging.later()
    branches = graph._session.resources.branches
    with branches.leases.acquire(graph.snapshot(2).at):
        graph.cleanup(keep=1, dry_run=False)
        (left,) = (name for name in aging.files() if name.startswith(layout.LEASES))
        data = (aging.folder / left).read_bytes()
        manifests = sum("Person" in name and "/_versions/d" in name for name in aging.files())
    (aging.folder / left).write_bytes(data)
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    after = aging.files()
    assert left not in after
    assert sum("Person" in name and "/_versions/d" in name for name in after) < manifests
    assert list(problems(aging.open())) == []


def test_what_a_recreated_name_stood_for_lately_can_still_be_read(aging: Aging) -> None:
    graph = aging.create()
    held = _deleted(graph)
    graph.create_branch("review")
    for path in aging.folder.rglob("*"):
        os.utime(path, (0, 0))
    # By their files everything is old; by its event the branch was deleted just now.
    aging.open().cleanup(keep=1, dry_run=False)
    assert people(held) == ["ada", "r1", "r2"]


def test_a_commit_that_only_another_branch_keeps_can_be_named(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    keeper = graph.create_branch("keeper")
    old = next(commit for commit in keeper.commits() if commit.version == 4)
    add(graph.branch(), *numbered(7, 20))
    aging.later()
    graph.cleanup(keep=6, dry_run=False)
    other = aging.open()
    late = other.create_branch("late", source=other.snapshot(old.id))
    assert people(late) == list(numbered(1, 4))
    assert [commit.version for commit in late.commits()] == [4, 3, 2, 1]
    other.tag("old", old.id)
    other.delete_branch("keeper")
    aging.later()
    other.cleanup(keep=2, dry_run=False)
    again = aging.open()
    assert people(again.branch("late")) == people(again.snapshot("old")) == list(numbered(1, 4))
    assert list(problems(again)) == []


def _named(branch: Branch, *names: str) -> None:
    for name in names:
        branch.load([{"type": "T00", "data": {"name": name}}], mode="append")


@pytest.mark.parametrize("cleanups", [1, 2])
def test_a_base_on_a_deleted_branch_of_many_types_can_be_folded(
    tmp_path: Path, cleanups: int
) -> None:
    types = "".join(f"node T{number:02} {{ name: String @key }}\n" for number in range(70))
    aging = Aging(tmp_path / "wide.omni", schema=types)
    graph = aging.create()
    main = graph.branch()
    _named(main, "a")
    other, merged = graph.create_branch("other"), graph.create_branch("merged")
    _named(merged, "f1", "f2", "f3")
    _named(main, "m1")
    _named(other, "o1")
    other.merge("merged")
    main.merge("merged", delete_branch=True)
    _named(main, "m2")
    _named(other, "o2")
    for _ in range(cleanups):
        aging.later()
        graph.cleanup(keep=2, dry_run=False)
    found = aging.open().branch()
    assert found.plan_merge("other").base.branch == "merged"
    assert found.merge("other").outcome == "merged"
    assert found.count("T00") == 8
    assert list(problems(aging.open())) == []


@contextmanager
def _replaced(aging: Aging, source: str) -> Iterator[None]:
    """The next commit that is asked for is superseded and let go before it is used."""
    require = RetentionRoots.require_retained
    done: list[int] = []

    def overtaken(self: RetentionRoots, at: versioning.Snapshot) -> int:
        if not done:
            done.append(0)
            other = aging.open()
            add(other.branch(source), "newer")
            done[0] = other.cleanup(keep=1, dry_run=False).commits
        return require(self, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RetentionRoots, "require_retained", overtaken)
        yield
    assert done[0] > 0


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_merge_of_a_branch_that_is_overtaken_by_a_clean_up_merges_its_newest_commit(
    tmp_path: Path, *, is_deleted: bool
) -> None:
    aging = Aging(tmp_path / "g.omni", grace_s=0.0)
    graph = aging.create()
    add(graph.create_branch("side"), "s1")
    add(graph.branch(), "ada")
    with _replaced(aging, "side"):
        done = graph.branch().merge("side", delete_branch=is_deleted)
    assert done.branch_deleted is (True if is_deleted else None)
    assert people(aging.open().branch()) == ["ada", "newer", "s1"]
    assert list(problems(aging.open())) == []


@pytest.mark.parametrize("is_tag", [False, True])
def test_a_name_for_the_newest_commit_is_given_to_that_which_is_newest_after_a_clean_up(
    tmp_path: Path, *, is_tag: bool
) -> None:
    aging = Aging(tmp_path / "g.omni", grace_s=0.0)
    graph = aging.create()
    add(graph.branch(), "ada")
    with _replaced(aging, "main"):
        (graph.tag if is_tag else graph.create_branch)("late")
    assert people(aging.open().snapshot("late")) == ["ada", "newer"]
    assert list(problems(aging.open())) == []


@pytest.mark.parametrize("is_commit", [False, True])
def test_a_commit_that_was_given_itself_is_gone_after_a_clean_up(
    tmp_path: Path, use: Use, *, is_commit: bool
) -> None:
    aging = Aging(tmp_path / "g.omni", grace_s=0.0)
    graph = aging.create()
    add(graph.branch(), "ada")
    side = graph.create_branch("side")
    add(side, "s1")
    held = side.snapshot()
    given: Any = held.commit if is_commit else held
    with _replaced(aging, "side"), pytest.raises(errors.SnapshotGoneError):
        use(graph, given)
