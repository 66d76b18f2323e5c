"""Texts by number, their numbers by text, and their order; all of them can grow.

What is added stays apart until there is much of it, so that a small commit costs little.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.cache_files import CacheBlock, decode_texts, encode_texts
from omnigraph.execution.sources.topology.text_index import (
    ABSENT,
    FEW_TEXTS,
    HashTable,
    TextIndex,
    build_text_index,
)
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.hashing import hash_text

# More texts than this are not kept apart: a share of the others, but never fewer than some.
TAIL_SHARE_MAX: Final = 1 / 64
TAIL_MIN: Final = 1_024
# Beyond it the texts of one array need wider offsets; far below 2 GiB, for what is appended.
_TEXT_BYTES_MAX: Final = 1024**3
# What a short text takes in a dictionary of Python, with its number.
_TAIL_BYTES: Final = 160
# More texts than this are looked up in arrays, which take longer to make.
_LOOKUPS_MAX: Final = 4_096
_RANK_BITS: Final = 32
_RANK_MASK: Final = 2**_RANK_BITS - 1


def is_long(tail: int, base: int) -> bool:
    """Whether so much was appended to something that all of it is better made anew."""
    return tail > max(TAIL_MIN, TAIL_SHARE_MAX * base)


@dataclass(frozen=True)
class TextArray:
    """Texts by number, in two arrays; null where the text is no longer known."""

    base: pa.Array
    tail: pa.Array
    # Arrow adds the bytes of an array up whenever it is asked, which takes longer than a look-up.
    base_bytes: int = 0

    def __len__(self) -> int:
        return len(self.base) + len(self.tail)

    @cached_property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.base_bytes + int(self.tail.nbytes)

    @cached_property
    def whole(self) -> pa.Array:
        """All of them in one array."""
        return self.concatenate()

    def take(self, at: DenseIds) -> pa.Array:
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

    def take_after(self, count: int) -> pa.Array:
        """Those after the first so many."""
        if count < len(self.base):
            return pa.concat_arrays([self.base.slice(count), self.tail])
        return self.tail.slice(count - len(self.base))

    def take_one(self, number: int) -> pa.Array:
        """One of them, as an array."""
        if number < len(self.base):
            return self.base.slice(number, 1)
        return self.tail.slice(number - len(self.base), 1)

    def extend(self, more: pa.Array) -> TextArray:
        """With more of them at the end."""
        tail = pa.concat_arrays([self.tail, more.cast(self.base.type)])
        found = TextArray(self.base, tail, self.base_bytes)
        return text_array_of(found.concatenate()) if is_long(len(tail), len(self.base)) else found

    def concatenate(self) -> pa.Array:
        """All of them in one array, which is not kept."""
        return pa.concat_arrays([self.base, self.tail]) if len(self.tail) else self.base

    def to_block(self) -> CacheBlock:
        """The texts as arrays."""
        return CacheBlock(encode_texts(self.concatenate()))


def decode_text_array(piece: CacheBlock) -> TextArray:
    """The texts in a piece."""
    return text_array_of(decode_texts(piece.arrays))


def text_array_of(texts: pa.Array | pa.ChunkedArray) -> TextArray:
    """Texts that are all in one array, which may be of large strings."""
    together = flatten_chunks(widen_texts(texts))
    return TextArray(together, together.slice(0, 0), int(together.nbytes))


def widen_texts(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Texts as large strings, if one array of them needs that."""
    return texts.cast(pa.large_string()) if texts.nbytes > _TEXT_BYTES_MAX else texts


class _SharedNumbers:
    """Texts and their numbers: versions that follow each other share one, and see their part."""

    def __init__(self, numbers: dict[str, int], stop: int) -> None:
        self.numbers = numbers
        self.stop = stop
        self.lock = threading.Lock()


@dataclass(frozen=True)
class TailIndex:
    """The numbers of texts that came after those of an index; it never changes itself."""

    known: _SharedNumbers
    # The numbers it knows of: from the first after the index on.
    start: int
    stop: int
    # Whether the index may know one of them, too: as the text of an entity that is gone.
    is_shadowing: bool = False

    def extend(self, texts: list[str | None], numbers: list[int], base: TextIndex) -> TailIndex:
        """With more texts; the numbers follow those that it knows."""
        known, stop = self.known, self.stop + len(texts)
        there = {text: at for text, at in zip(texts, numbers, strict=True) if text is not None}
        with known.lock:
            # Another branch may have gone its own way from here. And an id that comes back has
            # another number from now on, while older versions have to find the one it had.
            if known.stop != self.stop or not known.numbers.keys().isdisjoint(there):
                own = {text: at for text, at in known.numbers.items() if at < self.stop}
                known = _SharedNumbers(own, self.stop)
            known.numbers.update(there)
            known.stop = stop
        hashes = np.fromiter(map(hash_text, there), np.uint64, len(there))
        is_shadowing = self.is_shadowing or base.contains_any(hashes)
        return TailIndex(known, self.start, stop, is_shadowing)

    def find_one(self, text: str) -> int:
        """The number of a text; -1 if it is not there."""
        found = self.known.numbers.get(text, ABSENT)
        return found if found < self.stop else ABSENT

    def find(self, texts: pa.Array) -> DenseIds:
        """The numbers of texts; -1 for those that are not there."""
        if len(texts) <= _LOOKUPS_MAX:
            return np.fromiter(map(self.find_one, texts.to_pylist()), np.int32, len(texts))
        items = [item for item in list(self.known.numbers.items()) if item[1] < self.stop]
        keys, numbers = zip(*items, strict=True) if items else ((), ())
        places = build_text_index(pa.array(keys, texts.type)).find(texts)
        return np.append(np.array(numbers, np.int32), np.int32(ABSENT)).take(places)


