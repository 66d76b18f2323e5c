"""A graph on real tables, written to without any rule: a test may make it right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.rows.columns import TableShape
from omnigraph.rows.entity_ids import compute_entity_ids
from omnigraph.rows.view import View, open_view
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage import open_objects
from omnigraph.storage.objects.faults import FaultyObjects, FaultyTables, Steps
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import (
    MAIN,
    Append,
    Branches,
    Changed,
    ChangeSet,
    Committer,
    Effect,
    History,
    IdSet,
    Log,
    Overwrite,
    Record,
    Replace,
    Settings,
    Signature,
    Snapshot,
    Stream,
    Transaction,
)
from omnigraph.versioning.schema_store import Schemas
from omnigraph.writers.schema_migration import (
    Migration,
    SchemaText,
    build_migration,
    create_initial_tables,
)
from omnigraph.writers.validate import marks_of

Entity = Mapping[str, Any]

PEOPLE = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge LivesIn: Person -> City { since: Date? }
"""
ADA = {"name": "ada", "age": 36}
BOB = {"name": "bob", "age": None}


@dataclass
class PlainGraph:
    """One process's view of a graph; `reopened` is another process's."""

    uri: str
    objects: Objects
    tables: Tables
    settings: Settings = field(default_factory=lambda: Settings(pause=lambda _: None))

    def __post_init__(self) -> None:
        self.log = Log(self.objects)
        self.schemas = Schemas(self.objects)
        self.committer = Committer(self.log, self.tables, self.settings)
        self.branches = Branches(self.committer)
        self.history = History(self.log, self.branches)

    def reopened(self) -> PlainGraph:
        return opened(self.uri)

    def with_faults(self, steps: Steps) -> PlainGraph:
        """The same graph for a process whose durable steps are counted, and may fail."""
        tables: Any = FaultyTables(self.tables, steps)
        return PlainGraph(self.uri, FaultyObjects(self.objects, steps), tables)

    def head(self, stream: Stream = MAIN) -> Snapshot:
        return self.log.read_head(stream).snapshot

    def view(self, snapshot: Snapshot | None = None, *, stream: Stream = MAIN) -> View:
        return open_view(snapshot or self.head(stream), self.schemas, self.tables)

    def migrated(self, source: str, *, stream: Stream = MAIN, **options: Any) -> Migration:
        view = self.view(stream=stream)
        text = SchemaText(source, load_catalog(source))
        return build_migration(view, text, tables=self.tables, schemas=self.schemas, **options)

    def apply(self, source: str, *, stream: Stream = MAIN, **options: Any) -> Record | None:
        return self.publish(self.migrated(source, stream=stream, **options))

    def publish(self, migrated: Migration) -> Record | None:
        if migrated.transaction is None:
            return None
        return self.committer.publish(
            migrated.transaction, prepare_again=migrated.rebuild_transaction
        )

    def insert(self, type_: str, *entities: Entity, stream: Stream = MAIN) -> Record:
        view = self.view(stream=stream)
        shape = view.get_shape(type_key(type_))
        rows = rows_of(shape, entities)
        marks = marks_of(shape, view.types[type_key(type_)], rows)
        effect = Append(type_, (rows,))
        return self.commit(view, effect, Changed(inserted=IdSet(rows["__id"]), marks=marks))

    def update(self, type_: str, *entities: Entity, stream: Stream = MAIN) -> Record:
        view = self.view(stream=stream)
        rows = rows_of(view.get_shape(type_key(type_)), entities)
        ids = IdSet(rows["__id"])
        return self.commit(view, Replace(type_, ids, (rows,)), Changed(updated=ids))

    def delete(self, type_: str, *ids: str, stream: Stream = MAIN) -> Record:
        effect = Replace(type_, IdSet(ids))
        return self.commit(self.view(stream=stream), effect, Changed(deleted=IdSet(ids)))

    def overwrite(self, type_: str, *entities: Entity, change: ChangeSet) -> Record:
        view = self.view()
        rows = rows_of(view.get_shape(type_key(type_)), entities)
        return self.commit(view, Overwrite(type_, (rows,)), change)

    def commit(self, view: View, effect: Effect, change: ChangeSet) -> Record:
        """One effect and what the commit says about it, whether that is true or not."""
        transaction = Transaction(
            view.snapshot,
            (effect,),
            {effect.type_key: change},
            signature=Signature(actor="ada"),
        )
        record = self.committer.publish(transaction)
        assert record is not None
        return record

    def entities(self, type_: str, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
        """Every entity of a type by the names of its properties, in the order of ids."""
        view = self.view(snapshot)
        shape = view.get_shape(type_key(type_))
        names = {"__id": "@id", "__src": "@src", "__dst": "@dst"} | {
            column: name for name, column in shape.columns.items()
        }
        rows = view.open_table(shape.type_key).scan(columns=shape.schema.names)
        days_and_milliseconds = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}
        plain = pa.table(
            {
                names[column]: rows[column].cast(days_and_milliseconds.get(each.type, each.type))
                for column, each in zip(rows.column_names, rows.schema, strict=True)
            }
        )
        found = plain.to_pylist()
        return sorted(found, key=lambda entity: str(entity["@id"]))


def created(uri: str | Path, source: str) -> PlainGraph:
    """A new graph of a schema, with nothing in it."""
    graph = opened(uri)
    text = SchemaText(source, load_catalog(source))
    made = create_initial_tables(text, tables=graph.tables, schemas=graph.schemas)
    graph.committer.create_graph(schema=made.schema.digest, pins=made.pins)
    return graph


def opened(uri: str | Path) -> PlainGraph:
    objects = open_objects(str(uri), is_durable=False)
    return PlainGraph(str(uri), objects, Tables(str(uri), is_durable=False))


def type_key(text: str) -> TypeKey:
    kind, _, name = text.partition(":")
    return TypeKey(TypeKind(kind), name)


def rows_of(shape: TableShape, entities: Sequence[Entity]) -> pa.Table:
    """Entities as rows of a table; an id is `@id` or that of the key, ends are `@src`, `@dst`."""
    columns = {"@id": "__id", "@src": "__src", "@dst": "__dst", **shape.columns}
    unknown = {name for entity in entities for name in entity} - set(columns)
    assert not unknown, f"{shape.type_key} has no {unknown}"
    rows = [{columns[name]: value for name, value in entity.items()} for entity in entities]
    nullable = pa.schema([each.with_nullable(True) for each in shape.schema])
    table = pa.Table.from_pylist(rows, schema=nullable)
    if shape.key and not table["__id"].null_count < len(table):
        table = table.set_column(0, "__id", compute_entity_ids(table, shape))
    return table.cast(shape.schema)


def everything_stored(graph: PlainGraph) -> set[str]:
    return {entry.path for entry in graph.objects.list("")}


def ids(graph: PlainGraph, type_: str) -> list[str]:
    return [entity["@id"] for entity in graph.entities(type_)]
