"""Writes that others overtake, and whose commits a clean-up removes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from omnigraph.storage import layout
from omnigraph.versioning import (
    MAIN,
    Settings,
    Signature,
    Snapshot,
    Transaction,
)
from omnigraph.versioning.log import CHECKPOINT_EVERY, WHOLE_PINS_MAX
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    NODE,
    SCHEMA,
    SmallGraph,
    created_tables,
    inserting,
    let_go,
    memory_graph,
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
        data=graph.objects.data, step=step, path=layout.record(MAIN.id, seq), meanwhile=meanwhile
    )
    return SmallGraph(objects, graph.tables, graph.settings)


def _wide_graph() -> SmallGraph:
    """A graph whose records hold only the pins that they touched."""
    tables = MemoryTables()
    pins = created_tables(tables)
    for number in range(WHOLE_PINS_MAX):
        type_key = f"node:T{number}"
        pins[type_key] = tables.create(layout.table(type_key, "00000001"), NODE)
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
        let_go(other, other.head().seq - 2)
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
        let_go(other, 3)

    writer = _paused(graph, "put_new", 2, commit_and_clean_up)
    assert isinstance(graph.tables, MemoryTables)
    tables = Discarding(graph.tables.versions, graph.tables.staged, graph.tables.numbers)
    writer.tables = writer.committer.tables = tables
    assert writer.insert({"late": "1"}).seq == 4
    assert discarded == []
    assert graph.reopened().people().keys() == {"first", "a", "b", "late"}
