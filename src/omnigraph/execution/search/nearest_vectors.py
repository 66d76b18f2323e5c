"""The nearest of some vectors: all that may be among them by 32-bit arithmetic, then exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from omnigraph.execution.search.field_index import FieldIndex, RowIds, make_single_segment
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.scored_nodes import ScoredNodes, make_empty, select_least
from omnigraph.execution.search.vector_metrics import (
    ROUNDING,
    Distances,
    Vector,
    bound_distances,
    estimate_slack,
    measure_vectors,
)
from omnigraph.execution.search.vector_segment import Matrix, VectorSegment, build_vector_segment
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.ast import Metric
from omnigraph.sorted_search import find_positions
from omnigraph.storage.tables.row_ids import ROW_ID

VectorField: TypeAlias = FieldIndex[VectorSegment]

# Beyond this share of all vectors it is faster to read all than to pick some.
_PICKED_SHARE: Final = 0.2

# So many vectors are measured exactly rather than by a better bound first.
_FEW_LEFT: Final = 64

# Exact distances take 64 bits per component, so they are computed a block of rows at a time.
BLOCK_ROWS: Final = 2_048

# Squares of longer vectors do not fit 32-bit floats.
_LENGTH_MAX: Final = 1e18


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """How far is measured, and what is called between two blocks of rows, and may raise."""

    metric: Metric = Metric.L2
    check: Callable[[], None] = lambda: None

    def select(self, found: ScoredNodes, limit: int | None) -> ScoredNodes:
        """The nearest so many; by the cosine, of those that have a direction."""
        known = np.arange(len(found.scores))
        if self.metric is Metric.COSINE:
            known = np.flatnonzero(~np.isnan(found.scores))
        kept = known[select_least(found.scores[known], limit)]
        return ScoredNodes(found.indices[kept], found.scores[kept])


PLAIN_SEARCH: Final = VectorSearch()


def find_nearest(
    field: VectorField,
    at: RowIndices,
    query: Vector,
    *,
    limit: int | None,
    search: VectorSearch = PLAIN_SEARCH,
) -> ScoredNodes:
    """The distances of the vectors at some places of a field that have one.

    With a limit, only of those that are no farther than the one at the limit.
    """
    if limit is None or limit >= len(at):
        found = _measure_places(field, at, query, search)
        return search.select(ScoredNodes(np.arange(len(at)), found), limit)
    if not limit:
        return make_empty()
    candidates = _find_candidates(field, at, query, limit, search)
    found = _measure_places(field, at if candidates is None else at[candidates], query, search)
    places = np.arange(len(at)) if candidates is None else candidates
    return search.select(ScoredNodes(places, found), limit)


def measure_rows(matrix: Matrix, query: Vector, at: RowIndices, search: VectorSearch) -> Distances:
    """How far some rows are, exactly, rounded once to 32 bits."""
    found = np.empty(len(at), np.float32)
    there = query.astype(np.float64)
    for start in range(0, len(at), BLOCK_ROWS):
        search.check()
        rows = matrix.take(at[start : start + BLOCK_ROWS], axis=0)
        found[start : start + BLOCK_ROWS] = measure_vectors(search.metric, rows, there)
    return found


def _measure_places(
    field: VectorField, at: RowIndices, query: Vector, search: VectorSearch
) -> Distances:
    found = np.empty(len(at), np.float32)
    for segment, where, local in _split_by_segment(field, at):
        found[where] = measure_rows(segment.matrix, query, local, search)
    return found


def _find_candidates(
    field: VectorField, at: RowIndices, query: Vector, limit: int, search: VectorSearch
) -> RowIndices | None:
    """Places among which the nearest are for certain; None if all may be."""
    length = float(np.linalg.norm(query.astype(np.float64)))
    longest = max(segment.length_max for segment in field.segments)
    if not max(length, longest) < _LENGTH_MAX:
        return None
    slack = estimate_slack(search.metric, query, longest)
    places: RowIndices | None = None
    for of in _choose_bounds(field, at, search.metric):
        search.check()
        here = at if places is None else at[places]
        lower = _compute_bounds(field, here, query, of)
        first = select_least(lower, limit)[:limit]
        farthest = float(_measure_places(field, here[first], query, search).max())
        if np.isnan(farthest):
            # A vector without a direction has no distance, and so no other one is beyond it.
            return None
        kept = np.flatnonzero(lower <= np.float32(farthest + abs(farthest) * 4 * ROUNDING + slack))
        places = kept if places is None else places[kept]
        if len(places) <= limit + _FEW_LEFT:
            break
    return places


_Bound: TypeAlias = Callable[[VectorSegment, RowIndices, Vector], Distances]


def _choose_bounds(field: VectorField, at: RowIndices, metric: Metric) -> list[_Bound]:
    """How to bound distances from below, but for rounding: coarsely, then better."""
    are_many = metric is Metric.L2 and len(at) > _PICKED_SHARE * field.starts[-1]
    bounds: list[_Bound] = [partial(bound_distances, metric)]
    if are_many and any(segment.sketch is not None for segment in field.segments):
        return [_bound_by_sketch, *bounds]
    return bounds


def _compute_bounds(field: VectorField, at: RowIndices, query: Vector, of: _Bound) -> Distances:
    found = np.empty(len(at), np.float32)
    for segment, where, local in _split_by_segment(field, at):
        found[where] = of(segment, local, query)
    return found


def _bound_by_sketch(segment: VectorSegment, local: RowIndices, query: Vector) -> Distances:
    if segment.sketch is None:
        return bound_distances(Metric.L2, segment, local, query)
    return segment.sketch.compute_bounds(query.astype(np.float64)).take(local)


def _split_by_segment(
    field: VectorField, at: RowIndices
) -> Iterator[tuple[VectorSegment, slice | RowIndices, RowIndices]]:
    """The given places by segment: which of them are in it, and where in it they are."""
    if len(field.segments) == 1:
        yield field.segments[0], slice(None), at
        return
    for segment, start in zip(field.segments, field.starts, strict=False):
        where = np.flatnonzero((at >= start) & (at < start + len(segment.row_ids)))
        if len(where):
            yield segment, where, at[where] - start


def take_vectors(field: VectorField, at: RowIndices) -> Matrix:
    """The vectors at some places of a field."""
    found = np.empty((len(at), field.segments[0].matrix.shape[1]), np.float32)
    for segment, where, local in _split_by_segment(field, at):
        found[where] = segment.matrix.take(local, axis=0)
    return found


def stream_nearest(
    asked: FieldRef,
    row_ids: RowIds,
    query: Vector,
    *,
    limit: int | None,
    search: VectorSearch = PLAIN_SEARCH,
) -> ScoredNodes:
    """The distances of the vectors of some rows, or of the nearest so many of them."""
    order = np.argsort(row_ids)
    ordered = row_ids[order]
    found = make_empty()
    table = asked.view.open_table(asked.type_key)
    for batch in table.scan_batches(columns=[ROW_ID, asked.column]):
        search.check()
        here = build_vector_segment(batch.column(ROW_ID).to_numpy(), batch.column(asked.column))
        places, is_wanted = find_positions(here.row_ids, ordered)
        wanted = np.flatnonzero(is_wanted)
        near = find_nearest(make_single_segment(here), wanted, query, limit=limit, search=search)
        found = ScoredNodes(
            np.concatenate([found.indices, order.take(places.take(wanted.take(near.indices)))]),
            np.concatenate([found.scores, near.scores]),
        )
        kept = select_least(found.scores, limit)
        found = ScoredNodes(found.indices[kept], found.scores[kept])
    return found
