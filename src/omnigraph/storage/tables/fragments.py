"""Fragments for a new version: new ones with unused ids, old ones with deleted rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from lance import LanceDataset
from lance.fragment import DeletionFile, FragmentMetadata, LanceFragment
from lance.progress import FragmentWriteProgress

from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.pins import Pin, Staged, list_file_names

# How many rows Lance puts into one file, of which a write of fewer rows makes one.
FRAGMENT_ROWS_MAX: Final = 1024 * 1024


class CompleteFragments(FragmentWriteProgress):
    """Hears of each fragment of a write that is complete, in case the write fails."""

    def __init__(self) -> None:
        self._found: list[FragmentMetadata] = []

    def begin(self, fragment: FragmentMetadata, **_: object) -> None:
        """Its file has no name yet."""

    def complete(self, fragment: FragmentMetadata, **_: object) -> None:
        """Remember it."""
        self._found.append(fragment)

    def list_files(self, path: str) -> list[str]:
        """The data files of the fragments, relative to the root of the graph."""
        return [f"{path}/data/{name}" for each in self._found for name in list_file_names(each)]


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a version says of one of its fragments: its files, and what is deleted of them."""

    data: FragmentMetadata
    deletions: DeletionFile | None
    rows: int


def fragments_of(dataset: LanceDataset) -> dict[int, Fragment]:
    """Every fragment of a version, by id."""
    found = ((each.fragment_id, each.metadata) for each in dataset.get_fragments())
    return {
        id_: Fragment(replace(each, deletion_file=None), each.deletion_file, each.num_rows)
        for id_, each in found
    }


def fragment_of(dataset: LanceDataset, fragment_id: int) -> LanceFragment:
    """A fragment that the version is known to have."""
    fragment = dataset.get_fragment(fragment_id)
    assert fragment is not None, f"{dataset.uri} has no fragment {fragment_id}"
    return fragment


def renumber_fragments(
    fragments: Iterable[FragmentMetadata], *, above: int
) -> list[FragmentMetadata]:
    """Written fragments with unused ids: an index may still claim to cover a used one."""
    # Copies: the same rows get other ids when they are committed on another version.
    new = [copy(fragment) for fragment in fragments]
    for fragment_id, fragment in enumerate(new, above + 1):
        fragment.id = fragment_id
        # Stamps of detached versions are random numbers, and cost 39 bytes of manifest per commit.
        fragment.created_at_version_meta = None
        fragment.last_updated_at_version_meta = None
    return new


def admit_fragments(
    dataset: LanceDataset, staged: Sequence[Staged], *, pin: Pin
) -> list[FragmentMetadata]:
    """The fragments to add to a version, each of them for the first time."""
    fragments = renumber_fragments(
        (fragment for part in staged for fragment in part.fragments), above=pin.high_water
    )
    if not fragments:
        return []
    new = [name for fragment in fragments for name in list_file_names(fragment)]
    newer = _list_ids_above(dataset, min(part.above for part in staged))
    known = {name for id_ in newer for name in list_file_names(fragment_of(dataset, id_).metadata)}
    is_foreign = any(part.path != pin.path for part in staged)
    if is_foreign or len(set(new)) < len(new) or not known.isdisjoint(new):
        # Lance would take the same fragment twice without a word, and every row with it.
        reason = "rows of another table" if is_foreign else "rows that are already in it"
        raise StorageRefusedError("commit", pin.path, f"the table was given {reason}")
    return fragments


def _list_ids_above(dataset: LanceDataset, above: int) -> list[int]:
    """The fragments that may have come since; looking at all of them costs a large table dearly."""
    return [fragment_id for fragment_id in dataset.fragment_ids() if fragment_id > above]
