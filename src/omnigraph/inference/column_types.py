"""The type of a property from the values of a column, by the coercions that a load uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.property_types import ListType, PropertyType, Scalar, ScalarType, VectorType
from omnigraph.writers.inputs.coerced_columns import decode_plain
from omnigraph.writers.inputs.csv_reader import coerce_texts

# What the texts of a file may stand for, the narrowest first. Integers are I64: that they are small
# in the rows that were read says nothing of the next.
_WRITTEN: Final = (
    Scalar.BOOL,
    Scalar.I64,
    Scalar.U64,
    Scalar.F64,
    Scalar.DATE,
    Scalar.DATETIME,
)
_TIMES: Final = (Scalar.DATE, Scalar.DATETIME)
# Leading zeros are part of a code, not of a number.
_PADDED = r"^[+-]?0[0-9]"
# A shorter list of floats is more likely a pair or a range than a vector.
_VECTOR_SIZE_MIN = 8
_SCALARS: Final[tuple[tuple[Callable[[pa.DataType], bool], Scalar], ...]] = (
    (pa.types.is_boolean, Scalar.BOOL),
    (pa.types.is_uint64, Scalar.U64),
    (pa.types.is_uint32, Scalar.U32),
    (pa.types.is_int64, Scalar.I64),
    (pa.types.is_integer, Scalar.I32),
    (pa.types.is_float64, Scalar.F64),
    (pa.types.is_floating, Scalar.F32),
    (pa.types.is_decimal, Scalar.F64),
    (pa.types.is_date32, Scalar.DATE),
    (pa.types.is_date64, Scalar.DATETIME),
    (pa.types.is_timestamp, Scalar.DATETIME),
    (pa.types.is_binary, Scalar.BLOB),
    (pa.types.is_large_binary, Scalar.BLOB),
    (pa.types.is_fixed_size_binary, Scalar.BLOB),
    (pa.types.is_string, Scalar.STRING),
    (pa.types.is_large_string, Scalar.STRING),
    (pa.types.is_null, Scalar.STRING),
)


def infer_property_type(values: pa.Array, *, is_text: bool) -> PropertyType | None:
    """The type whose values these are, nullable if one of them is null; None if there is none.

    In a text file every value is a text, and may stand for a number.
    """
    plain = decode_plain(values)
    value = _find_list_type(plain) or _find_scalar_type(plain, is_text=is_text)
    return None if value is None else PropertyType(value, plain.null_count > 0)


def _find_scalar_type(values: pa.Array, *, is_text: bool) -> ScalarType | None:
    scalar = _find_scalar(values.type)
    if scalar is Scalar.STRING and values.null_count < len(values):
        candidates = _WRITTEN if is_text else _TIMES
        scalar = next((each for each in candidates if _can_be(values, each)), scalar)
    return None if scalar is None else ScalarType(scalar)


def _find_scalar(type_: pa.DataType) -> Scalar | None:
    return next((scalar for is_kind, scalar in _SCALARS if is_kind(type_)), None)


def _can_be(texts: pa.Array, scalar: Scalar) -> bool:
    """Whether a load makes a value of every text, and nothing of its spelling is lost."""
    if scalar not in _TIMES and pc.any(pc.match_substring_regex(texts, _PADDED)).as_py():
        return False
    return coerce_texts(texts, PropertyType(ScalarType(scalar)), is_strict=True).bad is None


def _find_list_type(values: pa.Array) -> ListType | VectorType | None:
    type_ = values.type
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_) or _has_fixed_size(type_)):
        return None
    element = decode_plain(values.flatten())
    scalar = _find_scalar(element.type)
    if pa.types.is_floating(element.type) and (size := _find_size(values)) is not None:
        return VectorType(size)
    if scalar is None or scalar is Scalar.BLOB:
        return None
    return ListType(scalar)


def _has_fixed_size(type_: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(type_))


def _find_size(values: pa.Array) -> int | None:
    """How many elements every list has, if that makes vectors of them."""
    if _has_fixed_size(values.type):
        return int(values.type.list_size)
    sizes = pc.unique(pc.drop_null(pc.list_value_length(values)))
    size = sizes[0].as_py() if len(sizes) == 1 else 0
    return size if size >= _VECTOR_SIZE_MIN else None