@dataclass(frozen=True)
class ChainedIndex:
    """The numbers of texts: an index of the first, and one of the others."""

    base: TextIndex
    tail: TailIndex | None = None

    def __len__(self) -> int:
        return len(self.base.texts) if self.tail is None else self.tail.stop

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.base.nbytes + (0 if self.tail is None else _TAIL_BYTES * self._tail_size)

    @property
    def is_long(self) -> bool:
        """Whether so much was appended to the first ones that all is better in one index."""
        return is_long(self._tail_size, len(self.base.texts))

    @property
    def _tail_size(self) -> int:
        return len(self) - len(self.base.texts)

    def find_one(self, text: str) -> int:
        """The number of a text; -1 if it is not there."""
        if self.tail is not None:
            found = self.tail.find_one(text)
            if found >= 0:
                return found
        return self.base.find_one(text)

    def find(self, wanted: pa.Array) -> DenseIds:
        """The numbers of texts; -1 for those that are not there."""
        return self._find_in_tail(self.base.find(wanted), wanted)

    def find_known(self, wanted: pa.Array | pa.ChunkedArray) -> DenseIds:
        """The numbers of texts that are known to be there; -1 for some that are not."""
        if self.tail is not None and len(wanted) <= FEW_TEXTS:
            return self.find(flatten_chunks(wanted))
        # Of texts that are not compared, one may have the hash of another one.
        return self._find_in_tail(self.base.find_known(wanted), wanted)

    def extend(self, texts: pa.Array) -> ChainedIndex:
        """The index with more texts, which have the next numbers; nulls are not found."""
        if not len(texts):
            return self
        start = len(self)
        tail = self.tail or TailIndex(_SharedNumbers({}, start), start, start)
        numbers = list(range(start, start + len(texts)))
        return ChainedIndex(self.base, tail.extend(texts.to_pylist(), numbers, self.base))

    def to_block(self) -> CacheBlock | None:
        """The index as arrays, if it is in one."""
        table = self.base.table
        if table is None or self.tail is not None:
            return None
        return CacheBlock({"hashes": table.hashes, "slots": table.slots})

    def _find_in_tail(self, found: DenseIds, wanted: pa.Array | pa.ChunkedArray) -> DenseIds:
        if self.tail is None:
            return found
        missing = np.flatnonzero(found < 0)
        if self.tail.is_shadowing:
            missing = np.arange(len(found))
        if len(missing):
            asked = flatten_chunks(
                wanted if len(missing) == len(found) else wanted.take(pa.array(missing))
            )
            more = self.tail.find(asked)
            found[missing] = np.where(more >= 0, more, found[missing])
        return found


def decode_index(piece: CacheBlock, texts: TextArray) -> ChainedIndex:
    """The index in a piece, given texts that begin with those it was made of."""
    table = HashTable(piece.arrays["hashes"], piece.arrays["slots"])
    return ChainedIndex(TextIndex(texts.whole.slice(0, len(table.hashes)), table))


def build_index(texts: TextArray, among: DenseIds) -> ChainedIndex:
    """The index of the texts of some numbers."""
    return ChainedIndex(build_text_index(texts.whole, among))


def grow_index(texts: TextArray, among: DenseIds, base: TextIndex) -> ChainedIndex:
    """The index of the texts of some numbers, given that of the first texts."""
    count = len(base.texts)
    tail = build_text_index(texts.whole.slice(count), among[among >= count] - np.int32(count))
    # An id may be that of an entity that was deleted and came back: the index of the first texts
    # would go on to give its old number.
    if tail.table is None or base.table is None or base.contains_any(tail.table.hashes):
        return build_index(texts, among)
    table = base.table.grow(tail.table.hashes, among[among >= count])
    if table is None:
        return build_index(texts, among)
    return ChainedIndex(TextIndex(texts.whole, table))


