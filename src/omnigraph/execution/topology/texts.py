"""Texts by number, their numbers by text, and their order; all of them can grow.

What is added stays apart until there is much of it, so that a small commit costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import flat
from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.piece import Piece, arrays_of_texts, texts_of_arrays
from omnigraph.execution.topology.text_index import HashTable, TextIndex, text_index

# More texts than this are not kept apart: a share of the others, but never fewer than some.
TAIL_SHARE_MAX: Final = 1 / 64
TAIL_MIN: Final = 1_024
# Beyond it the texts of one array need wider offsets; far below 2 GiB, for what is appended.
_TEXT_BYTES_MAX: Final = 1024**3
_RANK_BITS: Final = 32
_RANK_MASK: Final = 2**_RANK_BITS - 1


def is_long(tail: int, base: int) -> bool:
    """Whether there is so much behind something that all of it is better made anew."""
    return tail > max(TAIL_MIN, TAIL_SHARE_MAX * base)


@dataclass(frozen=True)
class Texts:
    """Texts by number, in two arrays; null where nobody knows the text any more."""

    base: pa.Array
    tail: pa.Array

    def __len__(self) -> int:
        return len(self.base) + len(self.tail)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return int(self.base.nbytes + self.tail.nbytes)

    @cached_property
    def whole(self) -> pa.Array:
        """All of them in one array."""
        return pa.concat_arrays([self.base, self.tail]) if len(self.tail) else self.base

    def take(self, at: Numbers) -> pa.Array:
        """Some of them."""
        if not len(self.tail):
            return self.base.take(pa.array(at))
        is_tail = at >= len(self.base)
        if not is_tail.any():
            return self.base.take(pa.array(at))
        first = self.base.take(pa.array(at[~is_tail]))
        second = self.tail.take(pa.array(at[is_tail] - len(self.base)))
        order = np.empty(len(at), np.int64)
        order[np.flatnonzero(~is_tail)] = np.arange(len(first))
        order[np.flatnonzero(is_tail)] = np.arange(len(first), len(at))
        return pa.concat_arrays([first, second]).take(pa.array(order))

    def extended(self, more: pa.Array) -> Texts:
        """With more of them at the end."""
        tail = pa.concat_arrays([self.tail, more.cast(self.base.type)])
        return Texts(self.base, tail)

    def to_piece(self) -> Piece:
        """The texts as arrays."""
        return Piece(arrays_of_texts(self.whole))


def texts_from(piece: Piece) -> Texts:
    """The texts in a piece."""
    return texts_of(texts_of_arrays(piece.arrays))


def texts_of(texts: pa.Array | pa.ChunkedArray) -> Texts:
    """Texts that are all in one array, which may be of large strings."""
    together = flat(widened(texts))
    return Texts(together, together.slice(0, 0))


def widened(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Texts as large strings, if one array of them needs that."""
    return texts.cast(pa.large_string()) if texts.nbytes > _TEXT_BYTES_MAX else texts


@dataclass(frozen=True)
class ChainedIndex:
    """The numbers of texts: an index of the first, and one of the others."""

    base: TextIndex
    tail: TextIndex | None = None

    def __len__(self) -> int:
        return len(self.base.texts) + (0 if self.tail is None else len(self.tail.texts))

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.base.nbytes + (0 if self.tail is None else self.tail.nbytes)

    def find_one(self, text: str) -> int:
        """The number of a text; -1 if it is not there."""
        found = self.base.find_one(text)
        if found >= 0 or self.tail is None:
            return found
        found = self.tail.find_one(text)
        return found + len(self.base.texts) if found >= 0 else found

    def find(self, wanted: pa.Array) -> Numbers:
        """The numbers of texts; -1 for those that are not there."""
        return self._chained(self.base.find(wanted), wanted, is_known=False)

    def find_known(self, wanted: pa.Array | pa.ChunkedArray) -> Numbers:
        """The numbers of texts that are known to be there; -1 for some that are not."""
        return self._chained(self.base.find_known(wanted), wanted, is_known=True)

    def to_piece(self) -> Piece | None:
        """The index as arrays, if it is in one."""
        table = self.base.table
        if table is None or self.tail is not None:
            return None
        return Piece({"hashes": table.hashes, "slots": table.slots})

    def _chained(
        self, found: Numbers, wanted: pa.Array | pa.ChunkedArray, *, is_known: bool
    ) -> Numbers:
        if self.tail is None:
            return found
        missing = np.flatnonzero(found < 0)
        if len(missing):
            asked = flat(wanted.take(pa.array(missing)))
            more = self.tail.find_known(asked) if is_known else self.tail.find(asked)
            found[missing] = np.where(more >= 0, more + len(self.base.texts), -1)
        return found


def index_from(piece: Piece, texts: Texts) -> ChainedIndex:
    """The index in a piece, given texts that begin with those it was made of."""
    table = HashTable(piece.arrays["hashes"], piece.arrays["slots"])
    return ChainedIndex(TextIndex(texts.whole.slice(0, len(table.hashes)), table))


