"""The type that holds the values of two columns of the same name."""

from __future__ import annotations

import pyarrow as pa


def widen_types(type_: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of two; None where values of one are not of the other."""
    if type_.equals(other) or pa.types.is_null(other):
        return type_
    if pa.types.is_null(type_):
        return other
    if (_is_number(type_) and _is_number(other)) or _are_decimals(type_, other):
        schemas = [pa.schema([("x", each)]) for each in (type_, other)]
        found: pa.DataType = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        return found
    return type_ if _have_one_form(type_, other) else None


def _have_one_form(type_: pa.DataType, other: pa.DataType) -> bool:
    """Whether readers take two types for one: how values are stored, and members, may differ."""
    if pa.types.is_struct(type_) and pa.types.is_struct(other):
        both = [each for each in type_ if other.get_field_index(each.name) >= 0]
        found = [widen_types(each.type, other.field(each.name).type) for each in both]
        return None not in found
    if _is_list(type_) and _is_list(other):
        return widen_types(type_.value_type, other.value_type) is not None
    return _find_family(type_) == _find_family(other)


def _find_family(type_: pa.DataType) -> str:
    if pa.types.is_dictionary(type_):
        return _find_family(type_.value_type)
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamp of a zone"
    if pa.types.is_map(type_):
        return "map"
    if pa.types.is_fixed_size_binary(type_):
        return "binary"
    return str(type_).removeprefix("large_").removesuffix("_view")


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _are_decimals(type_: pa.DataType, other: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_) and pa.types.is_decimal(other))
