"""A view: a snapshot with its schema and its tables, open for reading."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.schema_store import Schemas, StoredSchema


class _SchemaShapes:
    """What is derived from one schema again and again: its types with tables, and their shapes."""

    def __init__(self, accepted: AcceptedSchema) -> None:
        self.types: Mapping[TypeKey, NodeType | EdgeType] = table_types_of(accepted.catalog)
        self._accepted = accepted
        self._shapes: dict[TypeKey, TableShape] = {}

    def get_shape(self, type_key: TypeKey) -> TableShape:
        """The shape of a type. Two threads may make it at once: the first one made is kept."""
        shape = self._shapes.get(type_key)
        if shape is None:
            shape = self._shapes.setdefault(type_key, build_table_shape(self._accepted, type_key))
        return shape


# As long as a schema lives, and no longer.
_shapes_by_schema: Final[WeakKeyDictionary[StoredSchema, _SchemaShapes]] = WeakKeyDictionary()
_shapes_lock: Final = threading.Lock()


@dataclass(frozen=True)
class View:
    """What every read and every preparation of a write is given: nothing in it ever changes."""

    snapshot: Snapshot
    schema: StoredSchema
    tables: Tables

    @property
    def accepted(self) -> AcceptedSchema:
        """The schema in force, with the numbers of what it names."""
        return self.schema.accepted

    @property
    def catalog(self) -> Catalog:
        """The checked types."""
        return self.schema.catalog

    @property
    def types(self) -> Mapping[TypeKey, NodeType | EdgeType]:
        """Every type that has a table: nodes by name, then edges by name."""
        return self._schema_shapes.types

    def get_shape(self, type_key: TypeKey) -> TableShape:
        """How the rows of a type lie in its table."""
        return self._schema_shapes.get_shape(type_key)

    def open_table(self, type_key: TypeKey) -> Table:
        """The table of a type at this snapshot."""
        return self.tables.open(self.snapshot.pins[str(type_key)])

    @property
    def _schema_shapes(self) -> _SchemaShapes:
        # Each read has a view of its own: without the lock, which all of them would wait for.
        found = _shapes_by_schema.get(self.schema)
        if found is None:
            with _shapes_lock:
                made = _SchemaShapes(self.accepted)
                found = _shapes_by_schema.setdefault(self.schema, made)
        return found


def open_view(snapshot: Snapshot, schemas: Schemas, tables: Tables) -> View:
    """The view of a snapshot; reads its schema if this process has not yet."""
    return View(snapshot, schemas.get(snapshot.schema), tables)


def table_types_of(catalog: Catalog) -> dict[TypeKey, NodeType | EdgeType]:
    """Every type that has a table: nodes by name, then edges by name."""
    nodes = {TypeKey(TypeKind.NODE, name): catalog.nodes[name] for name in sorted(catalog.nodes)}
    edges = {TypeKey(TypeKind.EDGE, name): catalog.edges[name] for name in sorted(catalog.edges)}
    return {**nodes, **edges}
