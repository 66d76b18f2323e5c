"""The lines of branches that another collector collects meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from omnigraph.errors import BranchGoneError
from omnigraph.storage.objects import layout
from omnigraph.versioning import MAIN, Branches, Settings, Stream
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.gc.gc_roots import KEEP_ALL, Policy, RootReader
from unit.versioning.small_graph import SmallGraph, local_graph


def _collect(graph: SmallGraph, *, keep: int = 1, grace_s: float = 0.0) -> dict[str, int]:
    # Files have the time of a clock that ticks every few milliseconds.
    time.sleep(0.05)
    collector = Collector(
        graph.objects, graph.tables, tracer=lambda: graph.tables, settings=Settings()
    )
    return dict(collector.collect(Policy(keep=keep), is_dry=False, grace_s=grace_s).oldest)


def _lines(graph: SmallGraph, started_us: int | None = None) -> RootReader:
    started_us = time.time_ns() // 1000 if started_us is None else started_us
    return RootReader(graph.log, graph.branches, started_us=started_us, grace_s=0.0)


@pytest.fixture
def graph(tmp_path: Path) -> SmallGraph:
    graph = local_graph(tmp_path)
    stream = graph.branches.create("review", at=graph.head())
    graph.insert({"ada": "1"}, stream)
    return graph


def test_a_clean_up_with_a_short_grace_does_not_stop_those_with_a_long_one(
    graph: SmallGraph,
) -> None:
    graph.branches.delete("review")
    assert _collect(graph) == {"main": 0}
    assert _collect(graph, grace_s=3600.0) == {"main": 0}


def test_a_branch_that_ends_while_lines_are_read_has_none(
    graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Branches.list_streams
    others = graph.reopened()

    def list_early(branches: Branches, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        found = streams(branches, deleted_since=deleted_since)
        if branches is graph.branches:
            others.branches.delete("review")
            _collect(others)
        return found

    monkeypatch.setattr(Branches, "list_streams", list_early)
    assert [line.stream for line in _lines(graph).read_roots(KEEP_ALL).lines] == [MAIN]


def test_a_live_branch_whose_records_are_lost_is_not_taken_for_a_deleted_one(
    graph: SmallGraph,
) -> None:
    stream = graph.branches.resolve("review")
    graph.log.floors.put(stream.id, 1)
    graph.objects.delete(
        [layout.build_record_path(stream.id, 1), layout.build_hint_path(stream.id)]
    )
    with pytest.raises(BranchGoneError):
        _lines(graph.reopened()).read_roots(KEEP_ALL)


def test_a_line_that_another_collector_shortens_meanwhile_is_read_again(
    graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A merge with it would need the commits since it was created.
    graph.branches.delete("review")
    made = [graph.insert({f"p{number}": "1"}).created_at for number in range(6)]
    floor_of = RootReader._compute_floor
    others = graph.reopened()
    met: list[int] = []

    def read_late(lines: RootReader, stream: Stream, kept: range, policy: Policy) -> int:
        if stream == MAIN and not met:
            met.append(kept.start)
            _collect(others)
        return floor_of(lines, stream, kept, policy)

    # Some commits are younger than the grace, so the records between are read.
    lines = _lines(graph.reopened(), started_us=made[2])
    monkeypatch.setattr(RootReader, "_compute_floor", read_late)
    found = lines.read_roots(Policy(keep=4)).lines[0]
    assert met == [0]
    assert found.floor == found.previous_floor == others.log.floors.read_stream_floor(MAIN.id)
