"""The nearest of some vectors: all that may be among them by 32-bit arithmetic, then exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.field_index import FieldIndex, RowIds, make_single_segment
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.scored_nodes import ScoredNodes, make_empty, select_least
from omnigraph.execution.search.vector_segment import Matrix, VectorSegment, build_vector_segment
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.sorted_search import find_positions
from omnigraph.storage.tables.row_ids import ROW_ID

VectorField: TypeAlias = FieldIndex[VectorSegment]
Vector: TypeAlias = npt.NDArray[np.float32]
Distances: TypeAlias = npt.NDArray[np.float32]

# Beyond this share of all vectors it is faster to read all than to pick some.
_PICKED_SHARE: Final = 0.2

# So many vectors are measured exactly rather than by a better bound first.
_FEW_LEFT: Final = 64

# Exact distances take 64 bits per component, so they are computed a block of rows at a time.
_BLOCK_ROWS: Final = 2_048
_ROUNDING: Final = 2.0**-24

# Squares of longer vectors do not fit 32-bit floats.
_LENGTH_MAX: Final = 1e18


def find_nearest(
    field: VectorField,
    at: RowIndices,
    query: Vector,
    *,
    limit: int | None,
    check: Callable[[], None] = lambda: None,
) -> ScoredNodes:
    """The squared distances of the vectors at some places of a field.

    With a limit, only of those that are no farther than the one at the limit. What `check` raises
    between two blocks of rows ends the search.
    """
    if limit is None or limit >= len(at):
        return ScoredNodes(np.arange(len(at)), _compute_exact(field, at, query, check))
    if not limit:
        return make_empty()
    candidates = _find_candidates(field, at, query, limit, check)
    found = _compute_exact(field, at if candidates is None else at[candidates], query, check)
    kept = select_least(found, limit)
    return ScoredNodes(kept if candidates is None else candidates[kept], found[kept])


def compute_squared_distances(
    matrix: Matrix, query: Vector, at: RowIndices, check: Callable[[], None] = lambda: None
) -> Distances:
    """The exact squared distances of some rows, rounded once to 32 bits."""
    found = np.empty(len(at), np.float32)
    there = query.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(at), _BLOCK_ROWS):
            check()
            differences = matrix.take(at[start : start + _BLOCK_ROWS], axis=0) - there
            differences *= differences
            # One after the other, so that every engine rounds the same sums.
            sums = np.add.accumulate(differences, axis=1)[:, -1]
            found[start : start + _BLOCK_ROWS] = sums
    return found


def _compute_exact(
    field: VectorField, at: RowIndices, query: Vector, check: Callable[[], None]
) -> Distances:
    found = np.empty(len(at), np.float32)
    for segment, where, local in _split_by_segment(field, at):
        found[where] = compute_squared_distances(segment.matrix, query, local, check)
    return found


def _find_candidates(
    field: VectorField, at: RowIndices, query: Vector, limit: int, check: Callable[[], None]
) -> RowIndices | None:
    """Places among which the nearest are for certain; None if all may be."""
    length = float(np.linalg.norm(query.astype(np.float64)))
    longest = max(segment.length_max for segment in field.segments)
    if not max(length, longest) < _LENGTH_MAX:
        return None
    # Every sum of products is off by at most so much, in whatever order it is computed.
    slack = _ROUNDING * 4 * (len(query) + 8) * (length + longest) ** 2
    places: RowIndices | None = None
    for of in _choose_bounds(field, at):
        check()
        here = at if places is None else at[places]
        lower = _compute_bounds(field, here, query, of)
        first = select_least(lower, limit)[:limit]
        reach = (
            float(_compute_exact(field, here[first], query, check).max()) * (1 + 4 * _ROUNDING)
            + slack
        )
        kept = np.flatnonzero(lower <= np.float32(reach))
        places = kept if places is None else places[kept]
        if len(places) <= limit + _FEW_LEFT:
            break
    return places


def _choose_bounds(field: VectorField, at: RowIndices) -> list[Callable[..., Distances]]:
    """How to bound distances from below, but for rounding: coarsely, then better."""
    are_many = len(at) > _PICKED_SHARE * field.starts[-1]
    if are_many and any(segment.sketch is not None for segment in field.segments):
        return [_bound_by_sketch, _bound_by_rounding]
    return [_bound_by_rounding]


def _compute_bounds(
    field: VectorField, at: RowIndices, query: Vector, of: Callable[..., Distances]
) -> Distances:
    found = np.empty(len(at), np.float32)
    for segment, where, local in _split_by_segment(field, at):
        found[where] = of(segment, local, query)
    return found


def _bound_by_sketch(segment: VectorSegment, local: RowIndices, query: Vector) -> Distances:
    if segment.sketch is None:
        return _bound_by_rounding(segment, local, query)
    return segment.sketch.compute_bounds(query.astype(np.float64)).take(local)


def _bound_by_rounding(segment: VectorSegment, local: RowIndices, query: Vector) -> Distances:
    # Not a product of matrices: its threads gain nothing here, and wait for busy cores.
    if len(local) > _PICKED_SHARE * len(segment.row_ids):
        found: Distances = np.vecdot(segment.matrix, -2 * query)
        found += segment.squares
        found = found.take(local)
    else:
        found = np.vecdot(segment.matrix.take(local, axis=0), -2 * query)
        found += segment.squares.take(local)
    found += np.float32(query.astype(np.float64) @ query)
    return found


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


def stream_nearest(
    asked: FieldRef,
    row_ids: RowIds,
    query: Vector,
    *,
    limit: int | None,
    check: Callable[[], None] = lambda: None,
) -> ScoredNodes:
    """The squared distances of the vectors of some rows, or of the nearest so many of them."""
    order = np.argsort(row_ids)
    ordered = row_ids[order]
    found = make_empty()
    table = asked.view.open_table(asked.type_key)
    for batch in table.scan_batches(columns=[ROW_ID, asked.column]):
        check()
        here = build_vector_segment(batch.column(ROW_ID).to_numpy(), batch.column(asked.column))
        places, is_wanted = find_positions(here.row_ids, ordered)
        wanted = np.flatnonzero(is_wanted)
        near = find_nearest(make_single_segment(here), wanted, query, limit=limit)
        found = ScoredNodes(
            np.concatenate([found.indices, order.take(places.take(wanted.take(near.indices)))]),
            np.concatenate([found.scores, near.scores]),
        )
        kept = select_least(found.scores, limit)
        found = ScoredNodes(found.indices[kept], found.scores[kept])
    return found
