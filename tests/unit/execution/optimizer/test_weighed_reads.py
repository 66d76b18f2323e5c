"""Aggregates without enumerating: what is enumerated, and that numbers never wrap."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from model import ModelGraph
from omnigraph.errors import ExecutionError, QueryTimeoutError, ResourceLimitError
from omnigraph.execution.operators.checked_ints import (
    CHECKED_MAX,
    CheckedInts,
    CountOverflowError,
    IntOverflowError,
    Weights,
    add_at,
    multiply_checked,
)
from omnigraph.execution.optimizer.read_planner import CachedPlan, Planner
from omnigraph.execution.query_budget import Budget
from omnigraph.rows.view import View
from unit.execution.model_views import add_edges, add_nodes, model_graph, plan_of, view_of
from unit.execution.optimizer.planned import model_rows, planned, planned_rows, reading_of
from unit.execution.optimizer.random_reads import world

# Everybody knows everybody: a path of so many steps has this many ends, to that power.
PEOPLE = 8


@lru_cache(maxsize=1)
def crowd() -> tuple[ModelGraph, View]:
    """People who all know each other and themselves."""
    graph = model_graph(
        "node Person { name: String @key big: I64 huge: U64 }\nedge Knows: Person -> Person"
    )
    names = [f"p{number}" for number in range(PEOPLE)]
    add_nodes(
        graph, "Person", [{"name": name, "big": 2**62 - 1, "huge": 2**64 - 1} for name in names]
    )
    add_edges(graph, "Knows", [{"@src": a, "@dst": b} for a in names for b in names])
    return graph, view_of(graph)


def path(hops: int) -> str:
    """A pattern of a path of so many traversals."""
    steps = " ".join(f"$v{hop} knows $v{hop + 1}" for hop in range(hops))
    return f"match {{ $v0: Person {steps} }}"


def counted(hops: int) -> int:
    """How many paths there are."""
    graph, view = crowd()
    plan = plan_of(graph, f"query q() {{ {path(hops)} return {{ count($v0) as n }} }}")
    (row,) = Planner().run(plan, reading_of(view, plan)).to_pylist()
    found: int = row["n"]
    return found


def enumerated(known: CachedPlan) -> list[frozenset[str]]:
    """The variables that a plan enumerates, by component."""
    assert known.physical is not None
    return [choice.core for choice in known.physical.join_orders]


def test_paths_are_counted_without_enumerating_them() -> None:
    assert counted(19) == PEOPLE**20


def test_a_count_beyond_64_bits_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="beyond 64 bits"):
        counted(20)


def test_a_sum_beyond_64_bits_is_exact() -> None:
    graph, view = crowd()
    for name in ("big", "huge"):
        value = {"big": 2**62 - 1, "huge": 2**64 - 1}[name]
        text = f"query q() {{ {path(2)} return {{ sum($v2.{name}) as s }} }}"
        _, rows = planned(graph, view, text)
        assert rows == [{"s": float(value * PEOPLE**3)}]


def test_only_one_variable_of_a_path_is_enumerated_to_count_it() -> None:
    graph, view = world(5)
    text = "query q() { match { $a: Person $a knows $b $b knows $c } return { count($a) as n } }"
    known, _ = planned(graph, view, text)
    assert [len(core) for core in enumerated(known)] == [1]


def test_variables_between_keys_are_enumerated_and_others_hang() -> None:
    graph, view = world(5)
    text = (
        "query q() { match { $a: Person $a knows $b $b lives $c $a knows $d }"
        " return { $a.city, $c.title, sum($d.age) as s, min($b.age) as m } }"
    )
    known, _ = planned(graph, view, text)
    assert enumerated(known) == [{"a", "b", "c"}]


def test_variables_with_edges_cycles_or_comparisons_between_them_are_enumerated() -> None:
    graph, view = world(5)
    text = (
        "query q() { match { $a: Person $a $e:knows $b $b knows $c $c knows $d $d knows $b"
        " $d.age < $b.age $d lives $p } return { count($a) as n } }"
    )
    known, _ = planned(graph, view, text)
    assert enumerated(known) == [{"a", "b", "c", "d"}]


def test_a_component_without_keys_only_multiplies() -> None:
    graph, view = world(5)
    text = (
        "query q() { match { $a: Person $b: Place $c: Place $b near $c }"
        " return { $a.city, count($b) as n, sum($c.size) as s, max($c.title) as t } }"
    )
    known, rows = planned(graph, view, text)
    assert [len(core) for core in enumerated(known)] == [1, 1]
    assert rows


def lands(*, is_unsettled: bool = False) -> tuple[ModelGraph, View]:
    """People in cities in a land, each in one of them, or one of them in two."""
    graph = model_graph(
        "node Person { name: String @key }\nnode City { title: String @key }\n"
        "node Land { title: String @key }\nedge Lives: Person -> City\nedge Lies: City -> Land\n"
        "edge Knows: Person -> Person"
    )
    add_nodes(graph, "Person", [{"name": f"p{number}"} for number in range(4)])
    add_nodes(graph, "City", [{"title": f"c{number}"} for number in range(2)])
    add_nodes(graph, "Land", [{"title": "l"}])
    add_edges(graph, "Lives", [{"@src": f"p{n}", "@dst": f"c{n % 2}"} for n in range(4)])
    add_edges(graph, "Lies", [{"@src": f"c{n}", "@dst": "l"} for n in range(2)])
    add_edges(graph, "Knows", [{"@src": f"p{n}", "@dst": f"p{n // 2}"} for n in range(4)])
    if is_unsettled:
        add_edges(graph, "Lives", [{"@src": "p0", "@dst": "c1"}])
    return graph, view_of(graph)


_FOLLOWED = (
    "query q() { match { $p: Person $f knows $p $p lives $c $c lies $l }"
    " return { $p.name, $c.title as city, $l.title as land, count($f) as n } order { n desc } }"
)


def test_a_node_that_a_key_determines_is_followed_after_grouping() -> None:
    graph, view = lands()
    known, rows = planned(graph, view, _FOLLOWED)
    assert known.physical is not None
    assert known.physical.deferred.variables == {"c", "l"}
    assert enumerated(known) == [{"p"}]
    assert rows[0] == {"p.name": "p0", "city": "c0", "land": "l", "n": 2}


def test_a_node_with_a_condition_is_not_only_followed() -> None:
    graph, view = lands()
    text = _FOLLOWED.replace("$c lies $l", '$c lies $l $c.title = "c0"')
    known, rows = planned(graph, view, text)
    assert known.physical is not None
    assert known.physical.deferred.variables == {"l"}
    assert [row["p.name"] for row in rows] == ["p0"]


def test_an_order_is_chosen_again_when_keys_no_longer_determine_nodes() -> None:
    plan = plan_of(lands()[0], _FOLLOWED)
    planner = Planner()
    for is_unsettled in (False, True, False):
        graph, view = lands(is_unsettled=is_unsettled)
        rows = planned_rows(plan, reading_of(view, plan), planner)
        assert rows == model_rows(graph, plan)


def test_a_read_that_needs_too_much_memory_is_refused_before_it_takes_it() -> None:
    graph, view = crowd()
    text = f"query q() {{ {path(5)} return {{ $v0.name, $v5.name }} }}"
    plan = plan_of(graph, text)
    reading = replace(reading_of(view, plan), budget=Budget(memory_bytes=100_000))
    with pytest.raises(ResourceLimitError, match="query_memory_bytes"):
        Planner().run(plan, reading)
    counting = plan_of(graph, f"query q() {{ {path(5)} return {{ $v0.name, count($v5) as n }} }}")
    reading = replace(reading_of(view, counting), budget=Budget(memory_bytes=100_000))
    rows = Planner().run(counting, reading).to_pylist()
    assert {row["n"] for row in rows} == {PEOPLE**5}


def test_the_positions_of_repeated_rows_are_memory_too() -> None:
    graph, view = crowd()
    plan = plan_of(graph, "query q() { match { $a: Person  $b: Person } return { $a.name } }")
    reading = replace(reading_of(view, plan), budget=Budget(memory_bytes=8 * PEOPLE**2))
    with pytest.raises(ResourceLimitError, match="query_memory_bytes") as refused:
        Planner().compute_rows(Planner().get_plan(plan, view.catalog), reading)
    assert refused.value.actual == 12 * PEOPLE**2


def test_a_read_whose_time_is_over_is_stopped() -> None:
    graph, view = crowd()
    plan = plan_of(graph, f"query q() {{ {path(5)} return {{ count($v0) as n }} }}")
    reading = replace(reading_of(view, plan), budget=Budget(deadline=time.monotonic() - 1))
    with pytest.raises(QueryTimeoutError):
        Planner().run(plan, reading)


def test_blocks_of_one_variable_are_weighed_or_matched() -> None:
    graph, view = world(5)
    for block in (
        "not { $a knows $b $b.age > 2 }",
        "count { $a knows $b $b lives $c } >= 2",
        "count { $a knows{1,2} $b } >= 2",
        "sum($b.age) { $a knows $b } > 3",
        "exists { $a knows $b not { $b lives $c } }",
    ):
        text = f"query q() {{ match {{ $a: Person {block} }} return {{ $a.name }} }}"
        known, _ = planned(graph, view, text)
        assert enumerated(known) == [{"a"}]


def test_blocks_whose_variables_share_a_name_are_apart() -> None:
    graph, view = world(5)
    text = (
        "query q() { match { $a: Person exists { $a knows $x $x.age > 1 }"
        " exists { $a lives $x $x.size > 1 } } return { $a.name } }"
    )
    planned(graph, view, text)


# ---- amounts ----


def test_a_product_that_might_wrap_is_looked_at_in_floats_first() -> None:
    left = CheckedInts(np.array([2**40, 1]), 2**40)
    right = CheckedInts(np.array([1, 2**40]), 2**40)
    found = multiply_checked(left, right)
    assert found.values.tolist() == [2**40, 2**40]
    assert found.bound < 2**41
    with pytest.raises(IntOverflowError):
        multiply_checked(left, left)


def test_a_sum_that_might_wrap_is_looked_at_in_floats_first() -> None:
    amount = CheckedInts(np.array([2**61, -(2**61), 2**61]), 2**61)
    with pytest.raises(IntOverflowError):
        add_at(amount, np.zeros(3, np.int64), 1, 3)
    apart = add_at(amount, np.array([0, 1, 2]), 3, 3)
    assert apart.values.tolist() == [2**61, -(2**61), 2**61]


def test_counts_that_are_too_large_are_told_from_sums_that_are() -> None:
    large = Weights(CheckedInts(np.array([CHECKED_MAX - 1]), CHECKED_MAX - 1))
    with pytest.raises(CountOverflowError):
        large.multiply(large)
