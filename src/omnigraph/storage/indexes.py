"""Indexes on pinned versions, in segments.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lance import LanceDataset
from lance.dataset import Index as Segment

# The one kind of index that is built: ordered, for values that can be compared.
BTREE: Final = "BTREE"
# Every segment is asked by every search; beyond four, merging them pays.
SEGMENTS_MAX = 4


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


def whole_segment(dataset: LanceDataset, column: str) -> tuple[Segment, list[Segment]] | None:
    """A segment over all fragments, in place of no other; None when there are no fragments."""
    fragment_ids = list(dataset.fragment_ids())
    if not fragment_ids:
        return None
    return _segment(dataset, column, fragment_ids), []


def own_segment(
    dataset: LanceDataset, column: str, known: list[Segment], fragment_ids: Iterable[int]
) -> tuple[Segment, list[Segment]]:
    """A segment over some fragments, in place of those that cover nothing any more."""
    present = set(dataset.fragment_ids())
    dead = [part for part in known if present.isdisjoint(part.fragment_ids)]
    return _segment(dataset, column, list(fragment_ids)), dead


def tail_segment(
    dataset: LanceDataset, name: str, known: list[Segment]
) -> tuple[Segment, list[Segment]] | None:
    """A segment over the uncovered fragments, and the known ones whose place it takes.

    None when everything is covered. Too many segments are merged into the new one.
    """
    index = next(found for found in indexes_of(dataset) if found.name == name)
    if not index.uncovered:
        return None
    segment = _segment(dataset, index.column, sorted(index.uncovered))
    present = set(dataset.fragment_ids())
    live = [part for part in known if not present.isdisjoint(part.fragment_ids)]
    if len(live) < SEGMENTS_MAX:
        return segment, [part for part in known if part not in live]
    # The old segments leave with the same commit: it covers what they cover.
    return _merged(dataset, [*live, segment]), known


def lost_coverage(dataset: LanceDataset, fragment_ids: Iterable[int]) -> tuple[Index, ...]:
    """The indexes that hold row addresses of fragments about to be rewritten."""
    ids = set(fragment_ids)
    return tuple(index for index in indexes_of(dataset) if not ids.isdisjoint(index.covered))


def _segment(dataset: LanceDataset, column: str, fragment_ids: list[int]) -> Segment:
    return dataset.create_index_uncommitted(
        column,
        BTREE,
        # With the name of an existing index Lance refuses; the real one is given by the commit.
        name=f"segment of {column}",
        fragment_ids=fragment_ids,
    )


def _merged(dataset: LanceDataset, segments: list[Segment]) -> Segment:
    """One segment for several; only the newest, which is last, still knows its details."""
    newest = segments[-1]
    return dataset.merge_existing_index_segments(
        [
            dataclasses.replace(
                segment,
                index_details=newest.index_details,
                # Lance refuses versions from the future, and detached versions are random numbers.
                dataset_version=dataset.version,
            )
            for segment in segments
        ]
    )
