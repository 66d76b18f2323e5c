"""The footprint: what a write depends on, and whether another commit changed any of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from omnigraph.versioning.change_sets import LoadedChange
from omnigraph.versioning.id_sets import EMPTY, IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a write depends on in one type.

    ids       entities that no other write may write or delete (every key that was looked up)
    existing  those of `ids` that were found: what only appends cannot have met them
    present   entities that no other write may delete (the ends of inserted edges)
    keeps_all no entity of the type may be deleted (the ends are too many to list)
    marks     unique values and ends of edges (`mark`) that no changed entity may hold
    is_whole  nothing of the type may change (an open predicate was evaluated over it)
    """

    ids: IdSet = EMPTY
    existing: IdSet = EMPTY
    present: IdSet = EMPTY
    marks: IdSet = EMPTY
    is_whole: bool = False
    keeps_all: bool = False

    def union(self, other: ReadSet) -> ReadSet:
        """What either of two writes depends on."""
        return ReadSet(
            ids=self.ids.union(other.ids),
            existing=self.existing.union(other.existing),
            present=self.present.union(other.present),
            marks=self.marks.union(other.marks),
            is_whole=self.is_whole or other.is_whole,
            keeps_all=self.keeps_all or other.keeps_all,
        )


Footprint: TypeAlias = Mapping[str, ReadSet]

NOTHING = ReadSet()
WHOLE = ReadSet(is_whole=True)


@dataclass(frozen=True, slots=True)
class FootprintConflict:
    """Where another commit met a footprint; the entity is None when it is not known."""

    type_key: str
    entity_id: str | None


def make_mark(kind: str, *values: str) -> str:
    """A short name for a fact about an entity, such as `mark("src", "ada")`.

    Facts are compared by a 64-bit hash: two facts with one hash cost a needless retry, no more.
    """
    text = json.dumps([kind, *values], ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def unite_footprints(footprints: Iterable[Footprint]) -> dict[str, ReadSet]:
    """What any of several writes depends on."""
    together: dict[str, ReadSet] = {}
    for footprint in footprints:
        for type_key, reads in footprint.items():
            known = together.get(type_key)
            together[type_key] = reads if known is None else known.union(reads)
    return together


def find_conflict(
    footprint: Footprint,
    changes: Mapping[str, ChangeSet],
    load: Callable[[ChangeSet], LoadedChange],
) -> FootprintConflict | None:
    """The first place, by type key, where changes touch what a footprint depends on."""
    for type_key in sorted(footprint.keys() & changes.keys()):
        found = _find_type_conflict(type_key, footprint[type_key], load(changes[type_key]))
        if found is not None:
            return found
    return None


def _find_type_conflict(
    type_key: str, reads: ReadSet, change: LoadedChange
) -> FootprintConflict | None:
    match change:
        case Maintenance():
            return None
        case Bulk():
            return FootprintConflict(type_key, None) if _may_conflict(reads, change) else None
        case Changed():
            return _find_changed_conflict(type_key, reads, change)
        case _:
            assert_never(change)


def _may_conflict(reads: ReadSet, bulk: Bulk) -> bool:
    """Whether rows whose ids are only in their data files may be what was read."""
    if reads.is_whole or len(reads.marks):
        return True
    if bulk.replaces:
        return bool(len(reads.ids) or len(reads.present) or reads.keeps_all)
    return not reads.ids.is_within(reads.existing)


def _find_changed_conflict(
    type_key: str, reads: ReadSet, change: Changed
) -> FootprintConflict | None:
    for ids in (change.inserted, change.updated, change.deleted):
        if (entity_id := reads.ids.find_first_common(ids)) is not None:
            return FootprintConflict(type_key, entity_id)
    if (entity_id := reads.present.find_first_common(change.deleted)) is not None:
        return FootprintConflict(type_key, entity_id)
    if reads.keeps_all and len(change.deleted):
        return FootprintConflict(type_key, next(iter(change.deleted)))
    is_met = reads.is_whole or (len(reads.marks) > 0 and _may_contain(change, reads.marks))
    is_changed = len(change.inserted) or len(change.updated) or len(change.deleted)
    return FootprintConflict(type_key, None) if is_met and is_changed else None


def _may_contain(change: Changed, marks: IdSet) -> bool:
    return change.marks is None or marks.find_first_common(change.marks) is not None
