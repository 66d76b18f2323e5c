"""Writers that are stopped while they do not know what became of their put."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from omnigraph.errors import StorageError, StorageUnknownError
from omnigraph.storage import Tables, open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import MAIN, Settings
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.log import Log
from unit.versioning.small_graph import PERSON, SmallGraph, create_graph, upserting


class LossyStore:
    """A store that creates record 2, loses the answer, and cannot be read for a moment."""

    def __init__(self, inner: Objects) -> None:
        self.uri = inner.uri
        self._inner = inner
        self.is_armed, self.is_down = True, False

    def get(self, path: str) -> bytes | None:
        if self.is_down and layout.parse_record_path(path) == 2:
            self.is_down = False
            raise StorageError("get", path, "down")
        return self._inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return self._inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        is_new = self._inner.put_new(path, data)
        if self.is_armed and layout.parse_record_path(path) == 2:
            self.is_armed, self.is_down = False, True
            raise StorageUnknownError("put_new", path, "the answer was lost")
        return is_new

    def put(self, path: str, data: bytes) -> None:
        self._inner.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._inner.replace(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        return self._inner.list(prefix, after=after)

    def delete(self, paths: Iterable[str]) -> None:
        self._inner.delete(paths)


def _collect(graph: SmallGraph, keep: int) -> None:
    # Files have the time of a clock that ticks every few milliseconds.
    time.sleep(0.05)
    settings = Settings(grace_s=0.0)
    collector = Collector(
        graph.objects, graph.tables, tracer=lambda: graph.tables, settings=settings
    )
    collector.collect(Policy(keep=keep), is_dry=False)


@pytest.fixture
def graph(tmp_path: Path) -> SmallGraph:
    uri = str(tmp_path / "graph")
    objects, tables = open_objects(uri, is_durable=False), Tables(uri, is_durable=False)
    graph = create_graph(objects, tables, Settings())
    graph.insert({"ada": "1"})
    return graph


def test_a_commit_whose_answer_was_lost_before_a_clean_up_is_made_once(graph: SmallGraph) -> None:
    others = graph.reopened()
    store = LossyStore(graph.objects)
    paused: list[int] = []

    def pause(_: float) -> None:
        if not (paused or store.is_armed or store.is_down):
            paused.append(others.log.read_newest_head(MAIN).snapshot.seq)
            others.insert({"bob": "1"})
            _collect(others, keep=2)

    writer = SmallGraph(store, graph.tables, Settings(pause=pause))
    record = writer.write(upserting(writer, {"zoe": "1"}))
    assert paused == [2]
    assert record is not None
    assert record.seq == 2
    fresh = graph.reopened()
    assert fresh.people() == {"ada": "1", "bob": "1", "zoe": "1"}
    for seq in fresh.log.list_stored_seqs(MAIN.id, below=99)[1:]:
        at = fresh.log.read_snapshot(MAIN, seq)
        assert fresh.tables.open(at.pins[PERSON]).scan().num_rows


def test_a_late_writer_leaves_the_record_of_another_one_at_its_place(
    graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = graph.reopened()
    looks = Log._has_predecessor
    paused: list[int] = []

    def look_late(log: Log, entry: object) -> bool:
        if log is graph.log and not paused:
            others.insert({"bob": "1"})
            _collect(others, keep=1)
            paused.append(others.head().seq)
        return looks(log, entry)  # type: ignore[arg-type]  # what it was called with

    monkeypatch.setattr(Log, "_has_predecessor", look_late)
    assert graph.write(upserting(graph, {"zoe": "1"})) is not None
    assert paused == [3]
    fresh = graph.reopened()
    assert fresh.log.is_stored(MAIN.id, 2)
    assert fresh.people() == {"ada": "1", "bob": "1", "zoe": "1"}
    _collect(fresh, keep=10)
