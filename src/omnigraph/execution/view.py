"""A view: a snapshot with its schema and its tables, open for reading."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.execution.columns import TableShape, table_shape
from omnigraph.schema.accepted import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.table import Table
from omnigraph.storage.tables import Tables
from omnigraph.versioning.schemas import Schemas, StoredSchema
from omnigraph.versioning.snapshot import Snapshot


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

    def shape(self, type_key: TypeKey) -> TableShape:
        """How the rows of a type lie in its table."""
        shape: TableShape | None = self.schema.derived.get(type_key)
        if shape is None:
            shape = self.schema.derived[type_key] = table_shape(self.accepted, type_key)
        return shape

    def table(self, type_key: TypeKey) -> Table:
        """The table of a type at this snapshot."""
        return self.tables.open(self.snapshot.pins[str(type_key)])


def open_view(snapshot: Snapshot, schemas: Schemas, tables: Tables) -> View:
    """The view of a snapshot; reads its schema if this process has not yet."""
    return View(snapshot, schemas.get(snapshot.schema), tables)


def tabled_types(catalog: Catalog) -> dict[TypeKey, NodeType | EdgeType]:
    """Every type that has a table: nodes by name, then edges by name."""
    nodes = {TypeKey(TypeKind.NODE, name): catalog.nodes[name] for name in sorted(catalog.nodes)}
    edges = {TypeKey(TypeKind.EDGE, name): catalog.edges[name] for name in sorted(catalog.edges)}
    return {**nodes, **edges}
