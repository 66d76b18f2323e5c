"""Fragments on their way into a version: new ones with unused ids, old ones with dead rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.fragment import FragmentMetadata, LanceFragment

from omnigraph.errors import StorageRefused
from omnigraph.storage.pins import Pin, Staged, file_names
from omnigraph.storage.row_ids import ROW_ADDRESS, rows_by_id


@dataclass(frozen=True, slots=True)
class Killed:
    """Fragments without the rows that died: some shrank, some are gone."""

    shrunk: list[FragmentMetadata]
    gone: list[int]

    @property
    def files(self) -> list[str]:
        """The deletion files that were written for it."""
        return [found.deletion_file.path(found.id) for found in self.shrunk if found.deletion_file]


def kill(dataset: LanceDataset, dead: pa.Array, *, pin: Pin) -> Killed:
    """Deletion vectors for rows, computed on this version: another one's would undo its deletes."""
    row_ids = pc.unique(dead)
    if not len(row_ids):
        return Killed([], [])
    found = rows_by_id(dataset, row_ids, columns=[ROW_ADDRESS])
    addresses = found[ROW_ADDRESS].to_numpy()
    if len(addresses) != len(row_ids):
        raise StorageRefused(
            "replace",
            pin.path,
            f"{len(row_ids) - len(addresses)} rows to replace are not in version {pin.version}",
            hint="look the rows up again in the version that is written to",
        )
    killed = Killed([], [])
    for fragment_id, offsets in _by_fragment(addresses):
        shrunk = fragment_of(dataset, fragment_id).delete_rows(offsets)
        if shrunk is None:
            killed.gone.append(fragment_id)
        else:
            killed.shrunk.append(shrunk)
    return killed


def _by_fragment(
    addresses: np.ndarray[tuple[int], np.dtype[np.uint64]],
) -> Iterator[tuple[int, list[int]]]:
    """Offsets per fragment; an address is a fragment id and an offset, 32 bits each."""
    ordered = np.sort(addresses)
    owners = ordered >> np.uint64(32)
    ids, starts = np.unique(owners, return_index=True)
    for fragment_id, rows in zip(ids.tolist(), np.split(ordered, starts[1:]), strict=True):
        yield fragment_id, (rows & np.uint64(0xFFFFFFFF)).tolist()


def fragment_of(dataset: LanceDataset, fragment_id: int) -> LanceFragment:
    """A fragment that the version is known to have."""
    fragment = dataset.get_fragment(fragment_id)
    assert fragment is not None, f"{dataset.uri} has no fragment {fragment_id}"
    return fragment


def renumbered(fragments: Iterable[FragmentMetadata], *, above: int) -> list[FragmentMetadata]:
    """Written fragments with ids nobody has used: an index may still claim to cover a used one."""
    # Copies: the same rows get other ids when they are committed on another version.
    new = [copy(fragment) for fragment in fragments]
    for fragment_id, fragment in enumerate(new, above + 1):
        fragment.id = fragment_id
        # Stamps of detached versions are random numbers, and cost 39 bytes of manifest per commit.
        fragment.created_at_version_meta = None
        fragment.last_updated_at_version_meta = None
    return new


def admitted(
    dataset: LanceDataset, staged: Sequence[Staged], *, pin: Pin
) -> list[FragmentMetadata]:
    """The fragments to add to a version, each of them for the first time."""
    fragments = renumbered(
        (fragment for part in staged for fragment in part.fragments), above=pin.high_water
    )
    if not fragments:
        return []
    new = [name for fragment in fragments for name in file_names(fragment)]
    newer = _ids_above(dataset, min(part.above for part in staged))
    known = {name for id_ in newer for name in file_names(fragment_of(dataset, id_).metadata)}
    is_foreign = any(part.path != pin.path for part in staged)
    if is_foreign or len(set(new)) < len(new) or not known.isdisjoint(new):
        # Lance would take the same fragment twice without a word, and every row with it.
        reason = "rows of another table" if is_foreign else "rows that are already in it"
        raise StorageRefused("commit", pin.path, f"the table was given {reason}")
    return fragments


def _ids_above(dataset: LanceDataset, above: int) -> list[int]:
    """The fragments that may have come since; looking at all of them costs a large table dearly."""
    return [fragment_id for fragment_id in dataset.fragment_ids() if fragment_id > above]
