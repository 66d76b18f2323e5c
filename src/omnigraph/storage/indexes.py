"""Indexes on pinned versions, in segments.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import lance
from lance import LanceDataset
from lance.dataset import Index as Segment

IndexKind = Literal["BTREE", "INVERTED", "VECTOR"]
BTREE: Final = "BTREE"
INVERTED: Final = "INVERTED"
VECTOR: Final = "VECTOR"
# Every segment is asked by every search; beyond four, merging them pays.
SEGMENTS_MAX = 4
# Lance wants so many vectors for each partition of an index before it calls that meaningful.
PARTITION_ROWS_MIN = 256

# Lance's own names. VECTOR is IVF_FLAT: its segments need only centroids, which the index itself
# keeps, so two new rows can be indexed; IVF_PQ trains a codebook and refuses fewer than 256.
_LANCE_KINDS: dict[IndexKind, str] = {BTREE: "BTREE", INVERTED: "INVERTED", VECTOR: "IVF_FLAT"}
_OUR_KINDS: dict[str, IndexKind] = {"BTREE": BTREE, "INVERTED": INVERTED, "IVF_FLAT": VECTOR}
_TOKENIZER_OPTIONS = (
    "base_tokenizer",
    "language",
    "with_position",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
)


@dataclass(frozen=True, slots=True)
class Index:
    """One index of a version, and how much of the version it does not cover."""

    name: str
    column: str
    kind: IndexKind
    segments: int
    covered: frozenset[int]
    uncovered: frozenset[int]


def indexes_of(dataset: LanceDataset) -> tuple[Index, ...]:
    """Every index of a version, by name."""
    present = frozenset(dataset.fragment_ids())
    found = []
    for description in dataset.describe_indices():
        claimed = frozenset(i for part in description.segments for i in part.fragment_ids)
        found.append(
            Index(
                name=description.name,
                column=description.field_names[0],
                kind=_OUR_KINDS[description.index_type.upper()],
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


def whole_segment(
    dataset: LanceDataset, column: str, kind: IndexKind, *, options: dict[str, Any]
) -> tuple[Segment, list[Segment]] | None:
    """A segment over all fragments, in place of no other; None when there are no fragments."""
    fragment_ids = list(dataset.fragment_ids())
    if not fragment_ids:
        return None
    if kind == VECTOR and "num_partitions" not in options:
        rows = dataset.count_rows()
        partitions = max(1, min(math.isqrt(rows) // 2, rows // PARTITION_ROWS_MIN))
        options = {**options, "num_partitions": partitions}
    segment = _segment(dataset, column, kind, fragment_ids=fragment_ids, options=options)
    return segment, []


def tail_segment(
    dataset: LanceDataset, name: str, known: list[Segment]
) -> tuple[Segment, list[Segment]] | None:
    """A segment over the uncovered fragments, and the known ones whose place it takes.

    None when everything is covered. Too many segments are merged into the new one.
    """
    index = next(found for found in indexes_of(dataset) if found.name == name)
    if not index.uncovered:
        return None
    options = _options_of(dataset, index)
    tail = sorted(index.uncovered)
    segment = _segment(dataset, index.column, index.kind, fragment_ids=tail, options=options)
    present = set(dataset.fragment_ids())
    live = [part for part in known if not present.isdisjoint(part.fragment_ids)]
    if len(live) < SEGMENTS_MAX:
        return segment, [part for part in known if part not in live]
    # The old segments leave with the same commit: Lance panics on overlapping full-text segments.
    return _merged(dataset, [*live, segment]), known


def lost_coverage(dataset: LanceDataset, fragment_ids: Iterable[int]) -> tuple[Index, ...]:
    """The indexes that hold row addresses of fragments about to be rewritten."""
    ids = set(fragment_ids)
    return tuple(
        index
        for index in indexes_of(dataset)
        if index.kind == BTREE and not ids.isdisjoint(index.covered)
    )


def _segment(
    dataset: LanceDataset,
    column: str,
    kind: IndexKind,
    *,
    fragment_ids: list[int],
    options: dict[str, Any],
) -> Segment:
    segment = dataset.create_index_uncommitted(
        column,
        _LANCE_KINDS[kind],
        # With the name of an existing index Lance refuses; the real one is given by the commit.
        name=f"segment of {column}",
        fragment_ids=fragment_ids,
        **options,
    )
    # A full-text segment is only staged: committed as it is, every search would fail.
    return dataset.merge_existing_index_segments([segment]) if kind == INVERTED else segment


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


def _options_of(dataset: LanceDataset, index: Index) -> dict[str, Any]:
    """What the first segment was built with, because segments of one index must agree."""
    description = next(found for found in dataset.describe_indices() if found.name == index.name)
    details: dict[str, Any] = description.details
    match index.kind:
        case "BTREE":
            return {}
        case "INVERTED":
            return {key: details[key] for key in _TOKENIZER_OPTIONS if key in details}
        case "VECTOR":
            model: lance.indices.IvfModel = dataset.get_ivf_model(index.name)
            centroids = model.centroids
            return {
                "metric": details["metric_type"],
                "ivf_centroids": centroids,
                "num_partitions": len(centroids),
            }
