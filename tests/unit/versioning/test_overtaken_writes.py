"""Writes that others overtake, and whose commits a clean-up removes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import CorruptObjectError, PreconditionFailedError, StagingExpiredError
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning import (
    MAIN,
    BranchAt,
    Changed,
    IdSet,
    Settings,
    Signature,
    Snapshot,
    Transaction,
    change_sets,
)
from omnigraph.versioning.log import CHECKPOINT_EVERY, PROBES_MAX, WHOLE_PINS_MAX
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    NODE,
    PERSON,
    SCHEMA,
    SmallGraph,
    created_tables,
    inserting,
    memory_graph,
    released_commits,
)


@dataclass
class Pausing(MemoryObjects):
    """Objects that let others go on, once, before a step at a path."""

    step: str = ""
    path: str = ""
    meanwhile: Callable[[], object] | None = None

    def get(self, path: str) -> bytes | None:
        self._pause("get", path)
        return super().get(path)

    def put_new(self, path: str, data: bytes) -> bool:
        self._pause("put_new", path)
        return super().put_new(path, data)

    def _pause(self, step: str, path: str) -> None:
        if self.meanwhile is not None and (step, path) == (self.step, self.path):
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()


def _paused(graph: SmallGraph, step: str, seq: int, meanwhile: Callable[[], object]) -> SmallGraph:
    """The graph in a process that is stopped before a step at a record."""
    assert isinstance(graph.objects, MemoryObjects)
    objects = Pausing(
        data=graph.objects.data,
        step=step,
        path=layout.build_record_path(MAIN.id, seq),
        meanwhile=meanwhile,
    )
    return SmallGraph(objects, graph.tables, graph.settings)


def _wide_graph() -> SmallGraph:
    """A graph whose records hold only the pins that they touched."""
    tables = MemoryTables()
    pins = created_tables(tables)
    for number in range(WHOLE_PINS_MAX):
        type_key = f"node:T{number}"
        pins[type_key] = tables.create(layout.build_table_path(type_key, "00000001"), NODE)
    graph = SmallGraph(MemoryObjects(), tables, Settings(pause=lambda _: None))
    graph.committer.create_graph(schema=SCHEMA, pins=pins)
    return graph


def _keyed(graph: SmallGraph, at: Snapshot) -> Transaction:
    return replace(inserting(graph, {"paris": "1"}, CITY)(at), signature=Signature(key="once"))


def test_a_request_that_was_committed_elsewhere_does_not_move_the_head_of_its_process() -> None:
    graph = _wide_graph()
    graph.insert({"first": "1"})
    other = graph.reopened()

    def retry_elsewhere() -> None:
        while other.head().seq < CHECKPOINT_EVERY - 1:
            other.insert({f"p{other.head().seq}": "1"})
        released_commits(other, other.head().seq - 2)
        assert other.write(lambda at: _keyed(other, at)).seq == CHECKPOINT_EVERY

    # Stopped where a put looks at the record that it follows.
    writer = _paused(graph, "get", 1, retry_elsewhere)
    prepared = _keyed(writer, graph.head())
    record = writer.committer.publish(prepared)
    assert record is not None
    assert record.seq == CHECKPOINT_EVERY
    people = other.people()
    assert len(people) == CHECKPOINT_EVERY - 1
    assert writer.people() == people
    assert graph.reopened().people() == people
    writer.insert({"next": "1"})
    assert graph.reopened().people() == {**people, "next": "1"}


def test_files_of_a_record_that_was_put_are_left_to_a_clean_up() -> None:
    discarded: list[object] = []

    class Discarding(MemoryTables):
        def discard(self, written: object) -> None:
            discarded.append(written)

    graph = memory_graph()
    graph.insert({"first": "1"})
    other = graph.reopened()

    def commit_and_clean_up() -> None:
        other.insert({"a": "1"})
        other.insert({"b": "1"})
        released_commits(other, 3)

    writer = _paused(graph, "put_new", 2, commit_and_clean_up)
    assert isinstance(graph.tables, MemoryTables)
    tables = Discarding(graph.tables.versions, graph.tables.staged, graph.tables.numbers)
    writer.tables = writer.committer.tables = tables
    assert writer.insert({"late": "1"}).seq == 4
    assert discarded == []
    assert graph.reopened().people().keys() == {"first", "a", "b", "late"}


@pytest.fixture
def with_turns(tmp_path: Path) -> SmallGraph:
    """A graph whose writers take turns, as on a disk."""
    (tmp_path / layout.build_stream_folder(MAIN.id)).mkdir(parents=True)
    graph = memory_graph()
    assert isinstance(graph.objects, MemoryObjects)
    graph.objects.uri = str(tmp_path)
    return graph.reopened()


def _stop_at_rows(graph: SmallGraph, meanwhile: Callable[[], object]) -> SmallGraph:
    """The graph in a process that is stopped when it has written rows, before its turn."""

    class Stopping(MemoryTables):
        is_stopped = False

        def write(self, pin: Pin, rows: pa.Table, *, is_synced: bool = True) -> Staged:
            if not self.is_stopped:
                self.is_stopped = True
                meanwhile()
            return super().write(pin, rows, is_synced=is_synced)

    tables = graph.tables
    stopping = Stopping(tables.versions, tables.staged, tables.numbers)
    return SmallGraph(graph.objects, stopping, graph.settings)


def _commit_beyond_the_probes(graph: SmallGraph) -> None:
    """Commits of which the oldest are kept, as by tags, and the next ones let go."""
    other = graph.reopened()
    last = 2 * PROBES_MAX + 2
    for number in range(last):
        other.insert({f"p{number}": "1"})
    released_commits(other, last, kept=range(PROBES_MAX + 2))


def test_commits_that_were_let_go_between_kept_ones_are_not_called_damaged(
    with_turns: SmallGraph,
) -> None:
    writer = _stop_at_rows(with_turns, lambda: _commit_beyond_the_probes(with_turns))
    assert writer.insert({"late": "1"}).seq == 2 * PROBES_MAX + 3
    assert "late" in with_turns.reopened().people()


def test_a_missing_commit_that_was_not_let_go_is_damage(with_turns: SmallGraph) -> None:
    def commit_and_lose() -> None:
        other = with_turns.reopened()
        for number in range(PROBES_MAX + 4):
            other.insert({f"p{number}": "1"})
        with_turns.objects.delete([layout.build_record_path(MAIN.id, PROBES_MAX + 2)])

    with pytest.raises(CorruptObjectError, match="missing"):
        _stop_at_rows(with_turns, commit_and_lose).insert({"late": "1"})


def test_a_write_that_was_overtaken_in_its_turn_still_needs_its_head(
    with_turns: SmallGraph,
) -> None:
    writer = _stop_at_rows(with_turns, lambda: _commit_beyond_the_probes(with_turns))
    head = writer.head()

    def prepare(at: Snapshot) -> Transaction:
        return replace(inserting(writer, {"late": "1"})(at), requires=(BranchAt(head.commit),))

    with pytest.raises(PreconditionFailedError):
        writer.write(prepare)


def test_a_change_set_that_was_let_go_with_its_commit_is_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_sets, "INLINE_IDS_MAX", 2)
    graph = memory_graph()
    graph.insert({"first": "1"})
    late = inserting(graph, {"late": "1"})(graph.head())
    other = graph.reopened()
    other.insert({"a": "1", "b": "1", "c": "1"})
    other.insert({"d": "1"})
    # This process has read the records; their change sets it has not.
    writer = graph.reopened()
    assert [entry.seq for entry in writer.log.read_after(MAIN, 1)] == [2, 3]
    released_commits(other, 3)
    with pytest.raises(StagingExpiredError):
        writer.committer.publish(late)
    record = writer.committer.publish(late, prepare_again=inserting(writer, {"late": "1"}))
    assert record is not None
    assert record.changes == {PERSON: Changed(inserted=IdSet(["late"]), marks=IdSet())}
    assert graph.reopened().people().keys() == {"first", "a", "b", "c", "d", "late"}
