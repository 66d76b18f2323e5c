"""How the types of an accepted schema lie in tables.

The column of a property is called `c` and the number of the property, as in `c7`. The number is the
only thing about a property that never changes and is never given twice, so that a rename touches no
table, and a property added under the name of a dropped one cannot meet the old one's values. A name
in it would be that of its birth, which an accepted schema does not keep, and would mislead a reader
of the table after a rename. A property whose values are converted to another type gets another
column, as in `c7_2_i64`, and older versions of the table keep the one before.

Columns are listed in the order of those numbers: the order of names at the birth of a type, then
whatever is added later. A table has columns that were made by a conversion at its end.

Every property column is nullable, whatever its property says. A soft drop leaves the column in the
table, and later rows come without it; that a value is required is a rule of the schema in force, to
be checked before rows get here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import pyarrow as pa

from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind, list_key_members
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.storage.tables.blob_columns import make_blob_field
from omnigraph.versioning.effects import ID_COLUMN

SOURCE_COLUMN = "__src"
TARGET_COLUMN = "__dst"
_END_COLUMNS = {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}

_ARROW_SCALARS = {
    Scalar.STRING: pa.utf8(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATETIME: pa.date64(),
    Scalar.DATE: pa.date32(),
    Scalar.DURATION: pa.duration("ms"),
}


@dataclass(frozen=True)
class TableShape:
    """The table of one node or edge type: its columns, and which of them hold what."""

    type_key: TypeKey
    schema: pa.Schema
    # The physical column of each property, by property name in the order of names.
    columns: Mapping[str, str]
    # The members of the key and their columns, in the order an id lists them; empty without a key.
    key: Mapping[str, str]

    @cached_property
    def id_columns(self) -> frozenset[str]:
        """The columns that hold the id: also the key, if it is one text."""
        columns = list(self.key.values())
        is_text = len(columns) == 1 and pa.types.is_string(self.schema.field(columns[0]).type)
        return frozenset({ID_COLUMN, *columns} if is_text else {ID_COLUMN})


def build_table_shape(accepted: AcceptedSchema, type_key: TypeKey) -> TableShape:
    """How the rows of a node or edge type lie in its table."""
    type_ = _get_table_type(accepted, type_key)
    ids = accepted.identities[type_key].property_ids
    columns = {name: accepted.find_column(ids[name]) for name in sorted(type_.properties)}
    members = list_key_members(accepted, type_key.name, kind=type_key.kind)
    ends = (SOURCE_COLUMN, TARGET_COLUMN) if type_key.kind is TypeKind.EDGE else ()
    schema = pa.schema(
        [
            *(pa.field(name, pa.utf8(), nullable=False) for name in (ID_COLUMN, *ends)),
            *(
                _build_field(columns[name], type_.properties[name].type)
                for name in sorted(columns, key=ids.__getitem__)
            ),
        ]
    )
    return TableShape(
        type_key, schema, columns, {name: (_END_COLUMNS | columns)[name] for name in members}
    )


def arrow_type_of(type_: PropertyType) -> pa.DataType:
    """The Arrow type of a property's values as all code above the tables sees them."""
    match type_.value:
        case ScalarType(scalar):
            return _ARROW_SCALARS[scalar]
        case EnumType():
            return pa.utf8()
        case VectorType(dimension):
            return pa.list_(pa.field("item", pa.float32()), dimension)
        case ListType(element):
            return pa.list_(pa.field("item", _ARROW_SCALARS[element]))
    assert_never(type_.value)


def _get_table_type(accepted: AcceptedSchema, type_key: TypeKey) -> NodeType | EdgeType:
    match type_key.kind:
        case TypeKind.NODE:
            return accepted.catalog.nodes[type_key.name]
        case TypeKind.EDGE:
            return accepted.catalog.edges[type_key.name]
        case TypeKind.INTERFACE:
            raise ValueError(f"{type_key} has no table")
    assert_never(type_key.kind)


def _build_field(column: str, type_: PropertyType) -> pa.Field:
    return make_blob_field(column) if type_.is_blob else pa.field(column, arrow_type_of(type_))
