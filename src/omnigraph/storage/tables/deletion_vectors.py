"""Deletion vectors per fragment, computed once for every state of the fragment.

A write that loses a race is applied again, to a version that others made. Most fragments have not
changed in between: what was computed for them still holds, so that killing a hundred thousand rows
again costs little more than killing one, and a large write can keep up with small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.errors import ConflictError
from omnigraph.lru_cache import LruCache
from omnigraph.storage.tables.file_digests import Verifier, list_deletion_files, seal_deletions
from omnigraph.storage.tables.fragments import fragment_of
from omnigraph.storage.tables.pins import Pin, list_file_names
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID, fetch_rows_by_id

UInt64Array: TypeAlias = npt.NDArray[np.uint64]

# Writes under way at one time that may have to be applied again.
REMEMBERED_MAX: Final = 16
_OFFSET_BITS: Final = np.uint64(32)
_OFFSET_MASK: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Deletion:
    """Fragments without the rows that died: some shrank, some are gone."""

    shrunk: list[FragmentMetadata]
    gone: list[int]

    @property
    def files(self) -> list[str]:
        """The deletion files that were written for it."""
        return [found.deletion_file.path(found.id) for found in self.shrunk if found.deletion_file]


@dataclass(frozen=True, slots=True)
class _FragmentDeletion:
    """What became of one fragment, `None` when it is gone, and of which of its rows it is true."""

    before: str
    row_ids: UInt64Array
    after: FragmentMetadata | None


_FragmentDeletions: TypeAlias = dict[int, _FragmentDeletion]


class DeletionVectors:
    """Kills rows, and remembers how, for the write that has to do it again."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        # By the identity of the row ids, which are kept so that it stays theirs.
        self._known: LruCache[int, tuple[pa.Array, _FragmentDeletions]] = LruCache(REMEMBERED_MAX)

    def write_vectors(
        self, dataset: LanceDataset, dead: pa.Array, *, pin: Pin, addresses: pa.Array | None
    ) -> Deletion:
        """Deletion vectors for rows on this version: another one's would undo its deletes."""
        if not len(dead):
            return Deletion([], [])
        pieces = self._find_unchanged(dataset, dead)
        held = [piece.row_ids for piece in pieces.values()]
        left = np.setdiff1d(dead.to_numpy(), np.concatenate(held)) if held else None
        if left is None or len(left):
            rows = _locate_rows(dataset, dead if left is None else pa.array(left), pin, addresses)
            pieces |= dict(self._delete_rows(dataset, rows, pieces, pin.path))
        self._known.put(id(dead), (dead, pieces))
        return Deletion(
            [piece.after for piece in pieces.values() if piece.after is not None],
            [fragment_id for fragment_id, piece in pieces.items() if piece.after is None],
        )

    def forget(self) -> None:
        """Forget what was written for writes that have to be applied again."""
        self._known.clear()

    def _delete_rows(
        self,
        dataset: LanceDataset,
        rows: tuple[UInt64Array, UInt64Array],
        pieces: _FragmentDeletions,
        path: str,
    ) -> Iterator[tuple[int, _FragmentDeletion]]:
        row_ids, addresses = rows
        owners = addresses >> _OFFSET_BITS
        # They are in the order of addresses.
        starts = np.flatnonzero(owners[1:] != owners[:-1]) + 1
        ids = owners[np.concatenate([[0], starts])]
        offsets = np.split(addresses & _OFFSET_MASK, starts)
        for fragment_id, own, places in zip(
            ids.tolist(), np.split(row_ids, starts), offsets, strict=True
        ):
            assert fragment_id not in pieces, "rows moved into a fragment that has not changed"
            before = _identify_state(dataset, fragment_id)
            assert before is not None, "a row is in a fragment of its version"
            # The rows that are dead already are copied into the new deletion file.
            self._verifier.require_inputs(path, list_deletion_files(dataset, [fragment_id]))
            after = fragment_of(dataset, fragment_id).delete_rows(places.tolist())
            if after is not None and self._verifier.is_active:
                after = seal_deletions(f"{self._verifier.root}/{path}", after)
            yield fragment_id, _FragmentDeletion(before, own, after)

    def _find_unchanged(self, dataset: LanceDataset, dead: pa.Array) -> _FragmentDeletions:
        known = self._known.get(id(dead))
        if known is None:
            return {}
        return {
            fragment_id: piece
            for fragment_id, piece in known[1].items()
            if _identify_state(dataset, fragment_id) == piece.before
        }


def _identify_state(dataset: LanceDataset, fragment_id: int) -> str | None:
    """All that a deletion vector of a fragment depends on; None when the fragment is not there."""
    fragment = dataset.get_fragment(fragment_id)
    if fragment is None:
        return None
    metadata = fragment.metadata
    return f"{list_file_names(metadata)} {metadata.deletion_file}"


def _locate_rows(
    dataset: LanceDataset, row_ids: pa.Array, pin: Pin, addresses: pa.Array | None
) -> tuple[UInt64Array, UInt64Array]:
    """The row ids and their addresses in this version, both in the order of addresses."""
    if addresses is None or len(addresses) != len(row_ids):
        wanted = pc.unique(row_ids)
        found = fetch_rows_by_id(dataset, wanted, columns=[ROW_ADDRESS])
        row_ids, addresses = found[ROW_ID], found[ROW_ADDRESS]
        if len(row_ids) != len(wanted):
            missing = len(wanted) - len(row_ids)
            raise ConflictError(f"{pin.path}: {missing} rows to replace are not in {pin.version}")
    places = addresses.to_numpy()
    order = np.argsort(places)
    return row_ids.to_numpy()[order], places[order]
