"""What the tables of a view have of the indexes that its schema asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from omnigraph.html_views import HtmlDocument
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.tables.table_indexes import IndexSpec
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN

# What stands for the id of an entity where a property is named.
ID_PROPERTY: Final = "@id"

# How documents call the one kind of index; the names of indexes end in it.
INDEX_KIND: Final = "btree"
_TEXT: Final = ScalarType(Scalar.STRING)


class IndexState(StrEnum):
    """How far an index is."""

    # It covers every row.
    FRESH = "fresh"
    # Rows were written since; they are found without it.
    STALE = "stale"
    # It is not built yet.
    ABSENT = "absent"
    # It cannot be built yet.
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that cannot be built yet, and why."""

    type_key: TypeKey
    property: str
    reason: str

    def to_json(self) -> JsonObject:
        """The entry of a pending index in a document."""
        return {"type_key": str(self.type_key), "property": self.property, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexStatus(HtmlDocument):
    """One declared index at one version of its table; a reason is given for a pending one."""

    type_key: TypeKey
    property: str
    covered_rows: int
    total_rows: int
    state: IndexState
    reason: str | None = None

    def __repr__(self) -> str:
        rows = f"{self.covered_rows:,} of {self.total_rows:,} rows"
        return f"IndexStatus({self.type_key}.{self.property}, {self.state.value}, {rows})"

    def to_json(self) -> JsonObject:
        """The entry of an index in the document of all."""
        return {
            "type_key": str(self.type_key),
            "property": self.property,
            "kind": INDEX_KIND,
            "covered_rows": self.covered_rows,
            "total_rows": self.total_rows,
            "state": self.state.value,
            "reason": self.reason,
        }


def list_index_status(view: View) -> list[IndexStatus]:
    """Every declared index: node types by name, then edge types, each in the order of its own."""
    return [
        status
        for key, declared in list_declared_indexes(view).items()
        for status in _iter_table_status(view.open_table(key), declared)
    ]


def find_pending_reason(table: Table) -> str | None:
    """Why no index can be built on a version; None when they can."""
    return None if table.count() else "the type has no rows yet"


def _iter_table_status(table: Table, declared: tuple[DeclaredIndex, ...]) -> Iterator[IndexStatus]:
    known = {index.name: index for index in table.indexes}
    for each in declared:
        index = known.get(each.spec.name)
        covered, reason = 0, None
        if index is not None:
            covered = table.count_covered_rows(index)
            state = IndexState.STALE if index.uncovered else IndexState.FRESH
        else:
            reason = find_pending_reason(table)
            state = IndexState.ABSENT if reason is None else IndexState.PENDING
        yield IndexStatus(each.type_key, each.property, covered, table.count(), state, reason)


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """An index that a type shall have; `property` is `@id`, `@src` or `@dst` for what has none.

    `serves_writes` says that writes of single rows look values up in it. What is not `by_default`
    is built when a command asks for it: an index of texts holds a copy of all of them.
    """

    type_key: TypeKey
    property: str
    spec: IndexSpec
    serves_writes: bool = True
    by_default: bool = True


def list_declared_indexes(view: View) -> Mapping[TypeKey, tuple[DeclaredIndex, ...]]:
    """The indexes of every type with a table: those of ids and ends, then by property."""
    return {key: tuple(_iter_declared(view, key, type_)) for key, type_ in view.types.items()}


def can_be_indexed(type_: PropertyType) -> bool:
    """Whether an index suits values of a type."""
    match type_.value:
        case ScalarType(Scalar.BLOB):
            return False
        case EnumType() | ScalarType():
            return True
        case VectorType() | ListType():
            # Searches keep vectors, and the words of texts, by themselves.
            return False
    assert_never(type_.value)


def _iter_declared(view: View, key: TypeKey, type_: NodeType | EdgeType) -> Iterator[DeclaredIndex]:
    columns = {ID_PROPERTY: ID_COLUMN}
    if isinstance(type_, EdgeType):
        columns |= {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}
    for name, column in columns.items():
        yield DeclaredIndex(key, name, _build_spec(column))
    constraints = type_.constraints
    # Writes look up the entities that hold a unique value, by any of its members.
    unique = {member for members in constraints.uniques for member in members}
    # Several members of a key are found together, by the id that they make.
    is_single = constraints.key is not None and len(constraints.key) == 1
    keys = set(constraints.key or ()) if is_single else set()
    named = {members[0] for members in constraints.indexes if len(members) == 1}
    for name in sorted((named | unique | keys) & type_.properties.keys()):
        property_type = type_.properties[name].type
        if can_be_indexed(property_type):
            yield DeclaredIndex(
                key,
                name,
                _build_spec(view.get_shape(key).columns[name]),
                serves_writes=name in unique,
                by_default=name in unique | keys or property_type.value != _TEXT,
            )


def _build_spec(column: str) -> IndexSpec:
    # The column has its name for life, so an index outlives every rename.
    return IndexSpec(f"{column}.{INDEX_KIND}", column)
