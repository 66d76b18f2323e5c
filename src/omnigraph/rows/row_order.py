"""The order of values: null first, then all others, NaN last; descending is the exact reverse."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values, flatten_chunks, to_comparable, to_numpy

Codes: TypeAlias = npt.NDArray[Any]  # Any: integers of any kind; their order is all that counts
RowIndices: TypeAlias = npt.NDArray[np.int64]

_PACKED_BITS_MAX: Final = 63
_WORD_BITS: Final = 64
_SIGN = np.int64(63)
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_SIGN_BIT = np.uint64(2**63)


# Where more than this share of the rows is wanted, choosing them first saves nothing.
_CHOSEN_SHARE_MAX = 0.5


class SortKey(Protocol):
    """Something to sort rows by, examined only where the keys before it leave ties."""

    @property
    def is_descending(self) -> bool:
        """Whether the greatest comes first."""

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        """What to compare at some rows, or at all of them, the most important first."""


@dataclass(frozen=True, slots=True)
class ValuesKey:
    """A column to sort by."""

    values: Values
    is_descending: bool = False

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        """Codes in the order of the values, after whether there is one."""
        return compute_value_codes(
            self.values if places is None else self.values.take(pa.array(places))
        )


def sort_row_indices(
    keys: Sequence[SortKey], count: int, *, limit: int | None = None
) -> RowIndices:
    """The places of `count` rows in the order of the keys, or of the first rows in it.

    Each key is examined only where the ones before it leave ties: the last one is mostly an id,
    whose order is expensive and seldom needed.
    """
    chosen: RowIndices | None = None
    if limit is not None and limit <= count * _CHOSEN_SHARE_MAX:
        chosen = _select_first_rows(keys, count, limit)
    places = np.arange(count) if chosen is None else chosen
    # The number of the tie that each row is part of, in the order of rows so far.
    ties: RowIndices = np.zeros(len(places), np.int64)
    waiting = deque(keys)
    while waiting:
        tied = np.flatnonzero(_is_tied(ties))
        if not len(tied):
            break
        is_all = len(tied) == count and len(waiting) == len(keys)
        codes = _take_next_codes(waiting, None if is_all else places[tied], ties[tied])
        order = _sort_codes(codes)
        places[tied] = places[tied].take(order)
        if not waiting:
            break
        starts = np.append(True, ties[1:] != ties[:-1])
        for each in codes:
            ordered = each.take(order)
            starts[tied[1:]] |= ordered[1:] != ordered[:-1]
        ties = np.cumsum(starts) - 1
    return places[:limit]


def _take_next_codes(
    waiting: deque[SortKey], places: RowIndices | None, ties: RowIndices
) -> list[Codes]:
    """Ties, and the codes of the next keys: of more than one, where one leaves many ties."""
    codes: list[Codes] = [ties] if ties[-1] else []
    while waiting:
        codes += _compute_directed_codes(waiting.popleft(), places)
        if sum(_count_bits(span + 1) for _, span in map(_code_range_of, codes)) >= _count_bits(
            len(ties)
        ):
            break
    return codes


def compute_value_codes(values: Values) -> list[Codes]:
    """What to compare values by, the most important first: whether there is one, then which."""
    codes = [compute_order_codes(values)]
    if values.null_count:
        codes = [to_numpy(values.is_valid()).astype(np.int8), *codes]
    return codes


def compute_order_codes(values: Values) -> Codes:
    """Integers in the order of values, equal exactly for equal ones; all nulls have the same."""
    values = to_comparable(values)
    kind = values.type
    if pa.types.is_floating(kind):
        return encode_floats(to_numpy(values.cast(pa.float64())))
    if pa.types.is_integer(kind):
        return to_numpy(values)
    if pa.types.is_boolean(kind):
        return to_numpy(values).astype(np.int8)
    return _rank_texts(
        encode_ordered_bytes(flatten_chunks(values))
        if pa.types.is_nested(kind)
        else flatten_chunks(values)
    )


def encode_ordered_bytes(lists: pa.Array) -> pa.Array:
    """Bytes in the order of lists: element by element, and a shorter list before its extensions."""
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    starts = lists.offsets.to_numpy().astype(np.int64)
    elements = lists.values.slice(starts[0], starts[-1] - starts[0])
    codes = compute_order_codes(elements)
    if codes.dtype != np.uint64:
        codes = codes.astype(np.int64).view(np.uint64) ^ _SIGN_BIT
    is_valid = to_numpy(elements.is_valid())
    # Two words per element: whether there is one, and which.
    words = np.stack([is_valid, np.where(is_valid, codes, 0)], axis=1).astype(">u8")
    ends = pa.array((starts - starts[0]) * words.itemsize * 2, pa.int64())
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lists), [None, ends.buffers()[1], pa.py_buffer(words.tobytes())]
    )
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, found.type))


def encode_floats(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Integers in the order of floats: one zero, and one NaN after everything else."""
    bits = (numbers + 0.0).view(np.int64)
    codes = bits ^ ((bits >> _SIGN) & _ALL_BUT_SIGN)
    codes[np.isnan(numbers)] = _ALL_BUT_SIGN
    return codes


