"""Hashes of ids and tuples, in files: what two parts of a load compare instead of rows.

Equal texts always have equal hashes, so that rows that share a text are found. Rows that share only
a hash are distinguished by their texts, where the answer matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.bulk.task_tracking import read_task_object, require_task_object, write_note
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.sorted_search import are_among, drop_repeated
from omnigraph.storage.objects.object_store import Objects

Mask: TypeAlias = npt.NDArray[np.bool_]

NO_HASHES: Final[Hashes] = np.empty(0, np.uint64)
_BITS: Final = 64
# Hashes ordered by so many bits are looked up in places that are near each other.
_ORDERED_BITS: Final = 8
_NARROW_MAX: Final = 2**32 - 2**8
# How far a hash is looked for one by one.
_STEPS_MAX: Final = 4
_TUPLE_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_TUPLE_SHIFT: Final = np.uint64(29)


@dataclass(frozen=True, slots=True)
class HashFile:
    """Hashes in an object, one part after the other; the highest bits of a hash are its part.

    `counts` are those of the parts from `first` on. Hashes of no part have no object.
    """

    path: str
    counts: tuple[int, ...]
    first: int = 0

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(self.counts)

    def range_of(self, part: int) -> tuple[int, int]:
        """How many there are before a part, and how many in it."""
        place = part - self.first
        if not 0 <= place < len(self.counts):
            return 0, 0
        return sum(self.counts[:place]), self.counts[place]


def hash_tuples(members: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """The hash of each tuple, given the texts of each member."""
    found = hash_any_texts(members[0])
    for texts in members[1:]:
        found = (found ^ (found >> _TUPLE_SHIFT)) * _TUPLE_FACTOR ^ hash_any_texts(texts)
    return found


def write_hashes(
    objects: Objects, folder: str, hashes: Iterable[Hashes], *, parts: int, is_sorted: bool
) -> HashFile:
    """Write hashes, sorted or only part by part: those that are merely looked up need no more."""
    ordered = _concatenate_hashes(hashes)
    if is_sorted:
        ordered.sort()
        bounds = np.searchsorted(ordered, _compute_lower_bounds(parts))
        counts = np.diff([*bounds, len(ordered)])
    else:
        ordered, counts = _partition_hashes(ordered, parts)
    has_any = bool(len(ordered))
    path = write_note(objects, folder, ordered.tobytes(), kind="hashes") if has_any else ""
    return HashFile(path, tuple(counts.tolist()))


def read_hash_part(objects: Objects, files: Iterable[HashFile], part: int) -> list[Hashes]:
    """The hashes of some files in one part of all hashes, each file's in its own order."""
    ranges = ((file, *file.range_of(part)) for file in files)
    return [_read_range(objects, file, start, count) for file, start, count in ranges if count]


def read_hashes(objects: Objects, files: Iterable[HashFile]) -> Hashes:
    """The hashes of some files, sorted."""
    return merge_sorted(_read_range(objects, file, 0, file.count) for file in files if file.count)


def merge_sorted(runs: Iterable[Hashes]) -> Hashes:
    """All hashes of some arrays, each of which is sorted, sorted."""
    found = _concatenate_hashes(runs)
    # This kind of sort merges what is in order already.
    found.sort(kind="stable")
    return found


def select_repeated(ordered: Hashes) -> Hashes:
    """Those of sorted hashes that are there more than once, each of them once."""
    return drop_repeated(ordered[1:][ordered[1:] == ordered[:-1]])


class HashIndex:
    """Sorted hashes among which very many others, in any order, are looked for.

    A table says where those with the same highest bits begin: usually the next one or two.
    """

    def __init__(self, ordered: Hashes) -> None:
        self._ordered = ordered
        bits = len(ordered).bit_length() + 1
        self._shift = np.uint64(_BITS - bits)
        counts = np.bincount((ordered >> self._shift).astype(np.int64), minlength=1 << bits)
        starts = np.minimum(np.cumsum(counts) - counts, max(len(ordered) - 1, 0))
        # Narrow numbers: the table stays in the cache.
        self._starts = starts.astype(np.uint32 if len(ordered) <= _NARROW_MAX else np.int64)

    def contains_each(self, hashes: Hashes) -> Mask:
        """Which of some hashes are among them."""
        if not len(self._ordered):
            return np.zeros(len(hashes), np.bool_)
        places = self._starts[(hashes >> self._shift).astype(np.int64)]
        met = self._ordered[places]
        found: Mask = met == hashes
        rows = np.flatnonzero(met < hashes)
        for step in range(1, _STEPS_MAX):
            wanted = hashes[rows]
            met = self._ordered[np.minimum(places[rows] + step, len(self._ordered) - 1)]
            found[rows] = met == wanted
            rows = rows[met < wanted]
        found[rows] = are_among(hashes[rows], self._ordered)
        return found


def union_hashes(many: Iterable[Hashes]) -> Hashes:
    """All hashes of some, sorted, each of them once."""
    return drop_repeated(np.sort(_concatenate_hashes(many)))


def _concatenate_hashes(many: Iterable[Hashes]) -> Hashes:
    found = [each for each in many if len(each)]
    return np.concatenate([NO_HASHES, *found])


def _read_range(objects: Objects, file: HashFile, start: int, count: int) -> Hashes:
    if count == file.count:
        return np.frombuffer(read_task_object(objects, file.path), np.uint64)
    width = NO_HASHES.itemsize
    data = require_task_object(objects.get_range(file.path, start * width, count * width))
    return np.frombuffer(data, np.uint64)


def _partition_hashes(hashes: Hashes, parts: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Hashes in the order of their parts, or at least of a few of their bits, and their counts."""
    bits = max(parts.bit_length() - 1, _ORDERED_BITS)
    width = np.uint8 if bits <= _ORDERED_BITS else np.uint16
    highest = (hashes >> np.uint64(_BITS - bits)).astype(width)
    counts = np.bincount(highest, minlength=1 << bits).reshape(parts, -1).sum(axis=1)
    # Numbers this small are sorted by counting them.
    return hashes[np.argsort(highest, kind="stable")], counts


def _compute_lower_bounds(parts: int) -> Hashes:
    bits = parts.bit_length() - 1
    assert parts == 1 << bits, "parts are cut by the highest bits"
    numbers = np.arange(parts, dtype=np.uint64)
    return numbers << np.uint64(_BITS - bits) if bits else numbers
