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
ID: Final = "@id"
# How documents call the one kind of index; the names of indexes end in it.
KIND: Final = "btree"


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """An index that a type shall have; `property` is `@id`, `@src` or `@dst` for what has none."""

    type_key: TypeKey
    property: str
    spec: IndexSpec


def declared_indexes(view: View) -> Mapping[TypeKey, tuple[DeclaredIndex, ...]]:
    """The indexes of every type with a table: those of ids and ends, then by property."""
    return {key: tuple(_declared(view, key, type_)) for key, type_ in view.types.items()}


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


def _declared(view: View, key: TypeKey, type_: NodeType | EdgeType) -> Iterator[DeclaredIndex]:
    columns = {ID: ID_COLUMN}
    if isinstance(type_, EdgeType):
        columns |= {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}
    for name, column in columns.items():
        yield DeclaredIndex(key, name, _spec(column))
    constraints = type_.constraints
    named = {members[0] for members in constraints.indexes if len(members) == 1}
    # Several members of a key are found together, by the id that they make.
    if constraints.key is not None and len(constraints.key) == 1:
        named.add(constraints.key[0])
    for name in sorted(named & type_.properties.keys()):
        if can_be_indexed(type_.properties[name].type):
            yield DeclaredIndex(key, name, _spec(view.shape(key).columns[name]))


def _spec(column: str) -> IndexSpec:
    # The column has its name for life, so an index outlives every rename.
    return IndexSpec(f"{column}.{KIND}", column)
