"""How near vectors are to each other, by each metric: exactly, and bounded from below."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.vector_segment import Matrix, VectorSegment
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.ast import Metric

Vector: TypeAlias = npt.NDArray[np.float32]
Distances: TypeAlias = npt.NDArray[np.float32]
_Doubles: TypeAlias = npt.NDArray[np.float64]

# Beyond this share of all vectors it is faster to read all than to pick some.
_PICKED_SHARE: Final = 0.2
ROUNDING: Final = 2.0**-24
# Squares of shorter vectors lose digits as 32-bit floats.
_SQUARE_MIN: Final = np.float32(1e-30)


def measure_vectors(metric: Metric, left: npt.NDArray[np.floating], right: _Doubles) -> Distances:
    """How far rows are from a vector, or each from its own: the smaller, the nearer.

    Sums are 64-bit floats, rounded once. A vector of zeros has no direction, and so is NaN away by
    the cosine.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rows = left.astype(np.float64)
        if metric is Metric.L2:
            return _sum_squares(rows - right).astype(np.float32)
        products = _add_up(rows * right)
        if metric is Metric.DOT:
            # Not its negative: nothing is -0.0 away.
            return (0 - products).astype(np.float32)
        sizes = np.sqrt(_sum_squares(rows)) * np.sqrt(_sum_squares(np.atleast_2d(right)))
        cosines: _Doubles = np.clip(products / sizes, -1.0, 1.0)
        return (1 - cosines).astype(np.float32)


def _sum_squares(rows: _Doubles) -> _Doubles:
    return _add_up(rows * rows)


def _add_up(rows: _Doubles) -> _Doubles:
    # One after the other, so that every engine rounds the same sums.
    found: _Doubles = np.add.accumulate(rows, axis=1)[:, -1]
    return found


def estimate_slack(metric: Metric, query: Vector, length_max: float) -> float:
    """How much a bound may be beyond the truth, in whatever order its products are added up."""
    length = float(np.linalg.norm(query.astype(np.float64)))
    terms = ROUNDING * 4 * (len(query) + 8)
    match metric:
        case Metric.L2:
            return terms * (length + length_max) ** 2
        case Metric.DOT:
            return terms * length * length_max
        case Metric.COSINE:
            return terms * 2


def bound_distances(
    metric: Metric, segment: VectorSegment, local: RowIndices, query: Vector
) -> Distances:
    """How far some rows of a segment are from a vector at least, but for rounding."""
    if metric is Metric.L2:
        found = _multiply(segment.matrix, segment.squares, local, -2 * query)
        found += np.float32(query.astype(np.float64) @ query)
        return found
    if metric is Metric.DOT:
        return _multiply(segment.matrix, None, local, -query)
    length = float(np.linalg.norm(query.astype(np.float64)))
    if not length:
        return np.zeros(len(local), np.float32)
    found = _multiply(segment.matrix, None, local, (-query / length).astype(np.float32))
    squares = segment.squares.take(local)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (np.float32(1) + found / np.sqrt(squares)).astype(np.float32)
    found[~(squares >= _SQUARE_MIN)] = -1
    return found


def _multiply(
    matrix: Matrix, squares: Distances | None, local: RowIndices, query: Vector
) -> Distances:
    """The products of some rows with a vector, with their squared lengths if those are given."""
    # Not a product of matrices: its threads gain nothing here, and wait for busy cores.
    if len(local) > _PICKED_SHARE * len(matrix):
        found: Distances = np.vecdot(matrix, query)
        if squares is not None:
            found += squares
        return found.take(local)
    found = np.vecdot(matrix.take(local, axis=0), query)
    if squares is not None:
        found += squares.take(local)
    return found
