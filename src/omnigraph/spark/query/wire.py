"""Values on their way through Spark, which knows fewer types than we do.

Unsigned integers go as signed ones of the next size, or of the same bits; dates and times as the
integers they are; a vector as a list. What comes back is bit for bit what went in.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import Values, flatten_chunks

_WIRE_TYPES: Final = {
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
    pa.large_binary(): pa.binary(),
    pa.null(): pa.utf8(),
}


def wire_type_of(kind: pa.DataType) -> pa.DataType:
    """The type that carries values of a type."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(wire_type_of(kind.value_type))
    return _WIRE_TYPES.get(kind, kind)


def to_wire(values: Values) -> pa.Array:
    """Values as they are carried."""
    found = flatten_chunks(values)
    if pa.types.is_fixed_size_list(found.type):
        found = found.cast(pa.list_(found.type.value_type))
    return _cast_values(found, wire_type_of(found.type))


def from_wire(values: Values, kind: pa.DataType) -> pa.Array:
    """Carried values as those of their own type."""
    found = flatten_chunks(values)
    if not pa.types.is_fixed_size_list(kind):
        return _cast_values(found, kind)
    return _build_vectors(_cast_values(found, pa.list_(kind.value_type)), kind)


def _cast_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # Not safe, so that the bits of large unsigned integers pass as those of negative ones.
    return values if values.type == kind else values.cast(kind, safe=False)


def _build_vectors(lists: pa.Array, kind: pa.DataType) -> pa.Array:
    size = kind.list_size
    is_known = lists.is_valid()
    # Where there is no vector, there are components all the same.
    filler = pa.scalar([0.0] * size, lists.type)
    full = pc.if_else(is_known, lists, filler) if lists.null_count else lists
    return pa.FixedSizeListArray.from_arrays(
        full.flatten(), type=kind, mask=pc.invert(is_known) if lists.null_count else None
    )
