"""The vectors of some rows, as a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.search.field_index import Mask, RowIds
from omnigraph.execution.search.vector_sketch import BackgroundSketch, Sketch, estimate_sketch_bytes
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.stoppable_call import call_stoppably

Matrix: TypeAlias = npt.NDArray[np.float32]

# Squared lengths are summed in 64 bits, a block of rows at a time.
_BLOCK_ROWS: Final = 4_096
# An image costs about a hundred searches, so a program that searches once or twice gets none.
_USES_MIN: Final = 3


@dataclass(frozen=True)
class VectorSegment:
    """The vectors of the rows that have one, in the order of their row ids."""

    row_ids: RowIds
    matrix: Matrix
    # The squared length of each vector.
    squares: npt.NDArray[np.float32]
    # The rows without a vector.
    blank_rows: RowIds
    _uses: Iterator[int] = field(default_factory=count, compare=False, repr=False)
    _sketch: BackgroundSketch = field(default_factory=BackgroundSketch, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """How much memory it takes, with the image that it may get."""
        arrays = (self.row_ids, self.matrix, self.squares, self.blank_rows)
        return sum(each.nbytes for each in arrays) + estimate_sketch_bytes(*self.matrix.shape)

    @cached_property
    def length_max(self) -> float:
        """The length of the longest vector; infinite or NaN if a square is."""
        return float(np.sqrt(self.squares.max(initial=0), dtype=np.float64))

    @property
    def sketch(self) -> Sketch | None:
        """A coarse image of the vectors, if one is made and helps to leave most of them out."""
        is_worth_it = (
            next(self._uses) >= _USES_MIN and estimate_sketch_bytes(*self.matrix.shape) > 0
        )
        return self._sketch.get_sketch(self.matrix) if is_worth_it else None


def build_vector_segment(
    row_ids: RowIds, vectors: Values, *, check: Callable[[], None] = lambda: None
) -> VectorSegment:
    """The segment of vectors, whose row ids are ascending."""
    known = call_stoppably(lambda: flatten_chunks(vectors), check, nbytes=vectors.nbytes)
    if not known.null_count:
        return _build_segment(row_ids, matrix_of(known), np.empty(0, np.uint64), check)
    has_vector = to_numpy(known.is_valid())
    matrix = matrix_of(known.drop_null())
    return _build_segment(row_ids[has_vector], matrix, row_ids[~has_vector], check)


def merge_vector_segments(
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
    return _build_segment(
        row_ids[order],
        np.concatenate([each for _, each in kept])[order],
        np.concatenate([segment.blank_rows for segment in segments]),
    )


def matrix_of(vectors: pa.Array) -> Matrix:
    """Vectors without nulls, a row each."""
    dimension = vectors.type.list_size
    found: Matrix = vectors.flatten().to_numpy(zero_copy_only=False)
    return found.reshape(len(vectors), dimension)


def _build_segment(
    row_ids: RowIds,
    matrix: Matrix,
    blank_rows: RowIds,
    check: Callable[[], None] = lambda: None,
) -> VectorSegment:
    squares = np.empty(len(matrix), np.float32)
    with np.errstate(over="ignore"):
        for start in range(0, len(matrix), _BLOCK_ROWS):
            check()
            block = matrix[start : start + _BLOCK_ROWS].astype(np.float64)
            squares[start : start + _BLOCK_ROWS] = np.einsum("ij,ij->i", block, block)
    return VectorSegment(row_ids, matrix, squares, blank_rows)
