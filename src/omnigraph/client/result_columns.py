"""The columns of a result by the Arrow types of its rows."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.query.logical_plan import ResultColumn
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)

_SCALARS: Final = {
    pa.bool_(): Scalar.BOOL,
    pa.int32(): Scalar.I32,
    pa.int64(): Scalar.I64,
    pa.uint32(): Scalar.U32,
    pa.uint64(): Scalar.U64,
    pa.float32(): Scalar.F32,
    pa.float64(): Scalar.F64,
    pa.date32(): Scalar.DATE,
    pa.timestamp("ms", "UTC"): Scalar.DATETIME,
    pa.duration("ms"): Scalar.DURATION,
}


def describe_column(field: pa.Field) -> ResultColumn:
    """A column; texts, enums and whole nodes are alike: a server does not say which it was."""
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        return ResultColumn(field.name, PropertyType(VectorType(kind.list_size), is_nullable=True))
    if pa.types.is_list(kind):
        element = _SCALARS.get(kind.value_type, Scalar.STRING)
        return ResultColumn(field.name, PropertyType(ListType(element), is_nullable=True))
    scalar = _SCALARS.get(kind, Scalar.STRING)
    return ResultColumn(field.name, make_scalar_type(scalar, is_nullable=True))
