"""Committed entities on real tables, writes on top of them, and what the model says about those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from model.store import Store
from model.validation import validate as model_validate
from omnigraph.errors import WriteRefusedError
from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema import load_catalog
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Footprint, Log, Snapshot
from omnigraph.versioning.schema_store import StoredSchema
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, RowOrigins, TypeChange, WriteMode
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.validate import validate_change

Entity = Mapping[str, Any]


@dataclass(frozen=True)
class Write:
    """What a write does to one type; batches hold entities like `rows`."""

    rows: Sequence[Entity] = ()
    mode: WriteMode = WriteMode.UPSERT
    deleted: Sequence[str] = ()
    batches: Sequence[Sequence[Entity]] = ()
    origins: RowOrigins | None = None


Writes = Mapping[str, Write]


class ValidationWorld:
    """A schema and committed entities by type name; nothing a write does to it stays."""

    def __init__(
        self, schema: str, committed: Mapping[str, Sequence[Entity]] | None = None
    ) -> None:
        self.store = Store(load_catalog(schema))
        self.keys = {key.name: key for key in table_types_of(self.store.catalog)}
        for name, entities in (committed or {}).items():
            self._put(self.store, name, entities)
        uri = f"memory://{uuid4().hex}"
        self._keys = KeyCache(Log(open_objects(uri)))
        self.view = self._filled(Tables(uri, is_durable=False))

    def entity(self, name: str, values: Entity) -> dict[str, Any]:
        """An entity as the model keeps it, its id from its key or given as `@id`."""
        type_ = table_types_of(self.store.catalog)[self.keys[name]]
        plain = {key: value for key, value in values.items() if key != "@id"}
        if type_.key is not None and any(plain.get(member) is None for member in type_.key):
            return {**dict.fromkeys(type_.properties), **plain, "@id": values["@id"]}
        return self.store.entity(type_, plain, id_=values.get("@id"))

    def change(self, writes: Writes) -> GraphChange:
        return {self.keys[name]: self._type_change(name, write) for name, write in writes.items()}

    def put(self, writes: Writes) -> None:
        """Let the model have the rows of a write; the tables do not change."""
        for name, write in writes.items():
            self._put(self.store, name, write.rows)

    def validate(self, writes: Writes) -> Footprint:
        change = self.change(writes)
        return validate_change(change, CommittedState(self.view, self._keys, change))

    def refusal(self, writes: Writes) -> WriteRefusedError | None:
        try:
            self.validate(writes)
        except WriteRefusedError as refused:
            return refused
        return None

    def messages(self, writes: Writes) -> list[str]:
        refused = self.refusal(writes)
        return [] if refused is None else [each.message for each in refused.violations]

    def model_message(self, writes: Writes) -> str | None:
        """The first violation that the model finds; every write is whole entities."""
        after, batches = self.store.copy(), []
        for name, write in writes.items():
            type_ = table_types_of(self.store.catalog)[self.keys[name]]
            if write.mode is WriteMode.OVERWRITE:
                after.table(type_).clear()
            for id_ in write.deleted:
                after.table(type_).pop(id_, None)
            self._put(after, name, write.rows)
            written = write.batches or [write.rows]
            batches += [(type_, [self.entity(name, e) for e in batch]) for batch in written]
        try:
            model_validate(self.store, after, batches)
        except WriteRefusedError as refused:
            return refused.message
        return None

    def rows(self, name: str, entities: Sequence[Entity]) -> pa.Table:
        shape = self._shape(name)
        columns = {"@id": "__id", "@src": "__src", "@dst": "__dst", **shape.columns}
        complete = [self.entity(name, each) for each in entities]
        nullable = pa.schema([each.with_nullable(True) for each in shape.schema])
        return pa.Table.from_pylist(
            [{columns[k]: v for k, v in each.items() if k in columns} for each in complete],
            schema=nullable,
        )

    def _shape(self, name: str) -> TableShape:
        return build_table_shape(self.store.accepted, self.keys[name])

    def _type_change(self, name: str, write: Write) -> TypeChange:
        return TypeChange(
            shape=self._shape(name),
            mode=write.mode,
            rows=self.rows(name, write.rows),
            deleted=pa.array(list(write.deleted), pa.utf8()),
            batches=tuple(self.rows(name, each) for each in write.batches),
            origins=write.origins,
        )

    def _put(self, store: Store, name: str, entities: Sequence[Entity]) -> None:
        table = store.table(table_types_of(store.catalog)[self.keys[name]])
        for each in entities:
            entity = self.entity(name, each)
            # Replaced entities go to the end, as written rows follow the others.
            table.pop(entity["@id"], None)
            table[entity["@id"]] = entity

    def _filled(self, tables: Tables) -> View:
        pins = {}
        for key, type_ in table_types_of(self.store.catalog).items():
            shape = build_table_shape(self.store.accepted, key)
            pin = tables.create(layout.build_table_path(str(key), "00000001"), shape.schema)
            rows = self.rows(key.name, list(self.store.table(type_).values()))
            rows = rows.cast(shape.schema)
            pins[str(key)] = tables.append(pin, [tables.write(pin, rows)]) if len(rows) else pin
        snapshot = Snapshot(MAIN, 0, "first", 0, "sha256:first", pins)
        return View(snapshot, StoredSchema("sha256:first", "", self.store.accepted), tables)
