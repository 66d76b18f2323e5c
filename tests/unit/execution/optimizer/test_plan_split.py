"""Where the pattern of a plan ends, and what the steps after it need."""

from __future__ import annotations

import pytest

from omnigraph.execution.optimizer.plan_split import split_plan
from omnigraph.query.logical_plan import Aggregate, Expand, Limit, Project, Rank, Sort
from unit.execution.model_views import plan_of
from unit.execution.operators.network import network

GRAPH = network(seed=1, count=0)
MATCH = "match { $p: Person  $p $e:knows $q }"


@pytest.mark.parametrize(
    ("rest", "steps"),
    [
        ("return { $p.name }", [Project]),
        ("return { $p.name } limit 3", [Limit, Project]),
        ("return { $p.name } order { $q.age }", [Sort, Project]),
        ("return { $p.name } order { $q.age } limit 3", [Sort, Limit, Project]),
        ("return { count($p) as n }", [Aggregate]),
        ("return { $p.city, count($p) as n } order { n } limit 3", [Aggregate, Sort, Limit]),
    ],
)
def test_steps_come_in_the_order_in_which_they_run(rest: str, steps: list[type]) -> None:
    parts = split_plan(plan_of(GRAPH, f"query q() {{ {MATCH} {rest} }}").root)
    assert [type(step) for step in parts.steps] == steps
    assert isinstance(parts.pattern, Expand)
    assert parts.rows_max == (3 if steps[0] is Limit else None)


def test_a_rank_belongs_to_the_pattern() -> None:
    text = 'query q() { match { $p: Person } return { $p.name } order { bm25($p.city, "x") } }'
    assert isinstance(split_plan(plan_of(GRAPH, text).root).pattern, Rank)


@pytest.mark.parametrize(
    ("rest", "needed"),
    [
        ("return { count($p) as n, count($e.@id) as m }", set()),
        ("return { count($p.age) as n }", {"p"}),
        ("return { $q, count($p) as n } order { n }", {"q"}),
        ("return { $e.weight } order { $q.age }", {"e", "p", "q"}),
    ],
)
def test_only_variables_whose_values_matter_are_needed(rest: str, needed: set[str]) -> None:
    parts = split_plan(plan_of(GRAPH, f"query q() {{ {MATCH} {rest} }}", is_rewritten=False).root)
    assert parts.needed == needed
