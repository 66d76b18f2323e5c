"""The indexes that a schema asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.storage.index_files import IndexSpec
from omnigraph.versioning.effects import ID_COLUMN

# What stands for the id of an entity where a property is named.
ID_PROPERTY: Final = "@id"
# How documents call the one kind of index; the names of indexes end in it.
INDEX_KIND: Final = "btree"
_TEXT: Final = ScalarType(Scalar.STRING)


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
    # Writes look for those who hold what must be unique, by any of its members.
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