def chained_index(texts: Texts, among: Numbers, base: TextIndex | None = None) -> ChainedIndex:
    """The index of the texts of some numbers, given that of the first texts, if there is one."""
    if base is None:
        return ChainedIndex(text_index(texts.whole, among))
    tail = _tail_index(texts, among, base)
    if tail is None:
        return ChainedIndex(text_index(texts.whole, among))
    return ChainedIndex(base, tail if len(tail.texts) else None)


def grown_index(texts: Texts, among: Numbers, base: TextIndex) -> ChainedIndex:
    """The same in one index."""
    tail = _tail_index(texts, among, base)
    if tail is None or tail.table is None or base.table is None:
        return ChainedIndex(text_index(texts.whole, among))
    table = base.table.grown(tail.table.hashes, among[among >= len(base.texts)])
    if table is None:
        return ChainedIndex(text_index(texts.whole, among))
    return ChainedIndex(TextIndex(texts.whole, table))


def _tail_index(texts: Texts, among: Numbers, base: TextIndex) -> TextIndex | None:
    """The index of the texts behind the first ones; None if hashes do not tell all of them apart.

    One may be the id of an entity that was deleted and came back: the index of the first ones
    would go on to give its old number.
    """
    count = len(base.texts)
    tail = text_index(texts.whole.slice(count), among[among >= count] - np.int32(count))
    if tail.table is None or base.knows_any(tail.table.hashes):
        return None
    return tail


@dataclass(frozen=True)
class Ranks:
    """Numbers that compare as texts do: places in the order of the first ones, and in between."""

    base: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.base.nbytes + self.tail.nbytes

    def take(self, at: Numbers) -> npt.NDArray[np.int64]:
        """The ranks of some numbers."""
        if not len(self.tail):
            return self.base.take(at).astype(np.int64)
        is_tail = at >= len(self.base)
        found = self.base.take(at, mode="clip").astype(np.int64)
        # Between two neighbours of the first ones there is room for all others.
        found = (found + 1) << _RANK_BITS
        found[is_tail] = self.tail.take(at[is_tail] - len(self.base))
        return found

    def settled(self) -> Ranks:
        """Ranks that are all places in one order."""
        before, among = self.tail >> _RANK_BITS, (self.tail & _RANK_MASK) - 1
        base = self.base + np.searchsorted(np.sort(before), self.base, "right")
        return Ranks(np.concatenate([base, before + among]).astype(np.int32), self.tail[:0])

    def to_piece(self) -> Piece | None:
        """The ranks as arrays, if they are all places."""
        return None if len(self.tail) else Piece({"ranks": self.base})


def ranks_from(piece: Piece) -> Ranks:
    """The ranks in a piece."""
    return Ranks(piece.arrays["ranks"], np.zeros(0, np.int64))


def ranks(texts: Texts, base: npt.NDArray[np.int32] | None = None) -> Ranks:
    """The ranks of texts, given those of the first of them, if there are."""
    if base is None or not len(base):
        return Ranks(text_ranks(texts.whole), np.zeros(0, np.int64))
    count = len(base)
    tail = texts.whole.slice(count)
    places = _insertion_places(texts.whole.slice(0, count), base, tail)
    return Ranks(base, (places << _RANK_BITS) + 1 + text_ranks(tail))


def text_ranks(texts: pa.Array) -> npt.NDArray[np.int32]:
    """The place of each text in the order of all of them; nulls are last."""
    order = pc.array_sort_indices(texts).to_numpy()
    found = np.empty(len(order), np.int32)
    found[order] = np.arange(len(order), dtype=np.int32)
    return found


def _insertion_places(
    texts: pa.Array, ranks_: npt.NDArray[np.int32], wanted: pa.Array
) -> npt.NDArray[np.int64]:
    """The ranks of the first texts that are not smaller than wanted ones; nulls are last.

    A text may be null by now that was known when it got its rank.
    """
    order = np.empty(len(ranks_), np.int32)
    order[ranks_] = np.arange(len(ranks_), dtype=np.int32)
    if texts.null_count:
        order = order[texts.is_valid().to_numpy(zero_copy_only=False)[order]]
    low = np.zeros(len(wanted), np.int64)
    high = np.full(len(wanted), len(order), np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        others = texts.take(pa.array(order.take(middle, mode="clip")))
        is_less = pc.fill_null(pc.less(others, wanted), False).to_numpy(zero_copy_only=False)
        is_open = low < high
        low = np.where(is_open & is_less, middle + 1, low)
        high = np.where(is_open & ~is_less, middle, high)
    # Behind the last of them come those that are null.
    places = np.append(ranks_[order], len(texts)).take(low)
    return np.where(wanted.is_valid().to_numpy(zero_copy_only=False), places, len(texts))
