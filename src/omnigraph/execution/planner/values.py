"""Values of columns as the integers that aggregates are made from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.order import decode_floats, encode_floats
from omnigraph.execution.planner.amounts import CHECKED_MAX, CheckedInts, IntOverflowError
from omnigraph.execution.source import DenseIds
from omnigraph.execution.topology.columns import DenseColumn, NumberColumn, TextColumn

_SIGN_BIT = np.uint64(2**63)


def to_checked_ints(column: DenseColumn, at: DenseIds | None) -> CheckedInts:
    """Integers to be added up, with zero for nulls."""
    assert isinstance(column, NumberColumn)
    numbers = column.numbers
    bound = max(abs(int(numbers.min(initial=0))), abs(int(numbers.max(initial=0))))
    if bound >= CHECKED_MAX:
        raise IntOverflowError
    return CheckedInts(column.get_numbers(at).astype(np.int64, copy=False), bound)


def encode_order(column: DenseColumn, at: DenseIds | None) -> npt.NDArray[np.int64]:
    """Integers that compare as the values do; any for nulls."""
    if isinstance(column, TextColumn):
        codes = column.get_codes(at)
        if not len(column.texts):
            return np.zeros(len(codes), np.int64)
        # A null has the last code, and is told apart by those who ask.
        return column.code_ranks.take(codes, mode="wrap").astype(np.int64)
    assert isinstance(column, NumberColumn)
    numbers = column.get_numbers(at)
    if numbers.dtype.kind == "f":
        return encode_floats(numbers.astype(np.float64))
    if numbers.dtype == np.uint64:
        return (numbers ^ _SIGN_BIT).view(np.int64)
    return numbers.astype(np.int64)


def decode_order(
    column: DenseColumn, codes: npt.NDArray[np.int64], is_null: npt.NDArray[np.bool_]
) -> pa.Array:
    """The values that codes stand for, of the type of the column."""
    if isinstance(column, TextColumn):
        if is_null.all():
            return pa.nulls(len(codes), column.kind)
        ranks = column.code_ranks
        by_rank = np.empty(len(ranks), np.int32)
        by_rank[ranks] = np.arange(len(by_rank), dtype=np.int32)
        places = by_rank.take(np.where(is_null, 0, codes))
        return column.dictionary.take(pa.array(places, mask=is_null)).cast(column.kind)
    assert isinstance(column, NumberColumn)
    codes = np.where(is_null, 0, codes)
    dtype = column.dtype
    if dtype.kind == "f":
        numbers = decode_floats(codes).astype(dtype)
    elif dtype == np.uint64:
        numbers = codes.view(np.uint64) ^ _SIGN_BIT
    else:
        numbers = codes.astype(dtype)
    found = pa.array(numbers, mask=is_null)
    return found if found.type == column.kind else found.view(column.kind)
