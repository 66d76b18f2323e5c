"""A small graph and a small writer for it: what the real writers do, in a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.errors import ConflictError, KeyConflictError
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import (
    MAIN,
    Append,
    Branches,
    Changed,
    Committer,
    History,
    IdSet,
    Log,
    ReadSet,
    Record,
    Replace,
    Settings,
    Signature,
    Snapshot,
    Spilled,
    Stream,
    Transaction,
    make_mark,
)
from unit.versioning.memory_storage import MemoryObjects, MemoryTables

PERSON, CITY, KNOWS = "node:Person", "node:City", "edge:Knows"
SCHEMA = "sha256:first"
NODE = pa.schema([pa.field("__id", pa.string(), nullable=False), pa.field("value", pa.string())])
EDGE = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in ("__id", "__src", "__dst")]
)
Values = Mapping[str, str]


@dataclass
class SmallGraph:
    """One process's view of a graph; `reopened` is another process's."""

    objects: Objects
    tables: Any
    settings: Settings

    def __post_init__(self) -> None:
        self.log = Log(self.objects)
        self.committer = Committer(self.log, self.tables, self.settings)
        self.branches = Branches(self.committer)
        self.history = History(self.log, self.branches)

    def reopened(self) -> SmallGraph:
        return SmallGraph(self.objects, self.tables, self.settings)

    def head(self, stream: Stream = MAIN) -> Snapshot:
        return self.log.read_head(stream).snapshot

    def rows(self, snapshot: Snapshot, type_key: str = PERSON) -> dict[str, str]:
        rows = self.tables.open(snapshot.pins[type_key]).scan().to_pylist()
        found = {row["__id"]: row.get("value", "") for row in rows}
        assert len(found) == len(rows) == snapshot.pins[type_key].rows, "an id is there twice"
        return found

    def people(self, stream: Stream = MAIN) -> dict[str, str]:
        return self.rows(self.head(stream))

    def insert(self, values: Values, stream: Stream = MAIN, type_key: str = PERSON) -> Record:
        return self.write(inserting(self, values, type_key), stream)

    def write(self, prepare: Callable[[Snapshot], Transaction], stream: Stream = MAIN) -> Record:
        """Publish a write that may be prepared again."""
        record = self.committer.publish(prepare(self.head(stream)), prepare_again=prepare)
        assert record is not None
        return record

    def strict(self, prepare: Callable[[Snapshot], Transaction], stream: Stream = MAIN) -> Record:
        """Publish a write that may not be prepared again."""
        record = self.committer.publish(prepare(self.head(stream)))
        assert record is not None
        return record


def create_graph(objects: Objects, tables: Any, settings: Settings | None = None) -> SmallGraph:
    """A graph with two node types and an edge type."""
    graph = SmallGraph(objects, tables, settings or Settings(pause=lambda _: None))
    graph.committer.create_graph(schema=SCHEMA, pins=created_tables(tables))
    return graph


def memory_graph(settings: Settings | None = None) -> SmallGraph:
    """A graph on the stand-in."""
    return create_graph(MemoryObjects(), MemoryTables(), settings)


def local_graph(folder: Path) -> SmallGraph:
    """A graph on the disk."""
    objects = open_objects(str(folder), is_durable=False)
    return create_graph(objects, Tables(str(folder), is_durable=False), Settings())


def created_tables(tables: Any, life: str = "00000001") -> dict[str, Pin]:
    schemas = {PERSON: NODE, CITY: NODE, KNOWS: EDGE}
    return {
        key: tables.create(layout.build_table_path(key, life), schema)
        for key, schema in schemas.items()
    }


def inserting(
    graph: SmallGraph, values: Values, type_key: str = PERSON, actor: str | None = None
) -> Callable[[Snapshot], Transaction]:
    """Strict inserts: an id that exists is a KeyConflict."""

    def prepare(snapshot: Snapshot) -> Transaction:
        for entity_id in _existing(graph, snapshot, type_key, values):
            raise KeyConflictError(type_key, entity_id)
        changes = {type_key: Changed(inserted=IdSet(values), marks=IdSet())}
        effects = (Append(type_key, (_nodes(values),)),)
        return Transaction(snapshot, effects, changes, signature=Signature(actor=actor))

    return prepare


def upserting(graph: SmallGraph, values: Values) -> Callable[[Snapshot], Transaction]:
    """Inserts and updates by id."""

    def prepare(snapshot: Snapshot) -> Transaction:
        updated = IdSet(_existing(graph, snapshot, PERSON, values))
        inserted = IdSet(set(values) - set(updated))
        changes = {PERSON: Changed(inserted=inserted, updated=updated, marks=IdSet())}
        return Transaction(snapshot, (Replace(PERSON, updated, (_nodes(values),)),), changes)

    return prepare


def updating(graph: SmallGraph, change: Callable[[Values], Values]) -> Any:
    """A strict update that reads the people it changes."""

    def prepare(snapshot: Snapshot) -> Transaction:
        values = change(graph.rows(snapshot))
        ids = IdSet(values)
        effects = (Replace(PERSON, ids, (_nodes(values),)),)
        return Transaction(snapshot, effects, {PERSON: Changed(updated=ids, marks=IdSet())})

    return prepare


def deleting(graph: SmallGraph, ids: Iterable[str]) -> Callable[[Snapshot], Transaction]:
    """Deletes people who have no edges."""
    gone = IdSet(ids)

    def prepare(snapshot: Snapshot) -> Transaction:
        if len(_existing(graph, snapshot, PERSON, gone)) < len(gone):
            raise ConflictError("nobody to delete")
        edges = graph.tables.open(snapshot.pins[KNOWS]).scan().to_pylist()
        if any(edge[end] in set(gone) for edge in edges for end in ("__src", "__dst")):
            raise ConflictError("an edge needs them")
        ends = IdSet(make_mark(end, entity_id) for end in ("src", "dst") for entity_id in gone)
        return Transaction(
            snapshot,
            (Replace(PERSON, gone),),
            {PERSON: Changed(deleted=gone, marks=IdSet())},
            footprint={KNOWS: ReadSet(marks=ends)},
        )

    return prepare


def connecting(graph: SmallGraph, edges: Mapping[str, tuple[str, str]]) -> Any:
    """Inserts edges whose ends must be people."""
    ends = {end for pair in edges.values() for end in pair}
    rows = [{"__id": key, "__src": src, "__dst": dst} for key, (src, dst) in edges.items()]
    marks = [make_mark("src", src) for src, _ in edges.values()]
    marks += [make_mark("dst", dst) for _, dst in edges.values()]

    def prepare(snapshot: Snapshot) -> Transaction:
        if missing := ends - set(_existing(graph, snapshot, PERSON, ends)):
            raise ConflictError(f"no such people: {sorted(missing)}")
        return Transaction(
            snapshot,
            (Append(KNOWS, (pa.Table.from_pylist(rows, schema=EDGE),)),),
            {KNOWS: Changed(inserted=IdSet(edges), marks=IdSet(marks))},
            footprint={PERSON: ReadSet(present=IdSet(ends))},
        )

    return prepare


def _nodes(values: Values) -> pa.Table:
    rows = [{"__id": entity_id, "value": value} for entity_id, value in values.items()]
    return pa.Table.from_pylist(rows, schema=NODE)


def _existing(
    graph: SmallGraph, snapshot: Snapshot, type_key: str, ids: Iterable[str]
) -> list[str]:
    table = graph.tables.open(snapshot.pins[type_key])
    found: list[str] = table.find("__id", pa.array(sorted(ids), pa.string()))["__id"].to_pylist()
    return sorted(found)


def released_commits(graph: SmallGraph, below: int, *, kept: Iterable[int] = ()) -> None:
    """Do to main what a clean-up does: state a floor, and remove what lies below it.

    `kept` are the seqs of records that something else refers to.
    """
    log = graph.reopened().log
    records = [entry for seq in range(below) if isinstance(entry := log.read(MAIN.id, seq), Record)]
    for seq in (*kept, below):
        log.write_checkpoint(log.read_snapshot(MAIN, seq))
    log.floors.put(MAIN.id, below, records)
    gone = [record for record in records if record.seq not in set(kept)]
    spilled = [each for record in gone for each in record.changes.values()]
    graph.objects.delete([each.file for each in spilled if isinstance(each, Spilled)])
    graph.objects.delete([layout.build_record_path(MAIN.id, record.seq) for record in gone])