def decode_floats(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The floats of `float_codes`."""
    return (codes ^ ((codes >> _SIGN) & _ALL_BUT_SIGN)).view(np.float64)


def _rank_texts(values: pa.Array) -> Codes:
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    # Without any value there is nothing to look up, and every index is null.
    return ranks[to_numpy(encoded.indices)] if len(ranks) else np.zeros(len(values), np.int64)


def _is_tied(ties: RowIndices) -> npt.NDArray[np.bool_]:
    """Which rows share their tie with another one."""
    is_next_equal = ties[1:] == ties[:-1]
    found: npt.NDArray[np.bool_] = np.append(is_next_equal, False) | np.append(False, is_next_equal)
    return found


def _select_first_rows(keys: Sequence[SortKey], count: int, limit: int) -> RowIndices:
    """Places of the first `limit` rows, in no order; more only where all keys are equal."""
    candidates: RowIndices | None = None
    kept: list[RowIndices] = []
    for key in keys:
        codes = _compute_directed_codes(key, candidates)
        if candidates is None:
            candidates = np.arange(count)
        while codes and limit and len(candidates) > limit:
            among, *codes = codes
            last = np.partition(among, limit - 1)[limit - 1]
            kept.append(candidates[among < last])
            limit -= len(kept[-1])
            is_last = among == last
            candidates = candidates[is_last]
            codes = [each[is_last] for each in codes]
        if len(candidates) <= limit or not limit:
            break
    rest = np.arange(count) if candidates is None else candidates
    return np.concatenate([*kept, rest[:limit]])


def _compute_directed_codes(key: SortKey, places: RowIndices | None) -> list[Codes]:
    codes = key.compute_codes(places)
    return [~each for each in codes] if key.is_descending else codes


def _sort_codes(codes: Sequence[Codes]) -> RowIndices:
    """The places of rows in the order of codes, the most important first.

    Integers are sorted several times as fast as places by them, so as many bits of the codes as fit
    are sorted together with the places; the other bits only where those leave ties.
    """
    packed, rest = _pack_codes(codes)
    packed.sort()
    place_bits = _count_bits(len(packed))
    order: RowIndices = packed & (2**place_bits - 1)
    if rest:
        packed >>= place_bits
        tied = np.flatnonzero(_is_tied(packed))
        if len(tied):
            places, equal = order[tied], packed[tied]
            ties = np.append(0, np.cumsum(equal[1:] != equal[:-1]))
            order[tied] = places.take(_sort_codes([ties, *(each.take(places) for each in rest)]))
    return order


def _pack_codes(codes: Sequence[Codes]) -> tuple[RowIndices, list[Codes]]:
    """The first bits of all codes and its place as one integer per row, and what did not fit."""
    rows = len(codes[0])
    room = _PACKED_BITS_MAX - _count_bits(rows)
    packed = np.zeros(rows, np.int64)
    rest: list[Codes] = []
    for number, each in enumerate(codes):
        low, span = _code_range_of(each)
        # Differences of the widest integers of both kinds fit the unsigned ones.
        above = (each if each.dtype == np.uint64 else each.astype(np.int64)).view(np.uint64)
        above = above - np.uint64(low % 2**64)
        bits = _count_bits(span + 1)
        left = max(bits - room, 0)
        packed <<= bits - left
        packed |= (above >> np.uint64(left)).view(np.int64) if left < _WORD_BITS else 0
        room -= bits - left
        if left:
            rest = [above & np.uint64(2**left - 1), *codes[number + 1 :]]
            break
    packed <<= _count_bits(rows)
    packed |= np.arange(rows)
    return packed, rest


def _code_range_of(codes: Codes) -> tuple[int, int]:
    """The least code, and how far the greatest is from it."""
    low = int(codes.min())
    return low, int(codes.max()) - low


def _count_bits(count: int) -> int:
    """How many bits so many numbers need."""
    return max(count - 1, 0).bit_length()
