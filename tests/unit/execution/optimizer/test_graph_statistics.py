"""Estimates of traversals: close where numbers are small, and at most what there is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.optimizer.graph_statistics import estimate_nodes_within
from omnigraph.query.ast import HOPS_MAX
from unit.execution.optimizer.planned import planned
from unit.execution.optimizer.random_reads import world


@given(
    degree=st.floats(0, 50),
    minimum=st.integers(0, 6),
    more=st.integers(0, 6),
    most=st.integers(1, 10**6),
)
def test_an_estimate_is_the_capped_sum_over_the_hops(
    degree: float, minimum: int, more: int, most: int
) -> None:
    maximum = minimum + more
    expected = min(sum(degree**hop for hop in range(minimum, maximum + 1)), most)
    found = estimate_nodes_within(degree, minimum, maximum, most)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(degree=st.floats(0, 1e9), minimum=st.integers(1, HOPS_MAX), most=st.integers(1, 2**62))
def test_an_estimate_saturates_at_any_bound(degree: float, minimum: int, most: int) -> None:
    found = estimate_nodes_within(degree, minimum, HOPS_MAX, most)
    assert 0 <= found <= most
    assert math.isfinite(found)


@pytest.mark.parametrize("bounds", ["{1,500}", f"{{1,{HOPS_MAX}}}", f"{{2,{HOPS_MAX}}}"])
@pytest.mark.parametrize("start", ["", '{ name: "p1" }'])
def test_a_bound_beyond_the_graph_costs_no_time(bounds: str, start: str) -> None:
    graph, view = world(5)
    text = (
        f"query q() {{ match {{ $a: Person {start} $a knows{bounds} $b }} return {{ $b.name }} }}"
    )
    planned(graph, view, text)
