"""Indexes on pinned versions, in segments.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lance import LanceDataset
from lance.dataset import Index as Segment
from lance.indices import IndexConfig

from omnigraph.storage.fragments import fragment_of

# The one kind of index that is built: ordered, for values that can be compared.
BTREE: Final = "BTREE"
# Every search asks every segment, at 0.05 ms each; merging them costs the rows of all.
SEGMENTS_MAX = 8
# A segment with more rows is neither extended nor merged: each piece of work takes seconds at most.
SEGMENT_ROWS_MAX = 8 * 1024 * 1024
# A search reads a page per value. Fifty values among 4M rows take 16 ms with pages of 4,096 rows, 7
# with 1,024; smaller pages save nothing, as there are more to choose from.
PAGE_ROWS: Final = 1024


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
