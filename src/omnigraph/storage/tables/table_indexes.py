"""Indexes on pinned versions, in segments.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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

# Which of some segments, by name, must not be copied.
FindDamaged: TypeAlias = Callable[[set[str]], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Index:
    """One index of a version, and how much of the version it does not cover.

    What is damaged of it covers nothing.
    """

    name: str
    column: str
    segments: int
    covered: frozenset[int]
    uncovered: frozenset[int]
    is_damaged: bool = False


def indexes_of(dataset: LanceDataset, damaged: Collection[str] = frozenset()) -> tuple[Index, ...]:
    """Every index of a version that is of the kind we build, by name.

    An index without a sound segment is ignored.
    """
    present = frozenset(dataset.fragment_ids())
    found = []
    for description in dataset.describe_indices():
        sound = [part for part in description.segments if str(part.uuid) not in damaged]
        if description.index_type.upper() != BTREE or not sound:
            continue
        claimed = frozenset(i for part in sound for i in part.fragment_ids)
        found.append(
            Index(
                name=description.name,
                column=description.field_names[0],
                segments=len(sound),
                covered=claimed & present,
                uncovered=present - claimed,
                is_damaged=len(sound) < len(description.segments),
            )
        )
    return tuple(sorted(found, key=lambda index: index.name))


def list_damaged_indexes(dataset: LanceDataset, damaged: Collection[str]) -> list[IndexSpec]:
    """The indexes of a version that have damaged segments."""
    return [
        IndexSpec(description.name, description.field_names[0])
        for description in dataset.describe_indices()
        if any(str(part.uuid) in damaged for part in description.segments)
    ]


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
    """What a new segment of an index is made of, and which old ones go.

    Dead ones cover nothing any more, or are damaged.
    """

    column: str
    fragment_ids: list[int]
    merged: list[Segment]
    dead: list[Segment]

    @property
    def replaced(self) -> list[Segment]:
        """The segments that leave with the commit of the new one: it covers what they cover."""
        return [*self.dead, *self.merged]


def plan_segment(
    dataset: LanceDataset, part: IndexPart, damaged: Collection[str]
) -> SegmentPlan | None:
    """A segment over the fragments of a part, or over all uncovered ones if it names none.

    None when everything is covered. Of too many segments, the smallest are merged into the one
    over all that is uncovered.
    """
    known, column = segments_of(dataset, part.spec.name), part.spec.column
    live, dead = _split_segments(dataset, known, damaged)
    if part.fragment_ids:
        return SegmentPlan(column, list(part.fragment_ids), [], dead)
    covered = {id_ for each in live for id_ in each.fragment_ids}
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


def find_lost_coverage(
    dataset: LanceDataset, fragment_ids: Iterable[int], damaged: Collection[str]
) -> tuple[Index, ...]:
    """The indexes that hold row addresses of fragments about to be rewritten."""
    ids = set(fragment_ids)
    known = indexes_of(dataset, damaged)
    return tuple(index for index in known if not ids.isdisjoint(index.covered))


def _split_segments(
    dataset: LanceDataset, known: list[Segment], damaged: Collection[str]
) -> tuple[list[Segment], list[Segment]]:
    """The segments that cover a fragment of a version, and those that cover none or must not."""
    present = set(dataset.fragment_ids())
    live = [
        part
        for part in known
        if part.uuid not in damaged and not present.isdisjoint(part.fragment_ids)
    ]
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
    """Fragments that become one segment of an index; none are all that it does not cover.

    The damaged segments of the index, by name, go when the new one comes.
    """

    spec: IndexSpec
    rows: int
    fragment_ids: tuple[int, ...] = ()
    damaged: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part of an index, and what its segment is made of."""

    spec: IndexSpec
    plan: SegmentPlan


def plan_segments(
    dataset: LanceDataset, parts: Sequence[IndexPart], find_damaged: FindDamaged
) -> list[PlannedPart]:
    """The segments of parts of indexes of one version, as far as there is something to do.

    A damaged segment is never merged: a copy of it would have a valid digest. What it covers is
    read from the rows again.
    """
    damaged = frozenset(name for part in parts for name in part.damaged)
    while True:
        found = [(part.spec, plan_segment(dataset, part, damaged)) for part in parts]
        plans = [PlannedPart(spec, plan) for spec, plan in found if plan is not None]
        more = find_damaged({old.uuid for each in plans for old in each.plan.merged})
        if not more:
            return plans
        damaged |= more


def build_segments(
    dataset: LanceDataset, planned: Sequence[PlannedPart], seal: Seal
) -> Iterator[BuiltSegment]:
    """Build planned parts of indexes of one version, which were found to be sound."""
    for each in planned:
        yield _build_part(dataset, each.spec, each.plan, seal)


def cut_index(
    dataset: LanceDataset,
    spec: IndexSpec,
    damaged: Collection[str] = frozenset(),
    rows_max: int | None = None,
) -> list[IndexPart]:
    """What an index does not cover, in parts that become segments of their own.

    A part has at most so many rows, or one fragment.
    """
    known = segments_of(dataset, spec.name)
    bad = frozenset(part.uuid for part in known if part.uuid in damaged)
    covered = (part.fragment_ids for part in known if part.uuid not in bad)
    gap = sorted(set(dataset.fragment_ids()).difference(*covered))
    groups = _group_fragments(dataset, gap, rows_max or SEGMENT_ROWS_MAX)
    if len(groups) == 1:
        # All that is uncovered when it is built, which may be merged with small segments.
        return [IndexPart(spec, count_rows_in(dataset, gap), damaged=bad)]
    return [IndexPart(spec, count_rows_in(dataset, group), tuple(group), bad) for group in groups]


def _group_fragments(
    dataset: LanceDataset, fragment_ids: Sequence[int], rows_max: int
) -> list[list[int]]:
    groups: list[list[int]] = []
    filled = 0
    for fragment_id in fragment_ids:
        rows = count_rows_in(dataset, [fragment_id])
        if not groups or filled + rows > rows_max:
            groups.append([])
            filled = 0
        groups[-1].append(fragment_id)
        filled += rows
    return groups


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
        # Another process extended the index, maybe over the same rows.
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
