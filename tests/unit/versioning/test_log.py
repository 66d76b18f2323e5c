"""The log finds the newest commit, whatever became of the objects that are derived from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import omnigraph.versioning
from omnigraph.errors import (
    CommitNotFoundError,
    CorruptObjectError,
    FormatTooNewError,
    GraphNotFoundError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import (
    MAIN,
    Drop,
    Register,
    Rename,
    Snapshot,
    Transaction,
)
from omnigraph.versioning.log import CHECKPOINT_EVERY, Log
from omnigraph.versioning.log_snapshot import Head
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import NODE, SCHEMA, SmallGraph, memory_graph

HINT = layout.build_hint_path(MAIN.id)


def _objects(graph: SmallGraph) -> MemoryObjects:
    assert isinstance(graph.objects, MemoryObjects)
    return graph.objects


def _filled(commits: int) -> SmallGraph:
    graph = memory_graph()
    for number in range(commits):
        graph.insert({f"p{number}": "x"})
    return graph


@pytest.mark.parametrize("commits", [10, pytest.param(1_000, marks=pytest.mark.slow)])
def test_the_current_state_costs_four_requests_however_long_the_history(
    commits: int,
) -> None:
    graph = _filled(commits)
    calls = _objects(graph).calls
    calls.clear()
    assert graph.reopened().head().seq == commits
    assert [operation for operation, _ in calls] == ["get", "get", "get", "list"]
    assert calls[-1][1] == layout.build_floor_folder(MAIN.id)


def test_a_warm_look_at_the_head_is_one_absent_probe() -> None:
    graph = _filled(3)
    calls = _objects(graph).calls
    calls.clear()
    assert graph.head().seq == 3
    assert calls == [("get", layout.build_record_path(MAIN.id, 4))]


def test_the_newest_known_head_is_kept() -> None:
    graph = _filled(3)
    newest = Head(graph.head())
    assert graph.log.remember(Head(graph.log.read_snapshot(MAIN, 1))) == newest
    assert graph.log.get_known_head(MAIN) == newest


def test_any_version_of_a_small_graph_is_one_read() -> None:
    graph = _filled(20).reopened()
    calls = _objects(graph).calls
    calls.clear()
    assert graph.log.read_snapshot(MAIN, 7).seq == 7
    assert len(calls) == 1


@pytest.mark.parametrize("hint", [b"", b'{"format":1,"se', b'{"format":1}', b'{"format":9}', None])
def test_a_torn_or_missing_hint_costs_a_listing_and_nothing_else(hint: bytes | None) -> None:
    graph = _filled(5)
    _objects(graph).delete([HINT])
    if hint is not None:
        _objects(graph).put(HINT, hint)
    assert graph.reopened().head() == graph.head()


def test_a_branch_whose_newest_record_is_lost_does_not_go_back() -> None:
    graph = _filled(5)
    _objects(graph).delete([layout.build_record_path(MAIN.id, 5)])
    with pytest.raises(CorruptObjectError, match="it was the newest of its branch") as lost:
        graph.reopened().head()
    assert HINT in (lost.value.hint or "")
    _objects(graph).delete([HINT])
    assert graph.reopened().head().seq == 4


@pytest.mark.parametrize("seq", [0, 1, 49])
def test_a_hint_that_lags_is_corrected(seq: int) -> None:
    graph = _filled(50)
    _objects(graph).put(HINT, f'{{"format":1,"seq":{seq}}}'.encode())
    assert graph.reopened().head() == graph.head()


def test_a_process_that_slept_finds_the_new_head_by_a_listing() -> None:
    graph = _filled(2)
    sleeping = graph.reopened()
    assert sleeping.head().seq == 2
    for number in range(40):
        graph.insert({f"q{number}": "x"})
    assert sleeping.head() == graph.head()
    assert [entry.seq for entry in sleeping.log.read_after(MAIN, 1)] == list(range(2, 43))


def test_only_the_committer_creates_records() -> None:
    sources = [*Path(omnigraph.versioning.__file__).parents[1].rglob("*.py")]
    for call, module in ((r"log\.append\(", "puts.py"), (r"\bPuts\(", "committer.py")):
        assert [path.name for path in sources if re.search(call, path.read_text())] == [module]


def test_a_corrupt_record_is_named() -> None:
    graph = _filled(3)
    path = layout.build_record_path(MAIN.id, 3)
    _objects(graph).put(path, b'{"format":1')
    with pytest.raises(CorruptObjectError, match=path):
        graph.reopened().head()


def test_a_record_of_a_newer_program_is_refused() -> None:
    graph = _filled(3)
    _objects(graph).put(layout.build_record_path(MAIN.id, 4), b'{"format":2}')
    with pytest.raises(FormatTooNewError):
        graph.head()


def test_a_graph_must_exist_and_be_readable() -> None:
    objects = MemoryObjects()
    with pytest.raises(GraphNotFoundError):
        Log(objects).require_graph()
    objects.put(layout.FORMAT, b'{"format":1}')
    with pytest.raises(GraphNotFoundError):
        Log(objects).require_graph()
    objects.put(layout.FORMAT, b'{"format":7}')
    with pytest.raises(FormatTooNewError):
        Log(objects).require_graph()
    memory_graph().log.require_graph()


def test_a_version_that_is_not_there_is_not_found() -> None:
    with pytest.raises(CommitNotFoundError, match="branch 'main' has no version 9"):
        _filled(3).log.read_snapshot(MAIN, 9)


class Wide:
    """A graph with more types than a record holds, and the pins it should have at every seq."""

    def __init__(self) -> None:
        self.graph = memory_graph()
        self.pins: dict[int, dict[str, Pin]] = {0: dict(self.graph.head().pins)}
        tables = self.graph.tables
        assert isinstance(tables, MemoryTables)
        created = [tables.create(f"t/T{number}-1.lance", NODE) for number in range(70)]
        self.publish(*(Register(f"node:T{n}", pin) for n, pin in enumerate(created)))

    def publish(self, *effects: Register | Drop | Rename) -> Snapshot:
        snapshot = self.graph.head()
        self.graph.committer.publish(Transaction(snapshot, effects, {}))
        pins = dict(self.pins[snapshot.seq])
        for effect in effects:
            match effect:
                case Register():
                    pins[effect.type_key] = effect.pin
                case Drop():
                    del pins[effect.type_key]
                case Rename():
                    pins[effect.to] = pins.pop(effect.type_key)
        self.pins[snapshot.seq + 1] = pins
        return self.graph.head()


@pytest.mark.parametrize("derived", ["kept", "torn", "gone"])
def test_a_wide_graph_is_folded_the_same_with_and_without_checkpoints(derived: str) -> None:
    wide = Wide()
    tables = wide.graph.tables
    for number in range(CHECKPOINT_EVERY + 7):
        if number % 3 == 0:
            wide.publish(Rename(f"node:T{number}", f"node:R{number}"))
        elif number % 3 == 1:
            wide.publish(Drop(f"node:T{number}"))
        else:
            wide.publish(Register(f"node:N{number}", tables.create(f"t/N{number}.lance", NODE)))
    objects = _objects(wide.graph)
    checkpoints = [path for path in objects.data if "/checkpoints/" in path]
    assert len(checkpoints) == 1
    for path in checkpoints:
        if derived == "torn":
            objects.put(path, objects.data[path][:40])
        elif derived == "gone":
            objects.delete([path])
    again = wide.graph.reopened()
    assert again.head().pins == wide.pins[again.head().seq]
    for seq, pins in wide.pins.items():
        assert again.log.read_snapshot(MAIN, seq).pins == pins


def test_the_records_of_a_wide_graph_hold_only_what_they_touched() -> None:
    wide = Wide()
    wide.publish(Drop("node:T1"))
    record = wide.graph.log.read(MAIN.id, wide.graph.head().seq)
    assert record is not None
    assert len(_objects(wide.graph).data[layout.build_record_path(MAIN.id, record.seq)]) < 400


def test_rebuilding_writes_the_derived_objects_again() -> None:
    graph = _filled(300)
    stream = graph.branches.create("review", at=graph.head())
    objects = _objects(graph)
    derived = {
        path: data for path, data in objects.data.items() if "/checkpoints/" in path or path == HINT
    }
    assert len(derived) == 3
    for path in derived:
        objects.put(path, b"torn")
    again = graph.reopened()
    again.log.rebuild(MAIN)
    again.log.rebuild(stream)
    assert {path: objects.data[path] for path in derived} == derived
    assert again.head(stream).schema == SCHEMA


def test_a_missing_record_below_newer_ones_is_named_and_never_skipped() -> None:
    graph = _filled(6)
    head = graph.log.read_head(MAIN)
    _objects(graph).delete([layout.build_record_path(MAIN.id, 3)])
    with pytest.raises(CorruptObjectError, match=r"00000000000000000003\.json"):
        graph.reopened().log.read_between(MAIN, 1, head)
