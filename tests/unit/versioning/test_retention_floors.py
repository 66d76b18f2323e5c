"""Floors: what they name, beside collectors and writers that are stopped for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from omnigraph.errors import BranchGoneError, InDoubtError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import MAIN, Record, Settings
from omnigraph.versioning.gc.collector import Collected, Collector
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.retention_floors import Floors
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import SmallGraph, inserting, local_graph, upserting


class PausedStore:
    """A store whose process is stopped once, before or after the put of a record."""

    def __init__(
        self, inner: Objects, seq: int, during: Callable[[], object], *, is_after: bool = False
    ) -> None:
        self.uri = inner.uri
        self._inner = inner
        self._seq: int | None = seq
        self._during = during
        self._is_after = is_after

    def get(self, path: str) -> bytes | None:
        return self._inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return self._inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        if self._seq is None or layout.parse_record_path(path) != self._seq:
            return self._inner.put_new(path, data)
        self._seq = None
        if not self._is_after:
            self._during()
        is_new = self._inner.put_new(path, data)
        if self._is_after:
            self._during()
        return is_new

    def put(self, path: str, data: bytes) -> None:
        self._inner.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._inner.replace(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        return self._inner.list(prefix, after=after)

    def delete(self, paths: Iterable[str]) -> None:
        self._inner.delete(paths)


def _collect(graph: SmallGraph, keep: int = 1) -> Collected:
    # Files have the time of a clock that ticks every few milliseconds.
    time.sleep(0.05)
    settings = Settings(grace_s=0.0)
    tables = graph.tables
    collector = Collector(graph.objects, tables, tracer=lambda: tables, settings=settings)
    return collector.collect(Policy(keep=keep), is_dry=False)


def _seqs(objects: Objects, folder: str) -> list[int | None]:
    return [layout.parse_floor_path(entry.path) for entry in objects.list(folder)]


def _records(graph: SmallGraph) -> Callable[[range], list[Record]]:
    def read(seqs: range) -> list[Record]:
        found = graph.log.read_many((MAIN.id, seq) for seq in seqs)
        return [entry for entry in found if isinstance(entry, Record)]

    return read


def test_no_floor_is_stated_below_one_that_is_there(fast_graph: SmallGraph) -> None:
    floors = fast_graph.log.floors
    floors.put(MAIN.id, 5)
    floors.raise_to(MAIN.id, 3, _records(fast_graph))
    assert _seqs(fast_graph.objects, layout.build_floor_folder(MAIN.id)) == [5]


def test_a_floor_names_the_commits_since_the_one_before_it(fast_graph: SmallGraph) -> None:
    commits = [fast_graph.insert({f"p{n}": "1"}).commit for n in range(6)]
    floors = fast_graph.log.floors
    floors.raise_to(MAIN.id, 3, _records(fast_graph))
    floors.raise_to(MAIN.id, 5, _records(fast_graph))
    named = [floors.has_released(MAIN.id, seq, commit) for seq, commit in enumerate(commits, 1)]
    assert named == [True, True, True, True, None, None]
    assert floors.has_released(MAIN.id, 3, commits[0]) is False


def test_records_are_read_again_where_others_raise_the_floor_meanwhile(
    fast_graph: SmallGraph,
) -> None:
    commits = [fast_graph.insert({f"p{n}": "1"}).commit for n in range(6)]
    floors, read = fast_graph.log.floors, _records(fast_graph)
    asked: list[range] = []

    def read_late(seqs: range) -> list[Record]:
        asked.append(seqs)
        floors.raise_to(MAIN.id, 4, read)
        return read(seqs)

    floors.raise_to(MAIN.id, 6, read_late)
    assert asked == [range(6), range(4, 6)]
    assert floors.has_released(MAIN.id, 4, commits[3]) is True
    assert floors.has_released(MAIN.id, 4, commits[2]) is False


def test_two_collectors_that_state_floors_at_once_name_the_same_commits(
    fast_graph: SmallGraph,
) -> None:
    """One is stopped right before its put, where it has found that nothing was stated."""
    commits = [fast_graph.insert({f"p{n}": "1"}).commit for n in range(6)]
    inner, other = fast_graph.objects, fast_graph.reopened()

    class Late(MemoryObjects):
        def put_new(self, path: str, data: bytes) -> bool:
            other.log.floors.raise_to(MAIN.id, 6, _records(other))
            inner.delete([layout.build_record_path(MAIN.id, 2)])
            return inner.put_new(path, data)

    assert isinstance(inner, MemoryObjects)
    Floors(Late(data=inner.data)).raise_to(MAIN.id, 4, _records(fast_graph))
    assert other.log.floors.read_stream_floor(MAIN.id) == 6
    named = [other.log.floors.has_released(MAIN.id, seq, commits[seq - 1]) for seq in range(1, 6)]
    assert named == [True] * 5


def _pausing(graph: SmallGraph, store: PausedStore) -> SmallGraph:
    return SmallGraph(store, graph.tables, Settings(pause=lambda _: None))


def test_a_put_on_a_deleted_branch_is_not_counted_by_a_second_clean_up(tmp_path: Path) -> None:
    graph = local_graph(tmp_path)
    stream = graph.branches.create("review", at=graph.head())
    graph.insert({"ada": "1"}, stream)

    def end_branch() -> None:
        graph.reopened().insert({"bob": "1"}, stream)
        graph.reopened().branches.delete("review")
        _collect(graph)

    before = PausedStore(graph.objects, 2, end_branch)
    # The second clean-up lists what the writer has put, before the writer looks at the floors.
    store = PausedStore(before, 2, lambda: _collect(graph), is_after=True)
    writer = _pausing(graph, store)
    with pytest.raises(BranchGoneError):
        writer.write(upserting(writer, {"late": "1"}), stream)


def test_a_commit_on_a_branch_that_is_deleted_and_collected_right_after_counts(
    tmp_path: Path,
) -> None:
    graph = local_graph(tmp_path)
    stream = graph.branches.create("review", at=graph.head())
    graph.insert({"ada": "1"}, stream)

    def end_branch() -> None:
        graph.reopened().branches.delete("review")
        _collect(graph)
        _collect(graph)

    writer = _pausing(graph, PausedStore(graph.objects, 2, end_branch, is_after=True))
    assert writer.write(upserting(writer, {"late": "1"}), stream).seq == 2


@pytest.mark.parametrize(
    "data",
    [b"", b'{"digest":"xxh3:0000000000000000","format":1}', b'{"format":999}'],
    ids=["empty", "damaged", "newer"],
)
def test_a_floor_that_says_nothing_leaves_a_commit_in_doubt(
    fast_graph: SmallGraph, data: bytes
) -> None:
    def state_floors() -> None:
        fast_graph.objects.put(layout.build_floor_path(MAIN.id, 4), data)
        fast_graph.log.floors.put(MAIN.id, 9)

    writer = _pausing(fast_graph, PausedStore(fast_graph.objects, 1, state_floors))
    with pytest.raises(InDoubtError) as raised:
        writer.strict(inserting(writer, {"ada": "1"}))
    assert raised.value.commit


def test_a_commit_looks_at_one_floor_after_many_clean_ups(tmp_path: Path) -> None:
    graph = local_graph(tmp_path)
    commits = []
    for number in range(4):
        commits.append(graph.insert({f"p{number}": "1"}).commit)
        _collect(graph)
    folder, past = layout.build_floor_folder(MAIN.id), layout.build_past_floor_folder(MAIN.id)
    highest = graph.log.floors.read_stream_floor(MAIN.id)
    assert _seqs(graph.objects, folder) == [highest]
    assert _seqs(graph.objects, past) == [1, 3, 5]
    # The moved ones still decide what became of a put.
    assert graph.log.floors.has_released(MAIN.id, 1, commits[0]) is True
    assert graph.log.floors.has_released(MAIN.id, 1, commits[1]) is False


def test_a_branch_reaches_as_far_as_before_when_floors_are_moved(fast_graph: SmallGraph) -> None:
    for number in range(6):
        fast_graph.insert({f"p{number}": "1"})
    floors = fast_graph.log.floors
    floors.put(MAIN.id, 2)
    stream = fast_graph.branches.create("review", at=fast_graph.log.read_snapshot(MAIN, 4))
    floors.put(MAIN.id, 5)
    assert floors.read_floor(stream) == 2
    floors.move_past(MAIN.id)
    floors.move_past(MAIN.id)
    assert (floors.read_floor(stream), floors.read_floor(MAIN)) == (2, 5)
