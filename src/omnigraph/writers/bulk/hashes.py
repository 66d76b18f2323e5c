"""Hashes of ids and tuples, in sorted files: what two parts of a load compare instead of rows.

Equal texts always have equal hashes, so that whoever shares a text is found; whoever shares only a
hash is told apart by the texts, where the answer matters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.hashing import TEXT_BYTES_MAX, Hashes, hashes_of
from omnigraph.ids import new_ulid
from omnigraph.storage.objects import Objects

NONE: Final[Hashes] = np.empty(0, np.uint64)
_BITS: Final = 64
_TUPLE_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_TUPLE_SHIFT: Final = np.uint64(29)


@dataclass(frozen=True, slots=True)
class HashFile:
    """Sorted hashes, cut into parts by their highest bits; a part without any has no object."""

    path: str
    counts: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(self.counts)


def text_hashes(texts: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each text; none of them is null."""
    found = hashes_of(texts)
    if found is not None:
        return found
    # Texts this long are rare, and are hashed one by one.
    is_long = pc.greater(pc.binary_length(texts), TEXT_BYTES_MAX)
    short = hashes_of(pc.if_else(is_long, "", texts))
    assert short is not None, "an empty text is short"
    places = np.flatnonzero(is_long.to_numpy(zero_copy_only=False))
    short[places] = [_long_hash(text) for text in texts.filter(is_long).to_pylist()]
    return short


def tuple_hashes(members: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """The hash of each tuple, given the texts of each member."""
    found = text_hashes(members[0])
    for texts in members[1:]:
        found = (found ^ (found >> _TUPLE_SHIFT)) * _TUPLE_FACTOR ^ text_hashes(texts)
    return found


def write_hashes(
    objects: Objects, folder: str, hashes: Iterable[Hashes], *, parts: int, is_set: bool
) -> HashFile:
    """Sort hashes, each of them once if they are a set, and write them."""
    ordered = np.sort(_joined(hashes))
    if is_set:
        ordered = distinct(ordered)
    bounds = np.searchsorted(ordered, _lower_bounds(parts))
    file = HashFile(f"{folder}/{new_ulid()}", tuple(np.diff([*bounds, len(ordered)]).tolist()))
    for part, start in enumerate(bounds.tolist()):
        if file.counts[part]:
            data = ordered[start : start + file.counts[part]]
            objects.put(_part_path(file, part), data.tobytes())
    return file


def read_part(objects: Objects, files: Iterable[HashFile], part: int) -> list[Hashes]:
    """The hashes of some files in one part of all hashes, each file's sorted."""
    return [_read(objects, file, part) for file in files if file.counts[part]]


def read_all(objects: Objects, files: Iterable[HashFile]) -> Hashes:
    """The hashes of some files, sorted."""
    found = [
        _read(objects, file, part)
        for file in files
        for part, count in enumerate(file.counts)
        if count
    ]
    return np.sort(_joined(found))


def distinct(ordered: Hashes) -> Hashes:
    """Sorted hashes, each of them once."""
    if not len(ordered):
        return ordered
    found: Hashes = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return found


def repeated(ordered: Hashes) -> Hashes:
    """Those of sorted hashes that are there more than once, each of them once."""
    return distinct(ordered[1:][ordered[1:] == ordered[:-1]])


def are_among(hashes: Hashes, ordered: Hashes) -> npt.NDArray[np.bool_]:
    """Which hashes are among sorted ones."""
    if not len(ordered):
        return np.zeros(len(hashes), np.bool_)
    places = np.searchsorted(ordered, hashes)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(places, len(ordered) - 1)] == hashes
    return found


def union(many: Iterable[Hashes]) -> Hashes:
    """All hashes of some, sorted, each of them once."""
    return distinct(np.sort(_joined(many)))


def merged(found: Mapping[str, Hashes], more: Mapping[str, Hashes]) -> dict[str, Hashes]:
    """The hashes of two answers, by name."""
    names = [*found, *(name for name in more if name not in found)]
    return {name: union([found.get(name, NONE), more.get(name, NONE)]) for name in names}


def _joined(many: Iterable[Hashes]) -> Hashes:
    found = [each for each in many if len(each)]
    return np.concatenate(found) if found else NONE


def _read(objects: Objects, file: HashFile, part: int) -> Hashes:
    data = objects.get(_part_path(file, part))
    assert data is not None, "what a unit wrote stays until the load ends"
    return np.frombuffer(data, np.uint64)


def _part_path(file: HashFile, part: int) -> str:
    return f"{file.path}.{part}"


def _lower_bounds(parts: int) -> Hashes:
    bits = parts.bit_length() - 1
    assert parts == 1 << bits, "parts are cut by the highest bits"
    numbers = np.arange(parts, dtype=np.uint64)
    return numbers << np.uint64(_BITS - bits) if bits else numbers


def _long_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
