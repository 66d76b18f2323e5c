"""Checking what an embedder returned."""

from __future__ import annotations

import math

import pytest

from omnigraph.embedding.embedder import normalize_vector
from omnigraph.errors import ExecutionError


def test_a_vector_is_scaled_to_length_one() -> None:
    assert normalize_vector([3, 4], dimension=2) == pytest.approx((0.6, 0.8), abs=1e-7)
    assert normalize_vector([-5.0], dimension=1) == (-1.0,)


@pytest.mark.parametrize("values", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1e200, 1e200]])
def test_a_vector_without_direction_is_refused(values: list[float]) -> None:
    with pytest.raises(ExecutionError, match="no direction"):
        normalize_vector(values, dimension=2)


def test_a_vector_of_another_dimension_is_refused() -> None:
    with pytest.raises(ExecutionError, match="3 components, not 2"):
        normalize_vector([1, 2, 3], dimension=2)
