"""Nearest vectors, compared with a sort of all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from model.search import distance
from omnigraph.execution.search import nearest_vectors as module
from omnigraph.execution.search import vector_segment as segments
from omnigraph.execution.search import vector_sketch as sketches
from omnigraph.execution.search.field_index import FieldIndex, extend_index, make_single_segment
from omnigraph.execution.search.nearest_vectors import VectorField, find_nearest
from omnigraph.execution.search.vector_segment import (
    VectorSegment,
    build_vector_segment,
    merge_vector_segments,
)
from omnigraph.execution.search.vector_sketch import Sketch
from omnigraph.query.ast import Metric

Matrix = npt.NDArray[np.float32]


def field_of(*parts: Matrix) -> VectorField:
    made: list[VectorSegment] = []
    start = 0
    for part in parts:
        rows = np.arange(start, start + len(part), dtype=np.uint64)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), part.shape[1])
        made.append(build_vector_segment(rows, vectors))
        start += len(part)
    return FieldIndex(tuple(made), (None,) * len(made))


def expected_of(matrix: Matrix, query: Matrix, limit: int) -> dict[int, float]:
    exact = (matrix.astype(np.float64) - query.astype(np.float64)) ** 2
    with np.errstate(over="ignore"):
        scores = np.add.accumulate(exact, axis=1)[:, -1].astype(np.float32)
    last = np.sort(scores)[limit - 1]
    return {int(at): float(scores[at]) for at in np.flatnonzero(scores <= last)}


def assert_nearest(field: VectorField, matrix: Matrix, query: Matrix, limit: int) -> None:
    found = find_nearest(field, np.arange(len(matrix)), query, limit=limit)
    assert found.scores.dtype == np.float32
    got = dict(zip(found.indices.tolist(), found.scores.tolist(), strict=True))
    assert got == expected_of(matrix, query, limit)


def vectors(kind: str, rows: int, dimension: int, seed: int = 0) -> Matrix:
    random = np.random.default_rng(seed)
    noise = random.standard_normal((rows, dimension))
    match kind:
        case "random":
            found = noise
        case "groups":
            found = random.standard_normal((99, dimension))[random.integers(0, 99, rows)] * 3
            found += 0.1 * noise
        case "flat":
            found = noise / np.arange(1, dimension + 1)
        case "far away":
            found = noise * 0.01 + 1_000
        case "ties":
            found = random.integers(0, 2, (rows, dimension)).astype(np.float64)
        case _:
            found = np.ones((rows, dimension))
    return found.astype(np.float32)


KINDS = ["random", "groups", "flat", "far away", "ties", "equal"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1, 7, 299])
def test_the_nearest_are_exact(kind: str, limit: int) -> None:
    matrix = vectors(kind, 300, 12)
    queries = [matrix[5], matrix[0] * np.float32(1.01), np.zeros(12, np.float32)]
    for query in queries:
        assert_nearest(field_of(matrix), matrix, query, limit)
        assert_nearest(field_of(matrix[:100], matrix[100:130], matrix[130:]), matrix, query, limit)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sketch_leaves_no_near_vector_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    monkeypatch.setattr(sketches, "_USEFUL_SHARE", 1.0)
    monkeypatch.setattr(segments, "_USES_MIN", 0)
    monkeypatch.setattr(module, "_FEW_LEFT", 0)
    matrix = vectors(kind, 2_000, 24)
    field = field_of(matrix)
    assert made_sketch(field) is not None
    random = np.random.default_rng(1)
    for row in random.integers(0, len(matrix), 10):
        query = matrix[row] + (random.standard_normal(24) * 0.05).astype(np.float32)
        assert_nearest(field, matrix, query, 10)


def made_sketch(field: VectorField) -> Sketch | None:
    """The sketch of a field, when the thread that makes it is done."""
    until = time.monotonic() + 60
    while (found := field.segments[0].sketch) is None and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_no_search_waits_for_a_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    is_begun, may_end = threading.Event(), threading.Event()
    original = sketches.build_sketch

    def slow(matrix: Matrix, poll: Callable[[], None]) -> Sketch | None:
        is_begun.set()
        assert may_end.wait(60)
        return original(matrix, poll)

    monkeypatch.setattr(sketches, "build_sketch", slow)
    matrix = vectors("groups", 2_000, 24)
    field = field_of(matrix)
    for _ in range(6):
        assert_nearest(field, matrix, matrix[5], 10)
    assert is_begun.wait(60)
    assert field.segments[0].sketch is None
    may_end.set()
    assert made_sketch(field) is not None


def test_a_sketch_of_vectors_that_are_gone_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    ends: list[BaseException] = []
    is_gone, is_done = threading.Event(), threading.Event()

    def slow(_: Matrix, poll: Callable[[], None]) -> Sketch | None:
        assert is_gone.wait(60)
        try:
            poll()
        except sketches.SketchAbandonedError as end:
            ends.append(end)
            raise
        finally:
            is_done.set()
        return None

    monkeypatch.setattr(sketches, "build_sketch", slow)
    matrix = vectors("groups", 200, 24)
    owner = sketches.BackgroundSketch()
    until = time.monotonic() + 60
    while not owner._is_begun.locked() and time.monotonic() < until:
        owner.get_sketch(matrix)
    del owner
    is_gone.set()
    assert is_done.wait(60)
    assert len(ends) == 1


def test_a_sketch_bounds_distances_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    matrix = vectors("groups", 3_000, 32)
    sketch = sketches.build_sketch(matrix)
    assert sketch is not None
    query = matrix[7].astype(np.float64) + 0.01
    exact = ((matrix - query) ** 2).sum(axis=1)
    bounds = sketch.compute_bounds(query)
    assert (bounds <= exact + 1e-3).all()
    assert np.count_nonzero(bounds < exact[7]) < 300, "and tells most vectors apart"


def test_memory_is_counted_with_the_sketch_that_vectors_may_get(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = vectors("groups", 500, 32)
    (segment,) = field_of(matrix).segments
    bare = segment.nbytes
    assert bare == matrix.nbytes + 500 * (8 + 4)
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    monkeypatch.setattr(sketches, "_USEFUL_SHARE", 1.0)
    sketch = sketches.build_sketch(matrix)
    assert sketch is not None
    arrays = (sketch.coordinates, sketch.squares, sketch.groups, sketch.residuals)
    assert segment.nbytes == bare + sum(each.nbytes for each in arrays)


def test_a_sketch_that_tells_nothing_apart_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "ROWS_MIN", 100)
    monkeypatch.setattr(sketches, "DIMENSION_MIN", 8)
    assert sketches.build_sketch(vectors("random", 2_000, 64)) is None


def test_only_some_vectors_may_be_asked_for() -> None:
    matrix = vectors("random", 500, 6)
    field = field_of(matrix[:200], matrix[200:])
    for at in (np.arange(0, 500, 7), np.arange(499, -1, -1), np.array([3, 450, 7])):
        found = find_nearest(field, at, matrix[3], limit=2)
        some = expected_of(matrix[at], matrix[3], 2)
        assert dict(zip(found.indices.tolist(), found.scores.tolist(), strict=True)) == some


@pytest.mark.parametrize("limit", [None, 0, 3, 10])
def test_few_vectors(limit: int | None) -> None:
    matrix = vectors("random", 3, 4)
    found = find_nearest(field_of(matrix), np.arange(3), matrix[1], limit=limit)
    assert found.indices.tolist() == ([] if limit == 0 else [0, 1, 2])


@pytest.mark.parametrize("size", [1e-30, 1e19, 3e38])
def test_very_small_and_very_large_vectors_are_measured_exactly(size: float) -> None:
    matrix = vectors("random", 200, 8) * np.float32(0.1)
    with np.errstate(over="ignore"):
        matrix = np.clip(matrix * size, -3e38, 3e38).astype(np.float32)
    assert_nearest(field_of(matrix), matrix, matrix[3], 5)


def test_distances_have_the_bits_of_the_model() -> None:
    matrix = vectors("random", 50, 7)
    query = vectors("random", 1, 7, seed=9)[0]
    found = find_nearest(field_of(matrix), np.arange(50), query, limit=None)
    model = [distance(Metric.L2, row.tolist(), query.tolist()) for row in matrix]
    assert found.scores.tolist() == model


def test_rows_without_a_vector_are_left_out_and_segments_merge() -> None:
    kind = pa.list_(pa.float32(), 2)
    first = build_vector_segment(
        np.array([1, 2, 5], np.uint64), pa.array([[0, 1], None, [2, 3]], kind)
    )
    assert first.row_ids.tolist() == [1, 5]

    def make(rows: npt.NDArray[np.uint64]) -> VectorSegment:
        return build_vector_segment(rows, pa.array([[row, 0] for row in rows.tolist()], kind))

    later = extend_index(
        make_single_segment(first),
        np.array([9, 3, 2, 5], np.uint64),
        make=make,
        merge=merge_vector_segments,
    )
    (segment,) = later.segments
    assert segment.row_ids.tolist() == [3, 5, 9]
    assert segment.matrix.tolist() == [[3, 0], [2, 3], [9, 0]]
    assert segment.blank_rows.tolist() == [2]
