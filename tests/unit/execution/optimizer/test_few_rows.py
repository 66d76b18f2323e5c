"""Results of few rows, which are shown without the usual steps."""

from __future__ import annotations

import pytest

from omnigraph.execution.optimizer import read_planner
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import Access
from unit.execution.model_views import plan_of
from unit.execution.optimizer.planned import model_rows, planned_rows, reading_of
from unit.execution.optimizer.random_reads import world

_READS = (
    'query q() { match { $a: Person { name: "p1" } } return { $a.name, $a.age, $a.city } }',
    'query q() { match { $a: Person { name: "p2" } } return { $a.born, $a.score } }',
    'query q() { match { $a: Person { name: "p1" } $a.age > 100 } return { $a.name } }',
    'query q() { match { $a: Person { name: "nobody" } } return { $a.name, $a.@id } }',
    'query q() { match { $a: Place $a.@id = "q0" } return { $a.@id, $a.title, $a.area, $a.big } }',
    "query q() { match { $a: Person $a knows $b } return { $a.@id as x, $b.city, $b.is_active } }",
    "query q() { match { $a: Person } return { $a.score, $a.name } }",
)


@pytest.mark.parametrize("text", _READS)
def test_few_rows_have_the_columns_and_values_of_many(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (3, 5, 7, 9):
        graph, view = world(seed)
        plan = plan_of(graph, text)
        reading = reading_of(view, plan)
        fast = Planner().run(plan, reading)
        assert planned_rows(plan, reading) == model_rows(graph, plan)
        with monkeypatch.context() as patch:
            patch.setattr(read_planner, "ROWS_MAX", -1)
            slow = Planner().run(plan, reading)
        assert fast.to_arrow().schema == slow.to_arrow().schema
        assert fast.to_arrow() == slow.to_arrow()
        fast.to_arrow().validate(full=True)


def test_a_limit_without_an_order_gives_so_many_rows() -> None:
    graph, view = world(5)
    text = "query q() { match { $a: Person $a knows $b } return { $a.name, $b.name } limit 3 }"
    plan = plan_of(graph, text)
    whole = model_rows(graph, plan_of(graph, text.replace("limit 3", "")))
    for access in (Access.TOPOLOGY, Access.LOOKUPS):
        rows = planned_rows(plan, reading_of(view, plan, access=access))
        assert len(rows) == min(3, len(whole))
        assert all(row in whole for row in rows)


def test_a_parameter_without_a_value_finds_no_node() -> None:
    graph, view = world(5)
    plan = plan_of(
        graph, "query q($x: String?) { match { $a: Person { name: $x } } return { $a.name } }"
    )
    assert planned_rows(plan, reading_of(view, plan, {"x": None})) == []
