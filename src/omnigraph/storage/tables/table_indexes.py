"""Indexes on pinned versions, in segments.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lance import LanceDataset, LanceOperation
from lance.bitmap import Bitmap
from lance.dataset import Index as Segment
from lance.indices import IndexConfig

from omnigraph.storage.tables.fragments import fragment_of
from omnigraph.storage.tables.pins import Pin, list_file_names

# The one kind of index that is built: ordered, for values that can be compared.
BTREE: Final = "BTREE"

# Every search asks every segment, at 0.05 ms each; merging them costs the rows of all.
SEGMENTS_MAX = 8

# A segment with more rows is neither extended nor merged: each piece of work takes seconds at most.
SEGMENT_ROWS_MAX = 8 * 1024 * 1024

# A search reads a page per value. Fifty values among 4M rows take 16 ms with pages of 4,096 rows, 7
# with 1,024; smaller pages save nothing, as there are more to choose from.
PAGE_ROWS: Final = 1024

# Gives the folder of a written segment the name it keeps.
Seal: TypeAlias = Callable[[Segment], Segment]

# Refuses fragments and segments, by id and name, that must not be copied.
Require: TypeAlias = Callable[[set[int], set[str]], None]


@dataclass(frozen=True, slots=True)
class Index:
    """One index of a version, and how much of the version it does not cover."""

    name: str
    column: str
    segments: int
    covered: frozenset[int]
    uncovered: frozenset[int]


def indexes_of(dataset: LanceDataset) -> tuple[Index, ...]:
    """Every index of a version that is of the kind we build, by name."""
    present = frozenset(dataset.fragment_ids())
    found = []
    for description in dataset.describe_indices():
        if description.index_type.upper() != BTREE:
            continue
        claimed = frozenset(i for part in description.segments for i in part.fragment_ids)
        found.append(
            Index(
                name=description.name,
                column=description.field_names[0],
                segments=len(description.segments),
                covered=claimed & present,
                uncovered=present - claimed,
            )
        )
    return tuple(sorted(found, key=lambda index: index.name))


def segments_of(dataset: LanceDataset, name: str) -> list[Segment]:
    """The segments of an index; none when there is no such index."""
    return [
        Segment(
            uuid=part.uuid,
            name=name,
            fields=description.fields,
            dataset_version=part.dataset_version_at_last_update,
            fragment_ids=part.fragment_ids,
            index_version=part.index_version,
        )
        for description in dataset.describe_indices()
        if description.name == name
        for part in description.segments
    ]


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """What a new segment of an index is made of, and which old ones cover nothing any more."""

    column: str
    fragment_ids: list[int]
    merged: list[Segment]
    dead: list[Segment]

    @property
    def replaced(self) -> list[Segment]:
        """The segments that leave with the commit of the new one: it covers what they cover."""
        return [*self.dead, *self.merged]


def plan_segment(
    dataset: LanceDataset, column: str, known: list[Segment], fragment_ids: Sequence[int]
) -> SegmentPlan | None:
    """A segment over some fragments, or over all uncovered ones if none are given.

    None when everything is covered. Of too many segments, the smallest are merged into the one
    over all that is uncovered.
    """
    live, dead = _split_segments(dataset, known)
    if fragment_ids:
        return SegmentPlan(column, list(fragment_ids), [], dead)
    covered = {id_ for part in known for id_ in part.fragment_ids}
    uncovered = sorted(set(dataset.fragment_ids()) - covered)
    if not uncovered:
        return None
    merged = _select_smallest(dataset, live, count_rows_in(dataset, uncovered))
    return SegmentPlan(column, uncovered, merged, dead)


def build_segment(dataset: LanceDataset, plan: SegmentPlan) -> Segment:
    """The planned segment, written beside the table."""
    segment = _build_segment(dataset, plan.column, plan.fragment_ids)
    return _merge_segments(dataset, segment, plan.merged) if plan.merged else segment


def count_rows_in(dataset: LanceDataset, fragment_ids: Iterable[int]) -> int:
    """How many rows live in some fragments."""
    return sum(fragment_of(dataset, id_).metadata.num_rows for id_ in fragment_ids)


def find_lost_coverage(dataset: LanceDataset, fragment_ids: Iterable[int]) -> tuple[Index, ...]:
    """The indexes that hold row addresses of fragments about to be rewritten."""
    ids = set(fragment_ids)
    return tuple(index for index in indexes_of(dataset) if not ids.isdisjoint(index.covered))


def _split_segments(
    dataset: LanceDataset, known: list[Segment]
) -> tuple[list[Segment], list[Segment]]:
    """The segments that cover a fragment of a version, and those that cover none."""
    present = set(dataset.fragment_ids())
    live = [part for part in known if not present.isdisjoint(part.fragment_ids)]
    return live, [part for part in known if part not in live]


def _select_smallest(dataset: LanceDataset, live: list[Segment], new_rows: int) -> list[Segment]:
    """The segments to merge with a new one: the smallest half, as soon as there are too many.

    So a row is merged a few times in its life, and never with every extension.
    """
    present = set(dataset.fragment_ids())
    sized = [
        (count_rows_in(dataset, present.intersection(part.fragment_ids)), part) for part in live
    ]
    small = sorted((each for each in sized if each[0] < SEGMENT_ROWS_MAX), key=lambda each: each[0])
    if len(small) < SEGMENTS_MAX:
        return []
    merged: list[Segment] = []
    for rows, part in small[: len(small) - SEGMENTS_MAX // 2]:
        new_rows += rows
        if new_rows > SEGMENT_ROWS_MAX:
            break
        merged.append(part)
    return merged


def _build_segment(dataset: LanceDataset, column: str, fragment_ids: list[int]) -> Segment:
    return dataset.create_index_uncommitted(
        column,
        IndexConfig(BTREE.lower(), {"zone_size": PAGE_ROWS}),
        # With the name of an existing index Lance refuses; the real one is given by the commit.
        name=f"segment of {column}",
        fragment_ids=fragment_ids,
    )


def _merge_segments(dataset: LanceDataset, newest: Segment, others: list[Segment]) -> Segment:
    """One segment for several; only the newest knows its details, and the pages have its size."""
    return dataset.merge_existing_index_segments(
        [
            dataclasses.replace(
                segment,
                index_details=newest.index_details,
                # Lance refuses versions from the future, and detached versions are random numbers.
                dataset_version=dataset.version,
            )
            for segment in (newest, *others)
        ]
    )


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
    rows_max = rows_max or SEGMENT_ROWS_MAX
    known = segments_of(dataset, spec.name)
    gap = sorted(set(dataset.fragment_ids()).difference(*(part.fragment_ids for part in known)))
    parts: list[IndexPart] = []
    chosen: list[int] = []
    chosen_rows = 0
    for fragment_id in gap:
        rows = count_rows_in(dataset, [fragment_id])
        if chosen and chosen_rows + rows > rows_max:
            parts.append(IndexPart(spec, chosen_rows, tuple(chosen)))
            chosen, chosen_rows = [], 0
        chosen.append(fragment_id)
        chosen_rows += rows
    if not parts:
        return [IndexPart(spec, chosen_rows)] if gap else []
    return [*parts, IndexPart(spec, chosen_rows, tuple(chosen))]


def _plan(dataset: LanceDataset, part: IndexPart) -> SegmentPlan | None:
    known = segments_of(dataset, part.spec.name)
    return plan_segment(dataset, part.spec.column, known, part.fragment_ids)


def _build_part(
    dataset: LanceDataset, spec: IndexSpec, plan: SegmentPlan, seal: Seal
) -> BuiltSegment:
    segment = build_segment(dataset, plan)
    return BuiltSegment(
        segment=dataclasses.replace(seal(segment), name=spec.name),
        known=frozenset(old.uuid for old in segments_of(dataset, spec.name)),
        replaced=frozenset(old.uuid for old in plan.replaced),
        files={id_: _list_files(dataset, id_) for id_ in segment.fragment_ids},
    )


def apply_segments(dataset: LanceDataset, indexed: Indexed) -> LanceOperation.CreateIndex | None:
    """The operation that adds the segments to a version; None when none of them fits it."""
    new: list[Segment] = []
    removed: dict[str, Segment] = {}
    for part in indexed.parts:
        known = segments_of(dataset, part.segment.name)
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
