"""Clean-up: what goes, what stays, and what both look like afterwards."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from faults.world import problems
from omnigraph import errors
from unit.engine.aging_graph import DAY_S, Aging, Clock, add, numbered, people, versions


@pytest.fixture
def aging(tmp_path: Path) -> Aging:
    return Aging(tmp_path / "g.omni")


def test_the_newest_commits_of_each_branch_stay_and_the_others_go(aging: Aging) -> None:
    graph = aging.create()
    main = graph.branch()
    add(main, *numbered(1, 20))
    review = graph.create_branch("review", source=graph.snapshot(10))
    add(review, "r1", "r2")
    aging.later()
    add(main, "new")
    aging.later()
    done = graph.cleanup(keep=5, dry_run=False)
    assert done.errors == ()
    assert done.oldest == {"main": 17, "review": 8}
    again = aging.open()
    assert versions(again.branch()) == [21, 20, 19, 18, 17]
    assert versions(again.branch("review")) == [12, 11, 10, 9, 8]
    assert people(again.branch()) == ["new", *numbered(1, 20)]
    assert people(again.snapshot(17)) == list(numbered(1, 17))
    assert people(again.snapshot(8, branch="review")) == list(numbered(1, 8))
    assert list(problems(again)) == []


def test_a_commit_that_several_branches_had_counts_once(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 10))
    for number in range(5):
        add(graph.create_branch(f"b{number}"), f"n{number}")
    graph.create_branch("old", source=graph.snapshot(4))
    aging.later()
    # Each branch keeps its newest commit; `old` keeps version 4 of main, and main version 10.
    assert graph.cleanup(keep=1).commits == 11 - 2
    assert graph.cleanup(keep=1, dry_run=False).commits == 11 - 2
    assert graph.cleanup(keep=1, dry_run=False).commits == 0


def test_commits_after_one_of_the_future_grow_old_and_go(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 3))
    believed = aging.clock
    aging.clock = Clock(ahead_s=(73 * 365 + 0.5) * DAY_S)
    add(aging.open().branch(), "future")
    aging.clock = believed
    again = aging.open()
    (notice,) = again.check().notices
    assert notice.where.endswith("/00000000000000000004.json")
    assert again.branch().head.id in notice.message
    assert "stamped 26645 days after it was stored" in notice.message
    add(again.branch(), *numbered(5, 9))
    aging.later()
    add(again.branch(), "new")
    aging.later()
    assert again.cleanup(keep=1, dry_run=False).oldest == {"main": 10}
    assert people(again.branch()) == ["future", "new", *numbered(1, 3), *numbered(5, 9)]
    assert list(problems(aging.open())) == []


def test_a_dry_run_tells_exactly_what_a_real_run_does(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 12))
    gone = graph.create_branch("gone")
    add(gone, "g1", "g2")
    graph.delete_branch("gone")
    aging.later()
    before = aging.files()
    told = graph.cleanup(keep=3)
    assert aging.files() == before
    done = graph.cleanup(keep=3, dry_run=False)
    assert {**told.to_json(), "dry_run": False} == done.to_json()
    after = aging.files()
    added = set(after) - set(before)
    assert sum(size for name, size in before.items() if name not in after) == done.bytes > 0
    assert len(set(before) - set(after)) == done.objects
    fence = "__manifest/main.0/00000000000000000013.json"
    stated = {name for name in added if "/floors/" in name or "/sweeps/" in name}
    assert added - stated == {fence}
    assert graph.cleanup(keep=3, dry_run=False).objects == 0


def test_repeated_clean_ups_keep_the_same_commits(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    for _ in range(4):
        aging.later()
        graph.cleanup(keep=3, dry_run=False)
        assert versions(aging.open().branch()) == [6, 5, 4]
    head = graph.branch().head
    aging.later()
    assert graph.cleanup(keep=3, dry_run=False).objects == 0
    # Where nothing is removed, nothing is fenced off.
    assert graph.branch().head == head


def test_what_is_older_than_a_time_goes_but_for_what_was_in_force_then(aging: Aging) -> None:
    graph = aging.create()
    main = graph.branch()
    for name in numbered(1, 6):
        add(main, name)
        aging.later(10)
    report = graph.cleanup(older_than=timedelta(days=25), dry_run=False)
    # Versions 5 and 6 are 20 and 10 days old; version 4 was the newest one 25 days ago.
    assert report.oldest == {"main": 4}
    assert report.commits == 4
    assert people(graph.snapshot(4)) == list(numbered(1, 4))


def test_with_both_bounds_a_commit_goes_only_when_it_is_beyond_both(aging: Aging) -> None:
    graph = aging.create()
    for name in numbered(1, 6):
        add(graph.branch(), name)
        aging.later(10)
    assert graph.cleanup(keep=5, older_than=15 * DAY_S).oldest == {"main": 2}
    assert graph.cleanup(keep=1, older_than=35 * DAY_S).oldest == {"main": 3}


def test_the_head_always_stays(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada", "bob")
    aging.later(1000)
    assert graph.cleanup(older_than=0, dry_run=False).oldest == {"main": 2}
    assert people(aging.open().branch()) == ["ada", "bob"]
    assert versions(graph.branch()) == [2]


def test_what_was_superseded_within_the_grace_stays(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 5))
    aging.later(30)
    add(graph.branch(), "late1", "late2")
    report = graph.cleanup(keep=1, dry_run=False)
    # Version 5 is a month old, and somebody may have it open since a minute ago.
    assert report.oldest == {"main": 5}
    assert people(graph.snapshot(5)) == list(numbered(1, 5))


def test_rows_that_a_writer_staged_lately_stay_and_old_ones_go(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    stray = next((aging.folder / "t").glob("Person-*.lance/data")) / "stray.lance"
    stray.write_bytes(b"staged")
    assert graph.cleanup(keep=1, dry_run=False).objects == 0
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    assert not stray.exists()


def test_a_collected_commit_is_told_as_that_everywhere(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    old = graph.snapshot(2)
    old_commit = old.commit
    aging.later()
    graph.cleanup(keep=2, dry_run=False)
    other = aging.open()
    with pytest.raises(errors.SnapshotGoneError, match="version 2 of branch 'main'") as gone:
        other.snapshot(2)
    assert gone.value.oldest == 5
    with pytest.raises(errors.CommitNotFoundError):
        other.snapshot(old_commit)
    with pytest.raises(errors.SnapshotGoneError):
        other.snapshot(old_commit.created_at)
    with pytest.raises(errors.SnapshotGoneError):
        other.create_branch("late", source=old)
    with pytest.raises(errors.SnapshotGoneError):
        other.tag("late", old)
    assert other.branches() == ["main"]
    assert other.tags() == []


def test_an_open_snapshot_that_was_collected_says_so(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    aging.later()
    reader = aging.open()
    old = [reader.snapshot(2) for _ in range(3)]
    graph.cleanup(keep=2, dry_run=False)
    with pytest.raises(errors.SnapshotGoneError):
        people(old[0])
    with pytest.raises(errors.SnapshotGoneError):
        list(old[1].export())
    with pytest.raises(errors.SnapshotGoneError):
        old[2].to_arrow("Person")
    assert len(people(reader.branch())) == 6


def test_a_snapshot_of_a_deleted_and_collected_branch_says_so(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    add(graph.create_branch("review"), "bob")
    reader = aging.open()
    held = reader.branch("review").snapshot()
    graph.delete_branch("review")
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    with pytest.raises(errors.SnapshotGoneError, match="with its branch"):
        people(held)


def test_deleting_a_branch_frees_its_storage(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 3))
    before = aging.files()
    review = graph.create_branch("review")
    review.load(
        [{"type": "Note", "data": {"text": "x" * 100_000}} for _ in range(20)], mode="append"
    )
    add(review, "r1", "r2")
    graph.delete_branch("review")
    assert graph.cleanup(keep=100, dry_run=False).objects == 0
    aging.later()
    done = graph.cleanup(keep=100, dry_run=False)
    assert done.bytes > 0
    left = set(aging.files()) - set(before)
    # The names and ends of branches are never forgotten: an old handle must not write on.
    kept = re.compile(r"__manifest/(branches/review|review\.\w+/floors|sweeps|main\.0)/")
    assert all(kept.match(name) for name in left)
    assert list(problems(aging.open())) == []
    assert graph.create_branch("review").count("Note") == 0


def test_a_tag_keeps_its_commit_and_frees_it_when_it_goes(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 8))
    tag = graph.tag("v1", graph.snapshot(3))
    assert (tag.name, tag.version, tag.branch) == ("v1", 3, "main")
    aging.later()
    graph.cleanup(keep=2, dry_run=False)
    other = aging.open()
    assert people(other.snapshot("v1")) == list(numbered(1, 3))
    assert other.commit(tag.commit_id).version == 3
    assert people(other.snapshot(tag.commit_id)) == list(numbered(1, 3))
    assert people(other.create_branch("from-tag", source=other.snapshot("v1"))) == list(
        numbered(1, 3)
    )
    assert list(problems(other)) == []
    other.delete_branch("from-tag")
    other.delete_tag("v1")
    with pytest.raises(errors.CommitNotFoundError, match="a tag or a commit"):
        other.snapshot("v1")
    aging.later()
    assert graph.cleanup(keep=2, dry_run=False).bytes > 0
    with pytest.raises(errors.CommitNotFoundError):
        aging.open().snapshot(tag.commit_id)
    assert list(problems(aging.open())) == []


def test_a_branch_without_commits_keeps_what_it_started_from(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 4))
    graph.create_branch("lazy")
    add(graph.branch(), *numbered(5, 9))
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    other = aging.open()
    lazy = other.branch("lazy")
    assert people(lazy) == list(numbered(1, 4))
    assert versions(lazy) == [4]
    add(lazy, "own")
    assert people(aging.open().branch("lazy")) == ["own", *numbered(1, 4)]
    assert list(problems(other)) == []


def test_a_policy_without_bounds_or_with_odd_ones_is_refused(aging: Aging) -> None:
    graph = aging.create()
    for odd in ({}, {"keep": 0}, {"keep": -1}, {"older_than": -1}, {"older_than": "7d"}):
        with pytest.raises(errors.InvalidArgumentError):
            graph.cleanup(**odd)
    for grace in (-1, float("inf"), True):
        with pytest.raises(errors.InvalidArgumentError, match="grace"):
            graph.cleanup(keep=1, grace=grace)


def test_a_shorter_grace_costs_readers_what_goes_and_no_commit(aging: Aging) -> None:
    graph, other = aging.create(), aging.open()
    add(graph.branch(), *numbered(1, 3))
    deleted = graph.create_branch("deleted")
    add(deleted, "d")
    held, dead = other.snapshot(2), other.branch("deleted").snapshot()
    graph.delete_branch("deleted")
    assert graph.cleanup(keep=1, dry_run=False).objects == 0
    done = graph.cleanup(keep=1, dry_run=False, grace=0)
    assert (done.commits, done.oldest, done.errors) == (3, {"main": 3}, ())
    for gone in (held, dead):
        with pytest.raises(errors.SnapshotGoneError):
            people(gone)
        with pytest.raises(errors.SnapshotGoneError):
            other.create_branch("again", source=gone)
    add(other.branch(), "next")
    assert people(aging.open().branch()) == ["next", *numbered(1, 3)]
    assert list(problems(aging.open())) == []


def test_a_version_that_should_stay_and_cannot_be_read_stops_the_clean_up(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 4))
    aging.later()
    version = int(graph.snapshot(4).at.pins["node:Person"].version, 16)
    next(aging.folder.rglob(f"d{version}.manifest")).unlink()
    before = aging.files()
    with pytest.raises(errors.CorruptObjectError, match="is kept and cannot be read"):
        aging.open().cleanup(keep=1, dry_run=False)
    assert aging.files() == before


def test_a_feed_that_fell_behind_is_told_the_first_commit_it_cannot_read(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    behind = graph.branch().changes(start=f"after:{graph.snapshot(1).commit.id}", commits_max=1)
    near = graph.branch().changes(start=f"after:{graph.snapshot(5).commit.id}", commits_max=1)
    aging.later()
    graph.cleanup(keep=3, dry_run=False)
    other = aging.open().branch()
    with pytest.raises(errors.ChangeFeedGapError):
        other.changes(cursor=behind.cursor)
    assert other.changes(cursor=near.cursor).caught_up
    oldest, second = list(other.commits())[-1], list(other.commits())[-2]
    assert aging.open().commit_changes(second.id).changes
    with pytest.raises(
        (errors.ChangeFeedGapError, errors.CommitNotFoundError, errors.HistoryGoneError)
    ):
        aging.open().commit_changes(oldest.id)
