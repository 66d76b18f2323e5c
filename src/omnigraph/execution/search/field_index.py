"""One property of all rows of a version: segments of rows, some of which may be gone.

A segment never changes. A later version of the table shares the segments of an earlier one: rows
that are gone are masked, and new rows make a segment of their own, until there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.sorted_search import are_among, find_positions

# Every search asks every segment.
SEGMENTS_MAX: Final = 8

# Rows that are gone, or in segments after the first, beyond which everything is merged.
LOOSE_SHARE: Final = 0.25
RowIds: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]


class Segment(Protocol):
    """Something about rows, in the order of their row ids."""

    @property
    def row_ids(self) -> RowIds:
        """The rows, ascending."""

    @property
    def blank_rows(self) -> RowIds:
        """More rows, which have nothing to say."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""


S = TypeVar("S", bound=Segment)


@dataclass(frozen=True)
class FieldIndex(Generic[S]):
    """The segments of a version, and for each which rows are in the version; None means all."""

    segments: tuple[S, ...]
    alive: tuple[Mask | None, ...]

    @property
    def nbytes(self) -> int:
        """How much memory it takes, though versions share segments."""
        masks = sum(mask.nbytes for mask in self.alive if mask is not None)
        return masks + sum(segment.nbytes for segment in self.segments)

    @property
    def is_whole(self) -> bool:
        """Whether it is one segment, all of whose rows are there."""
        return len(self.segments) == 1 and self.alive[0] is None

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the rows of each segment start, if all segments are put in line."""
        return tuple(np.cumsum([0, *(len(each.row_ids) for each in self.segments)]).tolist())

    def find_row_indices(self, row_ids: RowIds) -> RowIndices:
        """Where rows are in that line; -1 for rows without a place."""
        if len(self.segments) == 1 and _are_within(row_ids, self.segments[0].row_ids):
            places: RowIndices = (row_ids - self.segments[0].row_ids[0]).view(np.int64)
            return places
        found = np.full(len(row_ids), -1, np.int64)
        for start, segment in zip(self.starts, self.segments, strict=False):
            _put_row_indices(found, segment.row_ids, row_ids, start=start)
        return found


def make_single_segment(segment: S) -> FieldIndex[S]:
    """A field of one segment, all of whose rows are there."""
    return FieldIndex((segment,), (None,))


def extend_index(
    field: FieldIndex[S],
    row_ids: RowIds,
    *,
    make: Callable[[RowIds], S],
    merge: Callable[[Sequence[S], Sequence[Mask | None]], S],
) -> FieldIndex[S]:
    """The field of a later version, which has exactly these rows."""
    ordered = np.sort(row_ids)
    known = [(segment.row_ids, segment.blank_rows) for segment in field.segments]
    is_known = are_among(ordered, np.sort(np.concatenate([*chain.from_iterable(known)])))
    new = ordered[~is_known]
    segments = (*field.segments, make(new)) if len(new) else field.segments
    alive = tuple(_compute_mask(segment.row_ids, ordered) for segment in segments)
    sizes = [len(segment.row_ids) for segment in segments]
    gone = sum(int(np.count_nonzero(~mask)) for mask in alive if mask is not None)
    is_loose = gone + sum(sizes[1:]) > LOOSE_SHARE * sum(sizes)
    if len(segments) > SEGMENTS_MAX or (is_loose and len(segments) > 1):
        return make_single_segment(merge(segments, alive))
    return FieldIndex(segments, alive)


def _compute_mask(row_ids: RowIds, present: RowIds) -> Mask | None:
    found = are_among(row_ids, present)
    return None if found.all() else found


def _are_within(row_ids: RowIds, ordered: RowIds) -> bool:
    """Whether rows are all among some that have consecutive ids."""
    if not (len(row_ids) and _are_consecutive(ordered)):
        return False
    return bool(row_ids.min() >= ordered[0] and row_ids.max() <= ordered[-1])


def _are_consecutive(ordered: RowIds) -> bool:
    return len(ordered) > 0 and int(ordered[-1]) - int(ordered[0]) + 1 == len(ordered)


def _put_row_indices(found: RowIndices, ordered: RowIds, row_ids: RowIds, *, start: int) -> None:
    if not len(ordered):
        return
    if _are_consecutive(ordered):
        # Rows that were loaded together have consecutive ids, so that a place is a difference.
        is_here = (row_ids >= ordered[0]) & (row_ids <= ordered[-1])
        np.copyto(found, (row_ids - ordered[0]).view(np.int64) + start, where=is_here)
        return
    places, is_here = find_positions(row_ids, ordered)
    np.copyto(found, places + start, where=is_here)
