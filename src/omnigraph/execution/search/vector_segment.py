"""The vectors of some rows, as a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.exact import Values, flat, numpy_of
from omnigraph.execution.search.segment_types import Mask, RowIds
from omnigraph.execution.search.sketch import Sketch, SketchInBackground, sketch_bytes

Matrix: TypeAlias = npt.NDArray[np.float32]

# Squared lengths are summed in 64 bits, a block of rows at a time.
_BLOCK_ROWS: Final = 4_096
# An image costs about a hundred searches, so a program that searches once or twice gets none.
_ASKED_MIN: Final = 3


@dataclass(frozen=True)
class VectorSegment:
    """The vectors of the rows that have one, in the order of their row ids."""

    row_ids: RowIds
    matrix: Matrix
    # The squared length of each vector.
    squares: npt.NDArray[np.float32]
    # The rows without a vector.
    blank_rows: RowIds
    _asked: Iterator[int] = field(default_factory=count, compare=False, repr=False)
    _sketch: SketchInBackground = field(
        default_factory=SketchInBackground, compare=False, repr=False
    )

    @property
    def nbytes(self) -> int:
        """How much memory it takes, with the image that it may get."""
        arrays = (self.row_ids, self.matrix, self.squares, self.blank_rows)
        return sum(each.nbytes for each in arrays) + sketch_bytes(*self.matrix.shape)

    @cached_property
    def length_max(self) -> float:
        """The length of the longest vector; infinite or NaN if a square is."""
        return float(np.sqrt(self.squares.max(initial=0), dtype=np.float64))

    @property
    def sketch(self) -> Sketch | None:
        """A coarse image of the vectors, if one is made and helps to leave most of them out."""
        is_worth_it = next(self._asked) >= _ASKED_MIN and sketch_bytes(*self.matrix.shape) > 0
        return self._sketch.get(self.matrix) if is_worth_it else None


def vector_segment(row_ids: RowIds, vectors: Values) -> VectorSegment:
    """The segment of vectors, whose row ids are ascending."""
    known = flat(vectors)
    if not known.null_count:
        return _segment(row_ids, matrix_of(known), np.empty(0, np.uint64))
    has_vector = numpy_of(known.is_valid())
    return _segment(row_ids[has_vector], matrix_of(known.drop_null()), row_ids[~has_vector])


def merged_vectors(
    segments: Sequence[VectorSegment], alive: Sequence[Mask | None]
) -> VectorSegment:
    """One segment for several, without the rows that are gone."""
    kept = [
        (segment.row_ids, segment.matrix)
        if mask is None
        else (segment.row_ids[mask], segment.matrix[mask])
        for segment, mask in zip(segments, alive, strict=True)
    ]
    row_ids = np.concatenate([each for each, _ in kept])
    order = np.argsort(row_ids, kind="stable")
    return _segment(
        row_ids[order],
        np.concatenate([each for _, each in kept])[order],
        np.concatenate([segment.blank_rows for segment in segments]),
    )


def matrix_of(vectors: pa.Array) -> Matrix:
    """Vectors without nulls, a row each."""
    dimension = vectors.type.list_size
    found: Matrix = vectors.flatten().to_numpy(zero_copy_only=False)
    return found.reshape(len(vectors), dimension)


def _segment(row_ids: RowIds, matrix: Matrix, blank_rows: RowIds) -> VectorSegment:
    squares = np.empty(len(matrix), np.float32)
    with np.errstate(over="ignore"):
        for start in range(0, len(matrix), _BLOCK_ROWS):
            block = matrix[start : start + _BLOCK_ROWS].astype(np.float64)
            squares[start : start + _BLOCK_ROWS] = np.einsum("ij,ij->i", block, block)
    return VectorSegment(row_ids, matrix, squares, blank_rows)
