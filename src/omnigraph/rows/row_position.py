"""Positions in an order of rows: the keys of a row, as texts keep them, compared with others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values, flatten_chunks, to_comparable, to_numpy
from omnigraph.rows.row_order import compute_order_codes, encode_ordered_bytes

# A value of a key in a document: a whole number also stands for a date or an instant.
KeyValue: TypeAlias = bool | int | float | str | list[Any] | None  # Any: a value of a key
# For each row -1, 0 or 1: whether it comes before, at or after a position.
Signs: TypeAlias = npt.NDArray[np.int8]

_SPECIAL: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True)
class RowPosition:
    """After so many of the rows that have these keys, which no key distinguishes."""

    keys: tuple[KeyValue, ...]
    repeats: int = 1


class PositionError(ValueError):
    """Keys that are not those of a row."""


def compare_with(values: Values, key: KeyValue) -> Signs:
    """How values compare with one: null first, then all others, NaN last."""
    values = flatten_chunks(values)
    both = pa.concat_arrays([values, _decode_key(key, values.type)])
    is_known = to_numpy(both.is_valid()).astype(np.int8)
    signs = _compare_known(both)
    if both.null_count:
        signs = np.where((is_known & is_known[-1]).astype(np.bool_), signs, is_known - is_known[-1])
    found: Signs = signs[:-1].astype(np.int8)
    return found


def _compare_known(values: pa.Array) -> Signs:
    """How values compare with the last one of them, where both are known."""
    values = to_comparable(values)
    if pa.types.is_nested(values.type):
        values = encode_ordered_bytes(flatten_chunks(values))
    elif not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        codes = compute_order_codes(values)
        found: Signs = np.greater(codes, codes[-1]).astype(np.int8)
        found -= np.less(codes, codes[-1])
        return found
    # Bytes are compared as they are: their codes would need all of them in order.
    last = values[-1]
    above, below = (
        to_numpy(pc.fill_null(compare(values, last), fill_value=False)).astype(np.int8)
        for compare in (pc.greater, pc.less)
    )
    return above - below


def encode_keys(columns: Sequence[Values], row: int) -> tuple[KeyValue, ...]:
    """The keys of a row in a document."""
    return tuple(_encode_scalar(flatten_chunks(column)[row]) for column in columns)


def _encode_scalar(value: pa.Scalar) -> KeyValue:
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_nested(kind):
        return [_encode_scalar(each) for each in value.values]
    if pa.types.is_temporal(kind):
        value = value.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    found: KeyValue = value.as_py()
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    return found


def _decode_key(key: KeyValue, kind: pa.DataType) -> pa.Array:
    """An array of one value."""
    found = _require(key, kind)
    try:
        return pa.array([found], kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as failure:
        raise PositionError(f"{key!r} is not a {kind}") from failure


def _require(key: KeyValue, kind: pa.DataType) -> KeyValue:
    """A key that is of a type; Arrow would also take a number for a truth, and so on."""
    if key is None:
        return None
    if pa.types.is_nested(kind) and isinstance(key, list):
        return [_require(each, kind.value_type) for each in key]
    if pa.types.is_floating(kind) and isinstance(key, str) and key in _SPECIAL:
        return _SPECIAL[key]
    if type(key) is not _python_type_of(kind):
        raise PositionError(f"{key!r} is not a {kind}")
    return key


def _python_type_of(kind: pa.DataType) -> type:
    """The type of values in a document; dates and instants are whole numbers there."""
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_floating(kind):
        return float
    return int if pa.types.is_integer(kind) or pa.types.is_temporal(kind) else str
