"""Explanations: operators from the result down, with access paths, rows and times."""

from __future__ import annotations

import pytest

from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import Access
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.model_views import indexed, plan_of
from unit.execution.optimizer.planned import reading_of
from unit.execution.optimizer.random_reads import random_read, world

_GROUPED = (
    'query q() { match { $a: Person { city: "x" } $a knows $b $b lives $c }'
    " return { $a.name, count($c) as n } order { n desc } limit 2 }"
)


def explained(text: str, *, access: Access = Access.TOPOLOGY, analyze: bool = True) -> Explained:
    """How a read of a small graph runs."""
    graph, view = world(5)
    plan = plan_of(graph, text)
    return Planner().explain(plan, reading_of(view, plan, access=access), analyze=analyze)


def operators(found: Explained) -> list[str]:
    """The names of its operators."""
    return [row.operator for row in found.rows]


def test_operators_are_listed_from_the_result_down() -> None:
    found = explained(_GROUPED)
    assert operators(found) == ["Limit", "Sort", "Aggregate", "Weigh", "Scan"]
    weigh, scan = found.rows[-2:]
    assert (scan.access, scan.index) == ("postings", "Person.city")
    assert "$b [Lives->] $c" in weigh.detail
    assert found.rows[0].actual_rows == 2
    assert all(row.time_ms is not None for row in found.rows)


def test_a_plan_that_is_not_run_has_estimates_only() -> None:
    found = explained(_GROUPED, analyze=False)
    assert operators(found) == ["Limit", "Sort", "Aggregate", "Weigh", "Scan"]
    assert all(row.actual_rows is None and row.time_ms is None for row in found.rows)
    assert found.rows[-2].estimated_rows is not None


def test_the_same_plan_has_the_same_text_but_for_times() -> None:
    first, second = (explained(_GROUPED, analyze=False).to_text() for _ in range(2))
    assert first == second
    assert first.splitlines()[0].split()[:3] == ["operator", "access", "index"]
    assert len(first.splitlines()) == 6


def test_an_id_is_looked_up() -> None:
    text = 'query q() { match { $a: Person { name: "p1" } $a knows{1,2} $b } return { $b.name } }'
    found = explained(text)
    assert operators(found) == ["Project", "Expand", "Scan"]
    assert (found.rows[-1].access, found.rows[-1].index) == ("lookup", "Person.@id")
    assert (found.rows[1].access, found.rows[1].index) == ("topology", "Knows out")
    assert found.rows[-1].actual_rows == 1


def test_look_ups_name_the_index_they_use() -> None:
    graph, view = world(5)
    view = indexed(view, TypeKey(TypeKind.NODE, "Person"), ["city"])
    text = 'query q() { match { $a: Person { name: "p1" } $a knows $b } return { $b.name } }'
    plan = plan_of(graph, text)
    found = Planner().explain(plan, reading_of(view, plan, access=Access.LOOKUPS))
    assert (found.rows[-1].access, found.rows[-1].index) == ("lookup", "of___id")
    by_city = plan_of(graph, 'query q() { match { $a: Person { city: "x" } } return { $a.name } }')
    found = Planner().explain(by_city, reading_of(view, by_city, access=Access.LOOKUPS))
    assert found.rows[-1].access == "scan"
    assert found.rows[-1].index.startswith("of_c")


def test_blocks_and_what_follows_from_keys_are_listed() -> None:
    text = (
        "query q() { match { $a: Person not { $a knows $b } $a lives $c }"
        " return { $a.name, $c.title, count($c) as n } }"
    )
    graph, view = world(8)
    plan = plan_of(graph, text)
    found = Planner().explain(plan, reading_of(view, plan))
    assert {"Exists", "Scan"} <= set(operators(found))
    follows = {"Follow", "Expand"} & set(operators(found))
    assert len(follows) == 1


@pytest.mark.parametrize("access", [Access.TOPOLOGY, Access.LOOKUPS])
def test_stages_are_listed_under_what_starts_from_them(access: Access) -> None:
    text = (
        "query q() { match { $a: Person $a knows $b } with { $a, count($b) as n }"
        " match { $a lives $c } return { $c.title as title, $n as n }"
        " union all match { $a: Person } with { max($a.name) as m }"
        " match { $a: Person  $a.name = $m } return { $a.city as title, 0 as n } }"
    )
    found = explained(text, access=access)
    names = operators(found)
    assert names[:2] == ["Project", "StageRows"]
    assert names.count("StageRows") == 3
    assert all(row.actual_rows is not None for row in found.rows if row.operator == "StageRows")
    assert found.rows[1].detail.startswith("union all $title")
    known = explained(text, access=access, analyze=False)
    assert operators(known) == names
    assert all(row.actual_rows is None for row in known.rows)


@pytest.mark.slow
def test_any_read_can_be_explained_on_any_source() -> None:
    for seed in range(60):
        text = random_read(seed)
        graph, view = world(seed % 12)
        plan = plan_of(graph, text)
        for access in (Access.TOPOLOGY, Access.LOOKUPS):
            reading = reading_of(view, plan, access=access)
            found = Planner().explain(plan, reading)
            (result,) = [row.actual_rows for row in found.rows[:1]]
            assert result == len(Planner().run(plan, reading)), text
            assert found.to_dicts()[-1]["operator"] == "Scan"
