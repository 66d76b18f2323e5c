"""Times of commits: they rise along a branch, and no wrong clock spoils those of later commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from omnigraph.errors import CommitNotFoundError
from omnigraph.storage import open_objects
from omnigraph.storage.objects.object_store import Objects, read_store_time
from omnigraph.versioning import MAIN, Record, Settings
from omnigraph.versioning.commit_clock import AHEAD_S_MAX, Clock, time_of
from unit.versioning.small_graph import SmallGraph, memory_graph

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOW = 1_800_000_000 * SECOND


@dataclass
class Clocks:
    """The clock of a store, and that of a writer, which may be off."""

    store: int = NOW
    off: int = 0
    asked: int = 0

    def now_us(self) -> int:
        return self.store + self.off

    def ask(self, _: Objects) -> int:
        self.asked += 1
        return self.store

    def settings(self) -> Settings:
        return Settings(now_us=self.now_us, read_store_time=self.ask, pause=lambda _: None)


def _started() -> tuple[SmallGraph, Clocks]:
    clocks = Clocks()
    return memory_graph(clocks.settings()), clocks


def _insert(graph: SmallGraph, clocks: Clocks, name: str) -> Record:
    clocks.store += 60 * SECOND
    return graph.insert({name: "x"})


def test_a_clock_that_is_far_off_is_not_believed() -> None:
    for off in (73 * 365 * DAY, 2 * DAY, -2 * DAY, -40 * 365 * DAY):
        graph, clocks = _started()
        _insert(graph, clocks, "a")
        clocks.store += DAY
        clocks.off = off
        record = _insert(graph.reopened(), clocks, "b")
        assert abs(record.created_at - clocks.store) <= AHEAD_S_MAX * SECOND
        assert record.made_at is None


def test_a_new_graph_is_stamped_by_the_store_if_the_clocks_disagree() -> None:
    clocks = Clocks(off=400 * DAY)
    graph = memory_graph(clocks.settings())
    assert abs(graph.head().created_at - clocks.store) < SECOND


def test_a_busy_graph_never_asks_the_store_for_its_time() -> None:
    graph, clocks = _started()
    clocks.asked = 0
    for number in range(100):
        _insert(graph.reopened(), clocks, f"p{number}")
    assert clocks.asked == 0


def _poisoned() -> tuple[SmallGraph, Clocks, list[Record]]:
    """A graph in which an earlier program stamped commits in the far future."""
    graph, clocks = _started()
    records = [_insert(graph, clocks, f"good{number}") for number in range(3)]
    future = _believing(graph, lambda: clocks.store + 73 * 365 * DAY)
    records += [_insert(future, clocks, f"bad{number}") for number in range(2)]
    return graph, clocks, records


def _believing(graph: SmallGraph, now_us: Callable[[], int]) -> SmallGraph:
    """The graph for a writer that believes its own clock."""
    settings = Settings(now_us=now_us, read_store_time=lambda _: now_us(), pause=lambda _: None)
    return SmallGraph(graph.objects, graph.tables, settings)


def test_commits_after_one_of_the_future_are_found_by_the_time_they_were_made() -> None:
    graph, clocks, records = _poisoned()
    made = [clocks.store - (len(records) - 1 - at) * 60 * SECOND for at in range(len(records))]
    for number in range(20):
        records.append(_insert(graph.reopened(), clocks, f"later{number}"))
        made.append(clocks.store)
    assert all(a.created_at < b.created_at for a, b in pairwise(records))
    assert [time_of(record) for record in records[5:]] == made[5:]
    again = graph.reopened()
    for at, record in enumerate(records):
        if at not in (3, 4):  # Nobody knows any more when these were made.
            assert again.history.read_by_time(MAIN, made[at]).commit == record.commit
        if at > 5:
            assert again.history.read_by_time(MAIN, made[at] - 1).commit == records[at - 1].commit
    assert again.history.read_by_time(MAIN, made[5] - 1).commit == records[2].commit
    assert [again.history.read_commit(record.commit) for record in records] == records
    with pytest.raises(CommitNotFoundError):
        again.history.read_by_time(MAIN, NOW - DAY)


def test_branches_and_merges_of_such_commits_say_their_time_too() -> None:
    graph, clocks, _ = _poisoned()
    _insert(graph, clocks, "after")
    stream = graph.branches.create("review", at=graph.head())
    tagged = graph.branches.tags.create("t", at=graph.head())
    assert graph.reopened().branches.tags.get("t").snapshot == tagged.snapshot
    record = graph.reopened().insert({"r": "x"}, stream)
    assert record.made_at is not None
    assert clocks.store <= time_of(record) <= clocks.store + SECOND


def test_a_slow_clock_does_not_make_commits_older_than_those_before_them() -> None:
    graph, clocks, _ = _poisoned()
    first = _insert(graph, clocks, "after")
    clocks.off = -30 * DAY
    second = _insert(graph.reopened(), clocks, "slow")
    assert time_of(first) < time_of(second) <= clocks.store + SECOND


def test_the_time_of_a_store_is_that_of_an_object_just_written(graph: SmallGraph) -> None:
    said = read_store_time(graph.objects)
    if said is None:
        return  # The stand-in has no clock.
    # Any difference is one of this machine with itself, but for what a store rounds.
    assert abs(said - Settings().now_us()) < 5 * SECOND


def test_a_store_without_a_clock_is_not_asked_twice_for_nothing() -> None:
    clock = Clock(open_objects("memory://no-clock"), lambda: NOW, lambda _: None)
    assert clock.stamp(None).created_at == NOW
