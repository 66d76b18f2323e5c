"""The order of values: null first, then all others, NaN last; descending is the exact reverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import Values, flat, numpy_of, plain

Codes: TypeAlias = npt.NDArray[Any]  # Any: integers of any kind; their order is all that counts
Places: TypeAlias = npt.NDArray[np.int64]

_SIGN = np.int64(63)
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_SIGN_BIT = np.uint64(2**63)


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column to sort by."""

    values: Values
    is_descending: bool = False


def sorted_places(keys: Sequence[SortKey], count: int, *, limit: int | None = None) -> Places:
    """The places of `count` rows in the order of the keys, or of the first rows in it.

    Each key is looked at only where the ones before it leave ties: the last one is mostly an id,
    whose order is expensive and seldom needed.
    """
    places: Places = np.arange(count)
    # The number of the tie that each row is part of, in the order of rows so far.
    ties: Places = np.zeros(count, np.int64)
    for number, key in enumerate(keys):
        tied = np.flatnonzero(_is_tied(ties))
        if not len(tied):
            break
        codes = _codes_of(_taken(key, places[tied]) if number else key)
        if number == 0 and limit is not None and 0 < limit < count:
            kept = _first_places(codes, limit)
            places, ties, tied = places[kept], ties[kept], np.arange(len(kept))
            codes = [each[kept] for each in codes]
        order = np.lexsort([*reversed(codes), ties[tied]])
        places[tied] = places[tied][order]
        starts = np.append(True, ties[1:] != ties[:-1])
        for each in codes:
            starts[tied[1:]] |= np.diff(each[order]) != 0
        ties = np.cumsum(starts) - 1
    return places[:limit]


def ordered_codes(values: Values) -> Codes:
    """Integers in the order of values, equal exactly for equal ones; all nulls have the same."""
    values = plain(values)
    kind = values.type
    if pa.types.is_floating(kind):
        return float_codes(numpy_of(values.cast(pa.float64())))
    if pa.types.is_integer(kind):
        return numpy_of(values)
    if pa.types.is_boolean(kind):
        return numpy_of(values).astype(np.int8)
    return _text_codes(ordered_bytes(flat(values)) if pa.types.is_nested(kind) else flat(values))


def ordered_bytes(lists: pa.Array) -> pa.Array:
    """Bytes in the order of lists: element by element, and a shorter list before its extensions."""
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    starts = lists.offsets.to_numpy().astype(np.int64)
    elements = lists.values.slice(starts[0], starts[-1] - starts[0])
    codes = ordered_codes(elements)
    if codes.dtype != np.uint64:
        codes = codes.astype(np.int64).view(np.uint64) ^ _SIGN_BIT
    is_valid = numpy_of(elements.is_valid())
    # Two words per element: whether there is one, and which.
    words = np.stack([is_valid, np.where(is_valid, codes, 0)], axis=1).astype(">u8")
    ends = pa.array((starts - starts[0]) * words.itemsize * 2, pa.int64())
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lists), [None, ends.buffers()[1], pa.py_buffer(words.tobytes())]
    )
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, found.type))


def float_codes(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Integers in the order of floats: one zero, and one NaN after everything else."""
    bits = (numbers + 0.0).view(np.int64)
    codes = bits ^ ((bits >> _SIGN) & _ALL_BUT_SIGN)
    codes[np.isnan(numbers)] = _ALL_BUT_SIGN
    return codes


def floats_of_codes(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The floats of `float_codes`."""
    return (codes ^ ((codes >> _SIGN) & _ALL_BUT_SIGN)).view(np.float64)


def _text_codes(values: pa.Array) -> Codes:
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    # Without any value there is nothing to look up, and every index is null.
    return ranks[numpy_of(encoded.indices)] if len(ranks) else np.zeros(len(values), np.int64)


def _codes_of(key: SortKey) -> list[Codes]:
    """What to compare, the most important first."""
    codes = [ordered_codes(key.values)]
    if key.values.null_count:
        codes = [numpy_of(key.values.is_valid()).astype(np.int8), *codes]
    return [~each for each in codes] if key.is_descending else codes


def _is_tied(ties: Places) -> npt.NDArray[np.bool_]:
    """Which rows share their tie with another one."""
    is_next_equal = ties[1:] == ties[:-1]
    found: npt.NDArray[np.bool_] = np.append(is_next_equal, False) | np.append(False, is_next_equal)
    return found


def _first_places(codes: Sequence[Codes], limit: int) -> Places:
    """Places among which the first `limit` rows are, whatever later keys say."""
    candidates: Places = np.arange(len(codes[0]))
    kept: list[Places] = []
    for each in codes:
        if len(candidates) <= limit:
            break
        among = each[candidates]
        last = np.partition(among, limit - 1)[limit - 1]
        kept.append(candidates[among < last])
        limit -= len(kept[-1])
        candidates = candidates[among == last]
    return np.sort(np.concatenate([*kept, candidates]))


def _taken(key: SortKey, places: Places) -> SortKey:
    return SortKey(key.values.take(pa.array(places)), key.is_descending)
