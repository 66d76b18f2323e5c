"""Components that no traversal connects: joined by equal values, never by trying all pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import pytest

from model import ModelGraph
from model.reading import Reader
from omnigraph.execution.batch import Batch
from omnigraph.execution.operators import scan_operator
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.operators.scan_operator import HashJoinOperator, LookupOperator
from omnigraph.execution.query_budget import Budget
from unit.execution.items import items_graph
from unit.execution.model_views import model_graph, plan_of
from unit.execution.operators.full_source import FullSource
from unit.execution.operators.model_source import (
    in_order,
    model_rows,
    pattern_of,
    reading_of,
    shown,
)

GRAPH = items_graph(11)
NUMBERS = ["i32", "i64", "u32", "u64", "f32", "f64", "odd"]
TEXTS = ["name", "text", "kind"]
SAME = [("day", "day"), ("at", "at"), ("flag", "flag")]
EQUAL = [
    *combinations_with_replacement(NUMBERS, 2),
    *combinations_with_replacement(TEXTS, 2),
    *SAME,
]


def _agrees(clauses: str, graph: ModelGraph = GRAPH) -> int:
    """Compare the rows of a pattern with those of the model; how many there are."""
    root = plan_of(graph, f"query q() {{ match {{ {clauses} }} return {{ $a.name }} }}").root
    pattern = pattern_of(root)
    reading = reading_of(graph, root)
    expected = in_order(model_rows(iter(Reader(graph, {}, None, 10**9).rows(pattern, {})), None))
    assert in_order(shown(reading, run_pattern(pattern, reading))) == expected
    return len(expected)


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_values_of_all_types_are_joined_exactly(left: str, right: str) -> None:
    found = _agrees(f"$a: Item  $b: Item  $a.{left} = $b.{right}")
    assert found > 0 or left != right


def test_several_equalities_hold_together() -> None:
    assert _agrees("$a: Item  $b: Item  $a.kind = $b.kind  $b.flag = $a.flag  $a.i64 = $b.f64") > 0
    assert _agrees("$a: Item  $b: Item  $a.text = $b.name  $a.kind = $b.kind") > 0


@pytest.mark.parametrize("rows_max", [0, 64])
def test_few_rows_are_joined_with_their_own_values_alone(
    rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_operator, "_NARROWED_ROWS_MAX", rows_max)
    for name in ("text", "i64", "f32", "odd", "u64", "day", "at", "kind", "flag"):
        assert _agrees(f'$a: Item  $a.name < "b"  $b: Item  $b.{name} = $a.{name}') > 0


def test_a_component_of_its_own_is_matched_before_it_is_joined() -> None:
    clauses = "$a: Item  $b: Item  $b link $c  $c.i32 is not null  $a.kind = $c.kind"
    assert _agrees(clauses) > 0
    assert _agrees(f"{clauses}  exists {{ $c link $d }}  $a.name != $b.name") > 0


def test_a_block_is_joined_with_the_rows_around_it() -> None:
    assert _agrees("$a: Item  not { $b: Item  $b.kind = $a.kind  $b.f64 > $a.f64 }") > 0
    assert _agrees("$a: Item  count { $b: Item  $a.text = $b.text } > 2") > 0


def test_an_id_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    looked_up = LookupOperator.run

    def noted(step: LookupOperator, batch: Batch) -> Batch:
        rows = looked_up(step, batch)
        found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(LookupOperator, "run", noted)
    assert _agrees("$a: Item  $b: Item  $b.@id = $a.text") == sum(found) > 0
    assert _agrees('$a: Item  $b: Item { kind: "big" }  $a.text = $b.@id') > 0


def test_a_join_makes_no_pairs_that_it_drops() -> None:
    graph = model_graph("node Person { name: String @key  age: I64 }")
    text = "query q() { match { $a: Person  $b: Person  $a.age = $b.age } return { $a.name } }"
    root = plan_of(graph, text).root
    # Ten thousand times ten thousand rows would not fit.
    reading = reading_of(graph, root, budget=Budget(memory_bytes=4 * 2**20))
    reading = replace(reading, source=FullSource(10_000))
    assert run_pattern(pattern_of(root), reading).num_rows == 10_000


def test_without_rows_the_other_component_is_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(
        HashJoinOperator, "_make_build_side", lambda _, conditions: made.append(conditions)
    )
    clauses = '$a: Item  $a.@id = "nobody"  $b: Item  $b $e:link $c'
    root = plan_of(GRAPH, f"query q() {{ match {{ {clauses} }} return {{ $a.name }} }}").root
    reading = reading_of(GRAPH, root)
    batch = run_pattern(pattern_of(root), reading)
    assert (batch.num_rows, made) == (0, [])
    assert set(batch.nodes) == {"a", "b", "c"}
    assert batch.edges["e"].types == ("Link",)
