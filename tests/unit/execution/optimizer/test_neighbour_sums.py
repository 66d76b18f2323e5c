"""Sums over neighbours, with and without the library that is imported once it is worth it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from omnigraph.execution.operators import neighbour_sums
from omnigraph.execution.operators.checked_ints import CheckedInts
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.topology.adjacency_lists import PlainAdjacency


@pytest.mark.parametrize("edges_before", [0, 2**62])
@pytest.mark.parametrize("at_once", [1, 7, 2**21])
def test_sums_are_those_of_a_loop_before_and_after_the_import(
    monkeypatch: pytest.MonkeyPatch, edges_before: int, at_once: int
) -> None:
    monkeypatch.setattr(neighbour_sums, "EDGES_BEFORE_SPARSE", edges_before)
    monkeypatch.setattr(neighbour_sums, "SPARSE_EDGES_MIN", 0)
    monkeypatch.setattr(neighbour_sums, "EDGES_AT_ONCE", at_once)
    pick = np.random.default_rng(5)
    for nodes in (1, 2, 40):
        degrees = pick.integers(0, 4, nodes) * pick.integers(0, 2, nodes)
        offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        ends = pick.integers(0, nodes, int(offsets[-1])).astype(np.int32)
        values = pick.integers(-9, 9, nodes)
        adjacency = PlainAdjacency(offsets, ends, np.zeros(0, np.int64))
        found = neighbour_sums.sum_neighbours(adjacency, CheckedInts(values, 9), Budget())
        expected = [int(values[ends[start:end]].sum()) for start, end in pairwise(offsets)]
        assert found.values.tolist() == expected
