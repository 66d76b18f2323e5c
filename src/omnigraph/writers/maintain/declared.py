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
from omnigraph.storage.indexes import BTREE, IndexKind
from omnigraph.versioning.effects import ID_COLUMN

# What stands for the id of an entity where a property is named.
ID: Final = "@id"


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """An index that a type shall have; `property` is `@id`, `@src` or `@dst` for what has none."""

    type_key: TypeKey
    property: str
    spec: IndexSpec


def declared_indexes(view: View) -> Mapping[TypeKey, tuple[DeclaredIndex, ...]]:
    """The indexes of every type with a table: those of ids and ends, then by property."""
    return {key: tuple(_declared(view, key, type_)) for key, type_ in view.types.items()}


def kind_of(type_: PropertyType) -> IndexKind | None:
    """The kind of index that suits values of a type; None when no kind does."""
    match type_.value:
        case ScalarType(Scalar.BLOB):
            return None
        case EnumType() | ScalarType():
            return BTREE
        case VectorType() | ListType():
            # Searches keep vectors, and the words of texts, by themselves.
            return None
    assert_never(type_.value)


def _declared(view: View, key: TypeKey, type_: NodeType | EdgeType) -> Iterator[DeclaredIndex]:
    columns = {ID: ID_COLUMN}
    if isinstance(type_, EdgeType):
        columns |= {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}
    for name, column in columns.items():
        yield DeclaredIndex(key, name, _spec(column, BTREE))
    constraints = type_.constraints
    named = {members[0] for members in constraints.indexes if len(members) == 1}
    # Several members of a key are found together, by the id that they make.
    if constraints.key is not None and len(constraints.key) == 1:
        named.add(constraints.key[0])
    for name in sorted(named & type_.properties.keys()):
        kind = kind_of(type_.properties[name].type)
        if kind is not None:
            yield DeclaredIndex(key, name, _spec(view.shape(key).columns[name], kind))


def _spec(column: str, kind: IndexKind) -> IndexSpec:
    # The column has its name for life, so an index outlives every rename.
    return IndexSpec(f"{column}.{kind.lower()}", column, kind)
