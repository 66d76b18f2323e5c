"""A coarse image of vectors that bounds their distances from below.

Each vector is replaced by its coordinates in a few directions, along which the vectors differ most,
and by how far it is from the centre of its group in all other directions. No two vectors are
nearer to each other than their images say, so whatever is too far in the image can be left out:
the answer is exact, and most of the matrix is never read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]

# Below these, reading the whole matrix is fast enough.
ROWS_MIN: Final = 20_000
DIMENSION_MIN: Final = 128
DIRECTIONS_MAX: Final = 64
GROUPS_MAX: Final = 128
# What the directions and groups are derived from.
_SAMPLE_ROWS: Final = 20_000
_ROUNDS: Final = 6
_BLOCK_ROWS: Final = 8_192
# An image that leaves more than this share of the vectors is not worth looking at.
_TRIALS: Final = 16
_NEIGHBOURS: Final = 11
_USEFUL_SHARE: Final = 0.05
# Of each row besides its coordinates: a squared length, a group and a rest.
_ROW_BYTES: Final = 4 + 2 + 4


# One image is made at a time in a process: it keeps every core busy for seconds.
_build_lock: Final = Lock()


class SketchAbandonedError(Exception):
    """An image that nothing waits for any more."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The image of the rows of a matrix."""

    # The directions, and the centres of groups, as rows; and the centres in the image.
    directions: Doubles
    centres: Doubles
    images: Doubles
    # Of each row: its coordinates, their squared length, its group, and its distance to the
    # centre of the group in all other directions.
    coordinates: Floats
    squares: Floats
    groups: npt.NDArray[np.int16]
    residuals: Floats

    def compute_bounds(self, query: Doubles) -> Floats:
        """Of each row, a squared distance that it is at least away, but for rounding errors."""
        # Products of matrices would be threaded, and wait for busy cores longer than they take.
        there = np.vecdot(self.directions, query)
        to_centres, to_images = self.centres - query, self.images - there
        squares = np.vecdot(to_centres, to_centres) - np.vecdot(to_images, to_images)
        rests = np.sqrt(np.maximum(squares, 0)).astype(np.float32)
        found: Floats = np.vecdot(self.coordinates, (-2 * there).astype(np.float32))
        found += self.squares
        found += np.float32(there @ there)
        gaps = rests.take(self.groups)
        gaps -= self.residuals
        gaps *= gaps
        found += gaps
        return found


class BackgroundSketch:
    """The image of a matrix, made by a thread of its own: no search waits for it.

    The thread ends when its owner is gone, such as by closing the graph.
    """

    def __init__(self) -> None:
        # Locked for good by the search that begins.
        self._is_begun = Lock()
        self._found: Sketch | None = None

    def get_sketch(self, matrix: Floats) -> Sketch | None:
        """The image, if it is made and of use; the first call begins to make it."""
        if not self._is_begun.locked() and _build_lock.acquire(blocking=False):
            if self._is_begun.acquire(blocking=False):
                args = (weakref.ref(self), matrix)
                Thread(
                    target=_build_in_background, args=args, name="omnigraph-sketch", daemon=True
                ).start()
            else:
                _build_lock.release()
        return self._found

    def set_sketch(self, found: Sketch | None) -> None:
        """Let searches use the image from now on."""
        self._found = found


def _build_in_background(owner: weakref.ref[BackgroundSketch], matrix: Floats) -> None:
    def poll() -> None:
        if owner() is None:
            raise SketchAbandonedError

    try:
        found = build_sketch(matrix, poll)
        if (waiting := owner()) is not None:
            waiting.set_sketch(found)
    except SketchAbandonedError:
        pass
    finally:
        _build_lock.release()


def estimate_sketch_bytes(rows: int, dimension: int) -> int:
    """How much memory the image of so many vectors takes; none if there is none of so few."""
    if rows < ROWS_MIN or dimension < DIMENSION_MIN:
        return 0
    return rows * (4 * _count_directions(dimension) + _ROW_BYTES)


