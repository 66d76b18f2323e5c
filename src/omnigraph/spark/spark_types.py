"""Values as Spark has them, which knows fewer types than we do.

Unsigned integers become wider ones, a DateTime a timestamp in UTC, a Duration an interval of days
and seconds, a vector a list.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values, flatten_chunks

_CARRIER_TYPES: Final = {
    pa.uint32(): pa.int64(),
    # The largest of them has twenty digits.
    pa.uint64(): pa.decimal128(20, 0),
    pa.date64(): pa.timestamp("us", "UTC"),
    pa.duration("ms"): pa.duration("us"),
    pa.large_binary(): pa.binary(),
}
_SPARK_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.decimal128(20, 0): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.utf8(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.duration("us"): "interval day to second",
}
_WIRE_TYPES: Final = {
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
    pa.duration("ms"): pa.int64(),
    pa.large_binary(): pa.binary(),
    pa.null(): pa.utf8(),
}


def carrier_type_of(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which values of a column reach Spark."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(carrier_type_of(kind.value_type))
    return _CARRIER_TYPES.get(kind, kind)


def spark_type_of(kind: pa.DataType) -> str:
    """What Spark calls a type that carries values."""
    if pa.types.is_list(kind):
        return f"array<{spark_type_of(kind.value_type)}>"
    return _SPARK_NAMES[kind]


def format_spark_schema(schema: pa.Schema) -> str:
    """A schema of carried values as Spark reads it."""
    return ", ".join(f"`{field.name}` {spark_type_of(field.type)}" for field in schema)


def to_carrier(values: pa.Array) -> pa.Array:
    """Values of a table as they reach Spark."""
    kind = carrier_type_of(values.type)
    if kind == values.type:
        return values
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    if not pa.types.is_timestamp(getattr(kind, "value_type", kind)):
        return values.cast(kind)
    # By way of the milliseconds that it is: as a day, a DateTime would lose its hours.
    number, moment = pa.int64(), pa.timestamp("ms", "UTC")
    if pa.types.is_list(kind):
        number, moment = pa.list_(number), pa.list_(moment)
    return values.cast(number).cast(moment).cast(kind)


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
