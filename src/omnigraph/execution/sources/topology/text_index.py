"""Which of many distinct texts a text is: a hash table in arrays, for one text and for millions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.rows.hashing import Hashes, hash_text, hash_texts

# Up to so many texts are looked up one by one: a microsecond each, and no arrays to make.
FEW_TEXTS: Final = 16
# How far a text may be from the place its hash names; beyond it, texts were chosen to collide.
PROBES_MAX: Final = 1_000
# So many rows are looked up at once: their hashes and places stay in the cache of a core.
_BLOCK_ROWS: Final = 65_536
_HASH_BITS: Final = 64
ABSENT: Final = -1


@dataclass(frozen=True, slots=True)
class HashTable:
    """The place of each hash; the first of it is named by the first bits of the hash."""

    hashes: Hashes
    slots: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.hashes.nbytes + self.slots.nbytes

    @property
    def shift(self) -> int:
        """How many bits of a hash do not matter for its first place."""
        return _HASH_BITS - (len(self.slots).bit_length() - 1)

    def grow(self, hashes: Hashes, numbers: DenseIds) -> HashTable | None:
        """The table with the hashes of more texts, of which some numbers are to be found.

        None if there is no room for them; none of the hashes may be there.
        """
        together = np.concatenate([self.hashes, hashes])
        if 2 * len(together) > len(self.slots):
            return None
        table = HashTable(together, self.slots.copy())
        return table if table.insert(numbers) else None

    def insert(self, numbers: DenseIds) -> bool:
        """Put numbers at the places of their hashes; False if they were chosen to collide."""
        slots, left = self.slots, numbers
        places = (self.hashes[left] >> np.uint64(self.shift)).astype(np.int64)
        for _ in range(PROBES_MAX):
            if not len(left):
                return True
            is_free = slots.take(places) < 0
            # Of several that want one place the last one gets it; the others look further.
            slots[places[is_free]] = left[is_free]
            is_left = slots.take(places) != left
            left, places = left[is_left], (places[is_left] + 1) & (len(slots) - 1)
        return False


class TextIndex:
    """The numbers of distinct texts, which are their places in an array."""

    def __init__(self, texts: pa.Array, table: HashTable | None) -> None:
        self.texts = texts
        # None if hashes of different texts are equal: then they are compared as they are.
        self.table = table

    @property
    def nbytes(self) -> int:
        """How much memory the index takes besides the texts."""
        return 0 if self.table is None else self.table.nbytes

    def find(self, wanted: pa.Array) -> DenseIds:
        """The numbers of texts; -1 for those that are not there, and for nulls."""
        if self.table is None:
            return _to_dense_ids(self._find_by_comparison(wanted))
        if len(wanted) <= FEW_TEXTS:
            return np.array([self.find_one(text) for text in wanted.to_pylist()], np.int32)
        found = self.find_known(wanted)
        is_there = np.flatnonzero(found >= 0)
        if len(is_there):
            known = self.texts.take(pa.array(found[is_there]))
            asked = wanted.take(pa.array(is_there)).cast(known.type)
            is_same = pc.fill_null(pc.equal(known, asked), False).to_numpy(zero_copy_only=False)
            found[is_there[~is_same]] = ABSENT
        return found

    def find_known(self, wanted: pa.Array | pa.ChunkedArray) -> DenseIds:
        """The numbers of texts that are known to be there; -1 for some that are not."""
        if self.table is None:
            return _to_dense_ids(self._find_by_comparison(wanted))
        if wanted.null_count:
            wanted = wanted.fill_null("")
        hashes = hash_texts(wanted)
        if hashes is None:
            return _to_dense_ids(self._find_by_comparison(wanted))
        found: DenseIds = np.empty(len(hashes), np.int32)
        for start in range(0, len(hashes), _BLOCK_ROWS):
            stop = start + _BLOCK_ROWS
            found[start:stop] = _probe_table(self.table, hashes[start:stop])
        return found

    def _find_by_comparison(self, wanted: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return pc.index_in(wanted.cast(self.texts.type), value_set=self.texts, skip_nulls=True)

    def contains_any(self, hashes: Hashes) -> bool:
        """Whether a text has one of the hashes."""
        return self.table is None or bool(np.any(_probe_table(self.table, hashes) >= 0))

    def find_one(self, text: str | None) -> int:
        """The number of a text; -1 if it is not there."""
        table = self.table
        if text is None or not len(self.texts):
            return ABSENT
        if table is None:
            found: int = pc.index(self.texts, pa.scalar(text, self.texts.type)).as_py()
            return found
        slots = table.slots
        place = hash_text(text) >> table.shift
        last = len(slots) - 1
        while (number := int(slots[place])) >= 0:
            if self.texts[number].as_py() == text:
                return number
            place = (place + 1) & last
        return ABSENT


def build_text_index(texts: pa.Array, among: DenseIds | None = None) -> TextIndex:
    """The index of texts that are all different; nulls, and others than some, are not found."""
    if among is None:
        among = np.arange(len(texts), dtype=np.int32)
    if texts.null_count:
        among = among[texts.is_valid().to_numpy(zero_copy_only=False)[among]]
    hashes = hash_texts(texts.fill_null("") if texts.null_count else texts)
    table = None if hashes is None else _build_hash_table(hashes, among)
    if table is not None:
        return TextIndex(texts, table)
    # Texts that are not to be found are taken out.
    is_wanted = np.zeros(len(texts), np.bool_)
    is_wanted[among] = True
    return TextIndex(pc.if_else(pa.array(is_wanted), texts, pa.scalar(None, texts.type)), None)


def _build_hash_table(hashes: Hashes, numbers: DenseIds) -> HashTable | None:
    """A table of some texts, at most half full; None if their hashes are not all different."""
    ordered = np.sort(hashes[numbers])
    if np.any(ordered[1:] == ordered[:-1]):
        return None
    bits = max(len(hashes), 1).bit_length() + 1
    table = HashTable(hashes, np.full(1 << bits, ABSENT, np.int32))
    return table if table.insert(numbers) else None


def _probe_table(table: HashTable, hashes: Hashes) -> DenseIds:
    """The number of each hash; -1 for those that are not there."""
    slots = table.slots
    places = (hashes >> np.uint64(table.shift)).astype(np.int64)
    found: DenseIds = slots.take(places)
    if not len(table.hashes):
        return found
    left = np.flatnonzero((table.hashes.take(found, mode="clip") != hashes) & (found >= 0))
    places, hashes = places[left], hashes[left]
    while len(left):
        places = (places + 1) & (len(slots) - 1)
        next_ = slots.take(places)
        found[left] = next_
        is_left = (table.hashes.take(next_, mode="clip") != hashes) & (next_ >= 0)
        left, places, hashes = left[is_left], places[is_left], hashes[is_left]
    return found


def _to_dense_ids(indices: pa.Array | pa.ChunkedArray) -> DenseIds:
    found: DenseIds = indices.fill_null(ABSENT).to_numpy().astype(np.int32)
    return found


class Postings(NamedTuple):
    """The entities of each code: those of code `c` are `numbers[offsets[c]:offsets[c + 1]]`.

    They are made of the first `size` numbers.
    """

    offsets: npt.NDArray[np.int64]
    numbers: DenseIds
    size: int

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.offsets.nbytes + self.numbers.nbytes

    def get_entities(self, code: int) -> DenseIds:
        """The entities of one code, ascending; a code that came later has none."""
        if code >= len(self.offsets) - 1:
            return self.numbers[:0]
        return self.numbers[self.offsets[code] : self.offsets[code + 1]]


def build_postings(codes: npt.NDArray[np.int32], count: int) -> Postings:
    """The entities of each of `count` codes."""
    offsets = np.zeros(count + 1, np.int64)
    known = np.flatnonzero(codes >= 0)
    np.cumsum(np.bincount(codes[known], minlength=count), out=offsets[1:])
    # Codes and numbers in one integer: sorting those is much faster than an order of codes.
    packed = (codes[known].astype(np.int64) << 32) | known
    packed.sort()
    return Postings(offsets, (packed & 0xFFFFFFFF).astype(np.int32), len(codes))