class RankedTexts:
    """Texts with their places in the order of all of them, which versions share."""

    def __init__(self, ranks: npt.NDArray[np.int32], texts: pa.Array) -> None:
        self.ranks = ranks
        self.texts = texts

    def __len__(self) -> int:
        return len(self.ranks)

    @cached_property
    def order(self) -> npt.NDArray[np.int32]:
        """The texts in their order, without those that are not known any more."""
        order = np.empty(len(self.ranks), np.int32)
        order[self.ranks] = np.arange(len(self.ranks), dtype=np.int32)
        if self.texts.null_count:
            order = order[self.texts.is_valid().to_numpy(zero_copy_only=False)[order]]
        return order

    def find_insertion_ranks(self, wanted: pa.Array) -> npt.NDArray[np.int64]:
        """The ranks of the first texts that are not smaller than wanted ones; nulls are last."""
        if len(wanted) <= FEW_TEXTS:
            places = [self._find_insertion_rank(text) for text in wanted.to_pylist()]
            return np.array(places, np.int64)
        return _search_insertion_ranks(self.texts, self.ranks, self.order, wanted)

    def _find_insertion_rank(self, text: str | None) -> int:
        if text is None:
            return len(self.texts)
        order, texts = self.order, self.texts
        # Python compares texts by code point, which is the order of their bytes, too.
        place = bisect_left(range(len(order)), text, key=lambda at: texts[int(order[at])].as_py())
        return int(self.ranks[order[place]]) if place < len(order) else len(texts)


class Ranks:
    """Numbers that compare as texts do: places in the order of the first ones, and in between."""

    def __init__(
        self, base: RankedTexts, texts: TextArray, known: npt.NDArray[np.int64] | None = None
    ) -> None:
        self.base = base
        self._texts = texts
        self._known = known

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.base.ranks.nbytes

    @property
    def is_long(self) -> bool:
        """Whether so many came after the first ones that all are better ranked together."""
        return is_long(len(self._texts) - len(self.base), len(self.base))

    @cached_property
    def _tail_positions(self) -> npt.NDArray[np.int64]:
        """Where the texts after the first ones belong among these."""
        known = np.zeros(0, np.int64) if self._known is None else self._known
        more = self.base.find_insertion_ranks(self._texts.take_after(len(self.base) + len(known)))
        return np.concatenate([known, more])

    @cached_property
    def tail(self) -> npt.NDArray[np.int64]:
        """The ranks of the texts after the first ones."""
        among = rank_texts(self._texts.take_after(len(self.base)))
        return (self._tail_positions << _RANK_BITS) + 1 + among

    def take(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """The ranks of some numbers."""
        if len(self._texts) == len(self.base):
            return self.base.ranks.take(at).astype(np.int64)
        is_tail = at >= len(self.base)
        found = self.base.ranks.take(at, mode="clip").astype(np.int64)
        # Between two neighbours of the first ones there is room for all others.
        found = (found + 1) << _RANK_BITS
        if is_tail.any():
            found[is_tail] = self.tail.take(at[is_tail] - len(self.base))
        return found

    def extend(self, texts: TextArray) -> Ranks:
        """The ranks of more texts."""
        if not len(self.base):
            return build_ranks(texts)
        found = Ranks(self.base, texts, self.__dict__.get("_tail_positions", self._known))
        return found.settle() if found.is_long else found

    def settle(self) -> Ranks:
        """Ranks that are all places in one order."""
        if len(self._texts) == len(self.base):
            return self
        before, among = self._tail_positions, (self.tail & _RANK_MASK) - 1
        base = self.base.ranks + np.searchsorted(np.sort(before), self.base.ranks, "right")
        together = np.concatenate([base, before + among]).astype(np.int32)
        return Ranks(RankedTexts(together, self._texts.whole), self._texts)

    def to_block(self) -> CacheBlock | None:
        """The ranks as arrays."""
        return CacheBlock({"ranks": self.settle().base.ranks})


def decode_ranks(piece: CacheBlock, texts: TextArray) -> Ranks:
    """The ranks in a piece, given texts that begin with those it was made of."""
    ranks_ = piece.arrays["ranks"]
    return Ranks(RankedTexts(ranks_, texts.whole.slice(0, len(ranks_))), texts)


def build_ranks(texts: TextArray) -> Ranks:
    """The ranks of texts."""
    return Ranks(RankedTexts(rank_texts(texts.whole), texts.whole), texts)


def rank_texts(texts: pa.Array) -> npt.NDArray[np.int32]:
    """The place of each text in the order of all of them; nulls are last."""
    order = pc.array_sort_indices(texts).to_numpy()
    found = np.empty(len(order), np.int32)
    found[order] = np.arange(len(order), dtype=np.int32)
    return found


def _search_insertion_ranks(
    texts: pa.Array,
    ranks_: npt.NDArray[np.int32],
    order: npt.NDArray[np.int32],
    wanted: pa.Array,
) -> npt.NDArray[np.int64]:
    """The ranks of the first texts that are not smaller than wanted ones; nulls are last.

    A text may be null by now that was known when it got its rank.
    """
    low = np.zeros(len(wanted), np.int64)
    high = np.full(len(wanted), len(order), np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        others = texts.take(pa.array(order.take(middle, mode="clip")))
        is_less = pc.fill_null(pc.less(others, wanted), False).to_numpy(zero_copy_only=False)
        is_open = low < high
        low = np.where(is_open & is_less, middle + 1, low)
        high = np.where(is_open & ~is_less, middle, high)
    # After the last of them come those that are null.
    places = np.append(ranks_[order], len(texts)).take(low)
    return np.where(wanted.is_valid().to_numpy(zero_copy_only=False), places, len(texts))
