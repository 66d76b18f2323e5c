"""Sets of numbers of nodes and edges, and of pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.sources.graph_source import DenseIds, Neighbours, RowIndices
from omnigraph.sorted_search import are_among, drop_repeated

# A place and a number in 64 bits: pairs sort as integers, which is many times faster than by two
# columns.
Pairs: TypeAlias = npt.NDArray[np.int64]

NO_ROW_INDICES: RowIndices = np.zeros(0, np.int64)
NO_DENSE_IDS: DenseIds = np.zeros(0, np.int32)

_LOW_BITS = np.int64(32)
_LOW_MASK = np.int64(2**32 - 1)
# A bitmap costs its size and a sort its rows: the first wins if it is not much larger.
_BITMAP_FACTOR = 16
# From so many pairs on, marking hashes of the known ones first is cheaper than searching all.
_MARKED_MIN = 20_000
_MARKS_PER_PAIR = 8
_MARK_BITS_MAX = 26
_WORD_BITS = 64
# 2**64 divided by the golden ratio: its upper bits are well mixed.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def find_distinct(numbers: DenseIds) -> tuple[DenseIds, RowIndices]:
    """The distinct numbers, ascending, and the place of each given number among them."""
    if len(numbers) <= 1:
        return numbers, np.zeros(len(numbers), np.int64)
    size = int(numbers.max()) + 1
    if size > _BITMAP_FACTOR * len(numbers):
        return np.unique(numbers, return_inverse=True)
    at = numbers.astype(np.intp)
    is_there = np.zeros(size, np.bool_)
    is_there[at] = True
    kept = np.flatnonzero(is_there)
    place_of = np.zeros(size, np.int64)
    place_of[kept] = np.arange(len(kept))
    return kept.astype(np.int32), place_of.take(at)


def sort_distinct(numbers: DenseIds) -> DenseIds:
    """The distinct numbers, ascending."""
    return drop_repeated(np.sort(numbers))


def count_occurrences(places: RowIndices, numbers: DenseIds) -> RowIndices:
    """How often each place stands for its number."""
    return np.bincount(places, minlength=len(numbers))


def pack_pairs(places: RowIndices, ends: DenseIds) -> Pairs:
    """Pairs of a place and a number from 0, in the order of places, then of numbers."""
    pairs: Pairs = (places << _LOW_BITS) | ends
    return pairs


def unpack_pairs(pairs: Pairs) -> Neighbours:
    """The places and the numbers of pairs."""
    return Neighbours(pairs >> _LOW_BITS, (pairs & _LOW_MASK).astype(np.int32))


def sort_distinct_pairs(pairs: Pairs) -> Pairs:
    """The distinct pairs, ascending; the given ones are sorted in place."""
    pairs.sort()
    return drop_repeated(pairs)


def is_among(pairs: Pairs, known: Pairs) -> npt.NDArray[np.bool_]:
    """Which pairs are among known ones, which are ascending."""
    if len(pairs) < _MARKED_MIN or not len(known):
        return are_among(pairs, known)
    # A search goes through all of memory. Most pairs that are not there show it by one look at a
    # table of hashes, and only the others are searched.
    bits = min(max(_MARKS_PER_PAIR * len(known), 2).bit_length(), _MARK_BITS_MAX)
    is_marked = np.zeros(1 << bits, np.bool_)
    is_marked[_hash_pairs(known, bits)] = True
    found = is_marked.take(_hash_pairs(pairs, bits))
    candidates = np.flatnonzero(found)
    found[candidates] = are_among(pairs.take(candidates), known)
    return found


def expand_runs(counts: RowIndices) -> tuple[RowIndices, RowIndices]:
    """For runs of these lengths, the run of each item, and its place within the run."""
    ends = np.cumsum(counts)
    of_run = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - (ends - counts).take(of_run)
    return of_run, within


def split_by_counts(counts: RowIndices | None, size: int, most: int) -> Iterator[tuple[int, int]]:
    """Where to cut items, so that what they count is not much more than so many at once.

    Without counts they are not cut.
    """
    if counts is None or not size:
        yield 0, size
        return
    ends = np.cumsum(counts)
    first = made = 0
    while first < size:
        last = max(int(np.searchsorted(ends, made + most, side="right")), first + 1)
        yield first, last
        first, made = last, int(ends[last - 1])


def _hash_pairs(pairs: Pairs, bits: int) -> RowIndices:
    hashes = pairs.view(np.uint64) * _HASH_FACTOR
    hashes >>= np.uint64(_WORD_BITS - bits)
    return hashes.view(np.int64)
