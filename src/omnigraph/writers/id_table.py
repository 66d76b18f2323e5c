"""Many ids in memory: their texts as they were read, and where each hash of one of them is.

A set of Python takes 160 bytes per id, and a second to make of a million; this takes what the text
takes and 16 bytes more. An answer is exact: ids that share only a hash are compared by their texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.hashing import Hashes
from omnigraph.writers.bulk.hashes import hash_any_text, hash_any_texts

# So few texts are looked for one by one.
FEW_MAX: Final = 16
# What an id of 24 characters takes.
ID_BYTES: Final = 40


class IdTable:
    """An immutable set of ids."""

    __slots__ = ("_hashes", "_order", "_texts")

    def __init__(self, ids: pa.Array | pa.ChunkedArray) -> None:
        # Texts of 2 GB and more have wider offsets.
        chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
        texts = pa.chunked_array(chunks, ids.type)
        is_wide = texts.nbytes >= np.iinfo(np.int32).max
        wide: pa.ChunkedArray = texts.cast(pa.large_string() if is_wide else pa.utf8())
        self._texts: pa.Array = wide.combine_chunks()
        hashes = hash_any_texts(self._texts)
        order = np.argsort(hashes)
        self._hashes: Hashes = hashes[order]
        self._order: npt.NDArray[np.uint32] = order.astype(np.uint32)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def size(self) -> int:
        """How much memory it takes, in ids of ordinary length."""
        taken = self._texts.nbytes + self._hashes.nbytes + self._order.nbytes
        return max(len(self), int(taken) // ID_BYTES)

    def select_known(self, texts: Collection[str]) -> set[str]:
        """Those of some texts that are ids of it."""
        if len(texts) <= FEW_MAX:
            return {text for text in texts if self._contains_text(text)}
        asked = pa.array(texts, self._texts.type)
        return set(asked.filter(pa.array(self._find_positions(asked) >= 0)).to_pylist())

    def with_changes(self, *, gone: Collection[str], added: Iterable[str]) -> IdTable:
        """The same without some ids that it has, and with others that it lacks."""
        is_kept = np.ones(len(self), np.bool_)
        if gone:
            is_kept[self._find_positions(pa.array(list(gone), self._texts.type))] = False
        new = pa.array(list(added), self._texts.type)
        return IdTable(pa.chunked_array([self._texts.filter(pa.array(is_kept)), new]))

    def _contains_text(self, text: str) -> bool:
        """The same question about one text, in a tenth of the time."""
        wanted = np.uint64(hash_any_text(text))
        place = int(self._hashes.searchsorted(wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self._texts[int(self._order[place])].as_py() == text:
                return True
            place += 1
        return False

    def _find_positions(self, asked: pa.Array) -> npt.NDArray[np.int64]:
        """Where each text is among those of the table; -1 for one that it lacks."""
        hashes = hash_any_texts(asked)
        found = np.full(len(asked), -1, np.int64)
        near: npt.NDArray[Any] = np.searchsorted(self._hashes, hashes)
        left = np.arange(len(asked))
        # Those who share a hash stand beside each other: one step for each, and mostly one in all.
        while len(left):
            left = left[near[left] < len(self)]
            left = left[self._hashes[near[left]] == hashes[left]]
            places = self._order[near[left]]
            texts = self._texts.take(pa.array(places))
            is_same = pc.equal(texts, asked.take(pa.array(left))).to_numpy(zero_copy_only=False)
            found[left[is_same]] = places[is_same]
            left = left[~is_same]
            near[left] += 1
        return found
