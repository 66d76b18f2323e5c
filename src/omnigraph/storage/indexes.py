"""Indexes on pinned versions: built as segments, committed detached, replaced as a whole.

A segment covers fragments. Rows of uncovered fragments are still found, by scanning them, so an
index is never wrong, only slow. It is extended when its tail is large: a segment per small commit
would keep the planner of compactions from ever joining fragments.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import lance
from lance import LanceDataset, LanceOperation
from lance.dataset import Index as Segment
from lance.fragment import FragmentMetadata

from omnigraph.errors import StorageRefused

IndexKind = Literal["BTREE", "INVERTED", "VECTOR"]
BTREE: Final = "BTREE"
INVERTED: Final = "INVERTED"
VECTOR: Final = "VECTOR"
# Every segment is asked by every search; beyond four, merging them pays.
SEGMENTS_MAX = 4

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


def built(
    dataset: LanceDataset, column: str, kind: IndexKind, *, name: str, options: dict[str, Any]
) -> LanceOperation.CreateIndex | None:
    """The operation that indexes all fragments in one segment; None when there are none."""
    fragment_ids = list(dataset.fragment_ids())
    if not fragment_ids:
        return None
    if kind == VECTOR and "num_partitions" not in options:
        options = {**options, "num_partitions": max(1, math.isqrt(dataset.count_rows()) // 2)}
    segment = _segment(dataset, column, kind, fragment_ids=fragment_ids, options=options)
    return _operation(dataset, name, segment)


def extended(dataset: LanceDataset, name: str) -> LanceOperation.CreateIndex | None:
    """The operation that indexes the uncovered fragments; None when there are none."""
    index = next((found for found in indexes_of(dataset) if found.name == name), None)
    if index is None:
        raise StorageRefused("extend_index", dataset.uri, f"there is no index '{name}'")
    if not index.uncovered:
        return None
    options = _options_of(dataset, index)
    tail = sorted(index.uncovered)
    segment = _segment(dataset, index.column, index.kind, fragment_ids=tail, options=options)
    present = set(dataset.fragment_ids())
    old = _segments(dataset, name)
    live = [part for part in old if not present.isdisjoint(part.fragment_ids)]
    if len(live) < SEGMENTS_MAX:
        return LanceOperation.CreateIndex(
            [dataclasses.replace(segment, name=name)], [part for part in old if part not in live]
        )
    return _operation(dataset, name, _merged(dataset, [*live, segment]))


def lost_coverage(dataset: LanceDataset, inputs: Sequence[FragmentMetadata]) -> tuple[str, ...]:
    """The indexes that hold row addresses of fragments about to be rewritten."""
    ids = {fragment.id for fragment in inputs}
    return tuple(
        index.name
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


def _operation(dataset: LanceDataset, name: str, segment: Segment) -> LanceOperation.CreateIndex:
    # The old segments leave with the same commit: Lance panics on overlapping full-text segments.
    return LanceOperation.CreateIndex(
        [dataclasses.replace(segment, name=name)], _segments(dataset, name)
    )


def _segments(dataset: LanceDataset, name: str) -> list[Segment]:
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
