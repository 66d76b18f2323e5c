"""Random reads of random graphs: whatever order is chosen, the rows are those of the model."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.operators import factorize_operator, neighbour_sums, pattern_executor
from omnigraph.execution.optimizer import read_planner
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import Access
from omnigraph.execution.sources.source_cache import SourceCache
from unit.execution.model_views import plan_of
from unit.execution.optimizer.planned import model_rows, planned_rows, reading_of, row_text
from unit.execution.optimizer.random_reads import random_read, world

_WORLDS = 12


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_a_read_of_whole_types_gives_the_rows_of_the_model(seed: int) -> None:
    graph, view = world(seed % _WORLDS)
    text = random_read(seed)
    plan = plan_of(graph, text)
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        # The answer depends on none of these; small ones are for graphs far larger than ours.
        patch.setattr(pattern_executor, "MORSEL_ROWS", chance.choice([1, 3, 1_000_000]))
        patch.setattr(factorize_operator, "SINGLE_FACTOR", chance.choice([0.001, 6, 10**9]))
        patch.setattr(factorize_operator, "WHOLE_TYPE_FACTOR", chance.choice([0, 2, 10**9]))
        patch.setattr(neighbour_sums, "EDGES_AT_ONCE", chance.choice([1, 5, 2**22]))
        found = planned_rows(plan, reading_of(view, plan))
    assert row_text(found) == row_text(model_rows(graph, plan)), text


@given(seed=st.integers(0, 2**32))
def test_a_read_by_look_ups_gives_the_rows_of_the_model(seed: int) -> None:
    graph, view = world(seed % _WORLDS)
    text = random_read(seed)
    plan = plan_of(graph, text)
    found = planned_rows(plan, reading_of(view, plan, access=Access.LOOKUPS))
    assert row_text(found) == row_text(model_rows(graph, plan)), text


def test_most_random_reads_are_weighed() -> None:
    graph, view = world(3)
    planner = Planner()
    reads = [plan_of(graph, random_read(seed)) for seed in range(100)]
    known = [planner.get_plan(each, view.catalog) for each in reads]
    assert sum(each.is_factorizable for each in known) > 80
    assert sum(each.query.aggregation is not None for each in known) > 50


def test_an_order_is_chosen_once_and_kept() -> None:
    graph, view = world(3)
    plan = plan_of(
        graph, "query q() { match { $a: Person $a knows $b } return { count($b) as n } }"
    )
    planner, sources = Planner(), SourceCache()
    planned_rows(plan, reading_of(view, plan, sources=sources), planner)
    reading = reading_of(view, plan, sources=sources)
    first = planner.get_plan(plan, reading.view.catalog).physical
    planned_rows(plan, reading, planner)
    assert first is not None
    assert planner.get_plan(plan, reading.view.catalog).physical is first


def test_only_so_many_plans_are_kept() -> None:
    graph, view = world(3)
    planner = Planner(plans_max=2)
    plans = [plan_of(graph, random_read(seed)) for seed in range(3)]
    first = [planner.get_plan(each, view.catalog) for each in plans]
    assert planner.get_plan(plans[2], view.catalog) is first[2]
    assert planner.get_plan(plans[0], view.catalog) is not first[0]


def test_parameters_that_find_far_more_make_another_order_be_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, view = world(5)
    text = (
        "query q($age: I64) { match { $a: Person $a.age >= $age $a knows $b }"
        " return { $a.name, count($b) as n } }"
    )
    plan = plan_of(graph, text)
    planner, sources = Planner(), SourceCache()
    monkeypatch.setattr(read_planner, "SKEW", 0.01)
    reading = reading_of(view, plan, {"age": 0}, sources=sources)
    rows = planned_rows(plan, reading, planner)
    assert row_text(rows) == row_text(model_rows(graph, plan, {"age": 0}))
    assert planner.get_plan(plan, reading.view.catalog).physical is None