def build_sketch(matrix: Floats, poll: Callable[[], None] = lambda: None) -> Sketch | None:
    """The image of a matrix, or None if it would be of no use; what `poll` raises ends it."""
    rows, dimension = matrix.shape
    if rows < ROWS_MIN or dimension < DIMENSION_MIN:
        return None
    random = np.random.default_rng(0)
    sample = matrix[np.sort(random.choice(rows, min(rows, _SAMPLE_ROWS), replace=False))]
    sample = sample.astype(np.float64)
    if not np.isfinite(sample).all():
        return None
    poll()
    basis = _compute_directions(sample)
    centres = _compute_centres(sample, random, poll)
    sketch = _project_matrix(matrix, basis, centres, poll)
    return sketch if _is_useful(sketch, matrix, random) else None


def _compute_directions(sample: Doubles) -> Doubles:
    centred = sample - sample.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(vectors[:, -_count_directions(sample.shape[1]) :])


def _count_directions(dimension: int) -> int:
    return min(DIRECTIONS_MAX, dimension // 4)


def _compute_centres(
    sample: Doubles, random: np.random.Generator, poll: Callable[[], None]
) -> Doubles:
    """Centres of groups by some rounds of k-means."""
    centres = sample[random.choice(len(sample), min(GROUPS_MAX, len(sample)), replace=False)]
    for _ in range(_ROUNDS):
        poll()
        groups = _find_nearest_centre(sample, centres)
        counts = np.bincount(groups, minlength=len(centres))
        order = np.argsort(groups, kind="stable")
        filled = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[filled]
        sums = np.add.reduceat(sample[order], starts, axis=0)
        centres[filled] = sums / counts[filled, None]
    return centres


def _find_nearest_centre(rows: Doubles, centres: Doubles) -> npt.NDArray[np.int64]:
    distances = np.einsum("ij,ij->i", centres, centres) - 2 * (rows @ centres.T)
    found: npt.NDArray[np.int64] = np.argmin(distances, axis=1)
    return found


def _project_matrix(
    matrix: Floats, basis: Doubles, centres: Doubles, poll: Callable[[], None]
) -> Sketch:
    rows = len(matrix)
    coordinates = np.empty((rows, basis.shape[1]), np.float32)
    squares, rests = np.empty(rows, np.float32), np.empty(rows, np.float32)
    groups = np.empty(rows, np.int16)
    for start in range(0, rows, _BLOCK_ROWS):
        poll()
        here = slice(start, start + _BLOCK_ROWS)
        # In 64 bits: a rest may be the small difference of two large numbers.
        block = matrix[here].astype(np.float64)
        nearest = _find_nearest_centre(block, centres)
        there = block @ basis
        coordinates[here], groups[here] = there, nearest
        squares[here] = np.einsum("ij,ij->i", there, there)
        rests[here] = _compute_residuals(block - centres[nearest], basis)
    directions = np.ascontiguousarray(basis.T)
    return Sketch(directions, centres, centres @ basis, coordinates, squares, groups, rests)


def _compute_residuals(rows: Doubles, basis: Doubles) -> Doubles:
    """The lengths of rows in all directions but those of the basis."""
    there = rows @ basis
    squares = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", there, there)
    found: Doubles = np.sqrt(np.maximum(squares, 0))
    return found


def _is_useful(sketch: Sketch, matrix: Floats, random: np.random.Generator) -> bool:
    """Whether the rows themselves, as queries, leave few rows to look at."""
    left = []
    for row in random.choice(len(matrix), _TRIALS, replace=False):
        query = matrix[row].astype(np.float64)
        bounds = sketch.compute_bounds(query)
        first = np.argpartition(bounds, _NEIGHBOURS)[:_NEIGHBOURS]
        reach = ((matrix[first] - query) ** 2).sum(axis=1).max()
        left.append(np.count_nonzero(bounds <= reach))
    return bool(np.median(left) <= _USEFUL_SHARE * len(matrix))
