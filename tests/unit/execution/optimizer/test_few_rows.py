"""Results of few rows: their columns are fetched as they lie in the source."""

from __future__ import annotations

import pytest

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
def test_few_rows_have_the_same_columns_and_values_from_every_source(text: str) -> None:
    for seed in (3, 5, 7, 9):
        graph, view = world(seed)
        plan = plan_of(graph, text)
        whole, looked_up = (
            Planner().run(plan, reading_of(view, plan, access=access)).to_arrow()
            for access in (Access.TOPOLOGY, Access.LOOKUPS)
        )
        assert planned_rows(plan, reading_of(view, plan)) == model_rows(graph, plan)
        assert whole.schema == looked_up.schema
        keys = [(name, "ascending") for name in whole.schema.names]
        assert whole.sort_by(keys) == looked_up.sort_by(keys)
        whole.validate(full=True)


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
