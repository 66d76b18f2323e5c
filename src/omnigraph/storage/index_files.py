"""Index segments: built on one version of a table, committed on a newer one.

Building takes long, and others write meanwhile. A segment knows rows by the fragments they were in,
so on a newer version it covers those of them that are still there, and rows that came since are
merely uncovered. What no longer fits is left out: an index is never wrong, only smaller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.bitmap import Bitmap
from lance.dataset import Index as Segment

from omnigraph.storage import indexes
from omnigraph.storage.fragments import fragment_of
from omnigraph.storage.indexes import BTREE, IndexKind
from omnigraph.storage.pins import Pin, file_names


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index that a table shall have."""

    name: str
    column: str
    kind: IndexKind
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment of one index; `known` are all segments it had, `replaced` those that leave."""

    kind: IndexKind
    segment: Segment
    known: frozenset[str]
    replaced: frozenset[str]
    # The data files of each covered fragment: an id alone may mean another fragment by then.
    files: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Indexed:
    """Segments of indexes of one table that no version has yet."""

    pin: Pin
    parts: tuple[BuiltSegment, ...]
    # When the first of their files was begun: until they are in a version, files grow old.
    staged_at: float

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the indexes."""
        return tuple(part.segment.name for part in self.parts)

    @property
    def folders(self) -> list[str]:
        """The folders written, relative to the table."""
        return [f"_indices/{part.segment.uuid}/" for part in self.parts]


def build(
    dataset: LanceDataset, pin: Pin, specs: Sequence[IndexSpec], *, staged_at: float
) -> Indexed | None:
    """Index what the indexes do not cover; None when there is nothing to do."""
    parts = [part for spec in specs if (part := _built(dataset, spec)) is not None]
    return Indexed(pin, tuple(parts), staged_at) if parts else None


def apply(dataset: LanceDataset, indexed: Indexed) -> LanceOperation.CreateIndex | None:
    """The operation that adds the segments to a version; None when none of them fits it."""
    new: list[Segment] = []
    removed: list[Segment] = []
    for part in indexed.parts:
        known = indexes.segments_of(dataset, part.segment.name)
        segment = _fitted(dataset, part, known)
        if segment is not None:
            new.append(segment)
            removed += [old for old in known if old.uuid in part.replaced]
    return LanceOperation.CreateIndex(new, removed) if new else None


def _built(dataset: LanceDataset, spec: IndexSpec) -> BuiltSegment | None:
    known = indexes.segments_of(dataset, spec.name)
    if known:
        found = indexes.tail_segment(dataset, spec.name, known)
    else:
        found = indexes.whole_segment(dataset, spec.column, spec.kind, options=dict(spec.options))
    if found is None:
        return None
    segment, replaced = found
    return BuiltSegment(
        kind=spec.kind,
        segment=dataclasses.replace(segment, name=spec.name),
        known=frozenset(old.uuid for old in known),
        replaced=frozenset(old.uuid for old in replaced),
        files={id_: _files(dataset, id_) for id_ in segment.fragment_ids},
    )


def _fitted(dataset: LanceDataset, part: BuiltSegment, known: list[Segment]) -> Segment | None:
    """The segment with what it covers of a version; None when it does not fit."""
    if {old.uuid for old in known} != part.known:
        # Somebody else extended the index, maybe over the same rows.
        return None
    present = set(dataset.fragment_ids())
    left = {id_ for id_ in part.files if id_ in present}
    if any(_files(dataset, id_) != part.files[id_] for id_ in left):
        return None
    # Full-text and vector segments know rows by row ids, which outlive their fragments: those of
    # a compacted one would be found twice, here and by the scan of what is uncovered.
    if not left or (part.kind != BTREE and len(left) < len(part.files)):
        return None
    return dataclasses.replace(part.segment, fragment_ids=Bitmap(sorted(left)))


def _files(dataset: LanceDataset, fragment_id: int) -> tuple[str, ...]:
    return tuple(file_names(fragment_of(dataset, fragment_id).metadata))
