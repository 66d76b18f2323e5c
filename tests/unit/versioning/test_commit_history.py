"""Commits and snapshots by branch, id, version and time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from omnigraph.errors import CommitNotFoundError, CorruptObjectError, SnapshotGoneError
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    MAIN,
    Record,
    Settings,
    Signature,
    Stream,
    Transaction,
    commit_history,
)
from omnigraph.versioning.record import generate_commit_id
from omnigraph.versioning.retention_floors import Floors
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import SmallGraph, inserting, memory_graph


@dataclass
class Clock:
    """A clock that is set by hand, in microseconds."""

    now: int = 1_000_000_000_000

    def __call__(self) -> int:
        return self.now


def _ticking(step: int = 1000) -> tuple[SmallGraph, Clock]:
    clock = Clock()
    graph = memory_graph(Settings(now_us=clock, pause=lambda _: None))
    for number in range(1, 8):
        clock.now += step
        graph.insert({f"p{number}": "x"})
    return graph, clock


def test_commits_are_listed_newest_first_with_linear_parents(fast_graph: SmallGraph) -> None:
    made = [fast_graph.insert({f"p{number}": "x"}) for number in range(70)]
    listed = list(fast_graph.reopened().history.iter_commits(MAIN))
    assert listed[:-1] == made[::-1]
    assert [record.parent for record in listed] == [*(r.commit for r in listed[1:]), None]
    assert [record.seq for record in fast_graph.history.iter_commits(MAIN, below=3)] == [2, 1, 0]


def test_a_snapshot_stays_when_its_branch_moves(graph: SmallGraph) -> None:
    graph.insert({"ada": "1"})
    before = graph.branches.read_head("main").snapshot
    graph.insert({"bob": "2"})
    assert graph.rows(before) == {"ada": "1"}
    assert graph.rows(graph.reopened().history.read_by_commit(before.commit)) == {"ada": "1"}
    assert graph.rows(graph.reopened().history.read_by_seq(MAIN, before.seq)) == {"ada": "1"}


def test_every_commit_is_found_by_its_id_on_every_branch(fast_graph: SmallGraph) -> None:
    records = [fast_graph.insert({f"p{number}": "x"}) for number in range(30)]
    stream = fast_graph.branches.create("review", at=fast_graph.history.read_by_seq(MAIN, 11))
    records += [fast_graph.insert({f"q{number}": "x"}, stream) for number in range(9)]
    again = fast_graph.reopened()
    assert [again.history.read_commit(record.commit) for record in records] == records
    assert again.history.read_by_commit(records[-1].commit).stream == stream


@pytest.mark.parametrize("commit", ["", "nonsense", "U" * 26, "0" * 26, "7" + "Z" * 25])
def test_an_unknown_commit_is_not_found(fast_graph: SmallGraph, commit: str) -> None:
    with pytest.raises(CommitNotFoundError, match="no live branch holds commit"):
        fast_graph.history.read_by_commit(commit)


@pytest.mark.slow
def test_finding_a_commit_takes_a_logarithmic_number_of_reads(fast_graph: SmallGraph) -> None:
    records = [fast_graph.insert({f"p{number}": "x"}) for number in range(1_000)]
    again = fast_graph.reopened()
    assert isinstance(again.objects, MemoryObjects)
    again.objects.calls.clear()
    again.history.read_by_commit(records[123].commit)
    with pytest.raises(CommitNotFoundError):
        again.history.read_by_commit(generate_commit_id(records[123].created_at))
    assert len(again.objects.calls) < 25


@pytest.mark.parametrize("step", [1000, 1])
def test_a_time_finds_the_commit_that_was_the_newest_then(step: int) -> None:
    graph, clock = _ticking(step)
    start = clock.now - 7 * step
    for offset in range(8 * step):
        seq = min(offset // step, 7)
        assert graph.history.read_by_time(MAIN, start + offset).seq == seq
    with pytest.raises(CommitNotFoundError, match="no commit as old as"):
        graph.history.read_by_time(MAIN, start - 1)


def test_times_rise_along_a_branch_even_when_the_clock_stands_or_goes_back() -> None:
    graph, clock = _ticking()
    for number in range(5):
        clock.now -= 10_000
        graph.insert({f"q{number}": "x"})
    records = list(graph.history.iter_commits(MAIN))[::-1]
    times = [record.created_at for record in records]
    assert times == sorted(set(times))
    assert [graph.history.read_by_time(MAIN, at).commit for at in times] == [
        r.commit for r in records
    ]
    assert [graph.history.read_commit(record.commit) for record in records] == records


def test_a_branch_has_the_times_of_the_commits_it_started_from() -> None:
    graph, clock = _ticking()
    stream = graph.branches.create("review", at=graph.history.read_by_seq(MAIN, 3))
    clock.now += 5_000
    graph.insert({"q": "x"}, stream)
    assert graph.history.read_by_time(stream, clock.now - 1).seq == 3
    assert graph.history.read_by_time(stream, clock.now).seq == 4
    assert list(graph.people(stream)) == ["p1", "p2", "p3", "q"]


@pytest.mark.parametrize("seq", [-1, 8, 99])
def test_an_unknown_version_is_not_found(seq: int) -> None:
    graph, _ = _ticking()
    with pytest.raises(CommitNotFoundError, match=f"has no version {seq}"):
        graph.history.read_by_seq(MAIN, seq)


def test_collected_commits_are_not_found_and_end_a_listing() -> None:
    graph, clock = _ticking()
    Floors(graph.objects).put(MAIN.id, 4)
    graph.objects.delete(layout.build_record_path(MAIN.id, seq) for seq in range(4))
    again = graph.reopened()
    assert [record.seq for record in again.history.iter_commits(MAIN)] == [7, 6, 5, 4]
    assert again.history.read_by_time(MAIN, clock.now - 2000).seq == 5
    with pytest.raises(CommitNotFoundError):
        again.history.read_by_time(MAIN, clock.now - 6000)
    with pytest.raises(SnapshotGoneError, match="version 2 of branch 'main' was collected") as gone:
        again.history.read_by_seq(MAIN, 2)
    assert gone.value.oldest == again.history.find_oldest(MAIN) == 4


def test_a_record_that_is_missing_without_having_been_collected_is_damage() -> None:
    graph, _ = _ticking()
    graph.objects.delete(layout.build_record_path(MAIN.id, seq) for seq in range(4))
    with pytest.raises(CorruptObjectError, match="it was not collected"):
        list(graph.reopened().history.iter_commits(MAIN))


def test_a_request_is_recognised_by_its_key(fast_graph: SmallGraph) -> None:
    transaction = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    keyed = Transaction(
        transaction.snapshot,
        transaction.effects,
        transaction.changes,
        signature=Signature(actor="ada", key="request-7"),
    )
    record = fast_graph.committer.publish(keyed)
    fast_graph.insert({"bob": "2"})
    again = fast_graph.reopened()
    assert again.history.find_by_key(MAIN, "request-7") == record
    assert again.history.find_by_key(MAIN, "request-8") is None


def test_a_key_is_looked_for_in_the_newest_commits_of_its_own_branch_only(
    fast_graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _keyed(fast_graph, "ada", "request-7", MAIN)
    stream = fast_graph.branches.create("review", at=fast_graph.head())
    assert fast_graph.history.find_by_key(stream, "request-7") is None
    own = _keyed(fast_graph, "bob", "request-7", stream)
    assert fast_graph.history.find_by_key(stream, "request-7") == own
    monkeypatch.setattr(commit_history, "KEY_RECORDS_MAX", 3)
    for number in range(3):
        assert fast_graph.history.find_by_key(MAIN, "request-7") == made
        fast_graph.insert({f"p{number}": "x"})
    assert fast_graph.history.find_by_key(MAIN, "request-7") is None


def _keyed(graph: SmallGraph, name: str, key: str, stream: Stream) -> Record | None:
    transaction = inserting(graph, {name: "1"})(graph.head(stream))
    return graph.committer.publish(replace(transaction, signature=Signature(key=key)))


@pytest.mark.parametrize("missing", [3, 35])
def test_a_gap_in_a_line_is_damage(fast_graph: SmallGraph, missing: int) -> None:
    for number in range(40):
        fast_graph.insert({f"p{number}": "x"})
    fast_graph.objects.delete([layout.build_record_path(MAIN.id, missing)])
    listed = fast_graph.reopened().history.iter_commits(MAIN)
    with pytest.raises(CorruptObjectError, match=f"{missing}.json"):
        list(listed)


def test_a_gap_between_a_branch_and_what_it_started_from_is_damage(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    stream = fast_graph.branches.create("review", at=fast_graph.head())
    for name in ("bob", "cy"):
        fast_graph.insert({name: "1"}, stream)
    fast_graph.objects.delete([layout.build_record_path(stream.id, 2)])
    with pytest.raises(CorruptObjectError, match=r"2\.json"):
        list(fast_graph.reopened().history.iter_commits(stream))


def test_a_time_without_a_commit_is_told_to_people(fast_graph: SmallGraph) -> None:
    with pytest.raises(CommitNotFoundError, match=r"as old as 2023-11-14T22:13:20\+00:00"):
        fast_graph.history.read_by_time(MAIN, 1_700_000_000_000_000)
    with pytest.raises(CommitNotFoundError, match="since 1970"):
        fast_graph.history.read_by_time(MAIN, -(10**30))
