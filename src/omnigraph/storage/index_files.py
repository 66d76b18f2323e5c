"""Index segments: built on one version of a table, committed on a newer one.

Building takes long, and others write meanwhile. A segment knows rows by the fragments they were in,
so on a newer version it covers those of them that are still there, and rows that came since are
merely uncovered. What no longer fits is left out: an index is never wrong, only smaller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lance import LanceDataset, LanceOperation
from lance.bitmap import Bitmap
from lance.dataset import Index as Segment

from omnigraph.storage import indexes
from omnigraph.storage.fragments import fragment_of
from omnigraph.storage.pins import Pin, list_file_names

# Gives the folder of a written segment the name it keeps.
Seal: TypeAlias = Callable[[Segment], Segment]
# Refuses fragments and segments, by id and name, that must not be copied.
Require: TypeAlias = Callable[[set[int], set[str]], None]


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index that a table shall have."""

    name: str
    column: str


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Fragments that become one segment of an index; none are all that it does not cover."""

    spec: IndexSpec
    rows: int
    fragment_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment of one index; `known` are all segments it had, `replaced` those that leave."""

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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the indexes."""
        return tuple(dict.fromkeys(part.segment.name for part in self.parts))

    @property
    def folders(self) -> list[str]:
        """The folders written, relative to the table."""
        return [f"_indices/{part.segment.uuid}/" for part in self.parts]


def build_segments(
    dataset: LanceDataset, parts: Sequence[IndexPart], *, require_inputs: Require, seal: Seal
) -> Iterator[BuiltSegment]:
    """Build parts of indexes of one version, as far as there is something to do."""
    plans = [(part.spec, plan) for part in parts if (plan := _plan(dataset, part)) is not None]
    # Indexes of several columns are made of the same files.
    require_inputs(
        {id_ for _, plan in plans for id_ in plan.fragment_ids},
        {old.uuid for _, plan in plans for old in plan.merged},
    )
    for spec, plan in plans:
        yield _build_part(dataset, spec, plan, seal)


def cut_index(
    dataset: LanceDataset, spec: IndexSpec, rows_max: int | None = None
) -> list[IndexPart]:
    """What an index does not cover, in parts that become segments of their own.

    A part has at most so many rows, or one fragment.
    """
    rows_max = rows_max or indexes.SEGMENT_ROWS_MAX
    known = indexes.segments_of(dataset, spec.name)
    gap = sorted(set(dataset.fragment_ids()).difference(*(part.fragment_ids for part in known)))
    parts: list[IndexPart] = []
    chosen: list[int] = []
    chosen_rows = 0
    for fragment_id in gap:
        rows = indexes.count_rows_in(dataset, [fragment_id])
        if chosen and chosen_rows + rows > rows_max:
            parts.append(IndexPart(spec, chosen_rows, tuple(chosen)))
            chosen, chosen_rows = [], 0
        chosen.append(fragment_id)
        chosen_rows += rows
    if not parts:
        return [IndexPart(spec, chosen_rows)] if gap else []
    return [*parts, IndexPart(spec, chosen_rows, tuple(chosen))]


def _plan(dataset: LanceDataset, part: IndexPart) -> indexes.SegmentPlan | None:
    known = indexes.segments_of(dataset, part.spec.name)
    return indexes.plan_segment(dataset, part.spec.column, known, part.fragment_ids)


def _build_part(
    dataset: LanceDataset, spec: IndexSpec, plan: indexes.SegmentPlan, seal: Seal
) -> BuiltSegment:
    segment = indexes.build_segment(dataset, plan)
    return BuiltSegment(
        segment=dataclasses.replace(seal(segment), name=spec.name),
        known=frozenset(old.uuid for old in indexes.segments_of(dataset, spec.name)),
        replaced=frozenset(old.uuid for old in plan.replaced),
        files={id_: _list_files(dataset, id_) for id_ in segment.fragment_ids},
    )


def apply_segments(dataset: LanceDataset, indexed: Indexed) -> LanceOperation.CreateIndex | None:
    """The operation that adds the segments to a version; None when none of them fits it."""
    new: list[Segment] = []
    removed: dict[str, Segment] = {}
    for part in indexed.parts:
        known = indexes.segments_of(dataset, part.segment.name)
        segment = _fit_segment(dataset, part, known)
        if segment is not None:
            new.append(segment)
            removed |= {old.uuid: old for old in known if old.uuid in part.replaced}
    return LanceOperation.CreateIndex(new, list(removed.values())) if new else None


def _fit_segment(dataset: LanceDataset, part: BuiltSegment, known: list[Segment]) -> Segment | None:
    """The segment with what it covers of a version; None when it does not fit."""
    if {old.uuid for old in known} != part.known:
        # Somebody else extended the index, maybe over the same rows.
        return None
    present = set(dataset.fragment_ids())
    left = {id_ for id_ in part.files if id_ in present}
    if any(_list_files(dataset, id_) != part.files[id_] for id_ in left):
        return None
    if not left:
        return None
    return dataclasses.replace(part.segment, fragment_ids=Bitmap(sorted(left)))


def _list_files(dataset: LanceDataset, fragment_id: int) -> tuple[str, ...]:
    return tuple(list_file_names(fragment_of(dataset, fragment_id).metadata))
