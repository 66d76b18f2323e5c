"""Rows of numbers as expressions see them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from model import ModelGraph
from model.expressions import At
from omnigraph.execution import execution_context as readings
from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.query.logical_plan import Filter, Operator
from omnigraph.query.tree_walk import chain_of
from omnigraph.query.typed_tree import Expr, SystemName
from unit.execution.model_views import add_edges, add_nodes, model_graph, plan_of
from unit.execution.operators.model_source import numbers, reading_of

SCHEMA = """
node Person { name: String @key  nick: String?  age: I64? }
edge Knows: Person -> Person { since: I64?  note: String? }
edge Likes: Person -> Person { since: I64? }
"""


@pytest.fixture
def graph() -> ModelGraph:
    graph = model_graph(SCHEMA)
    people = [("ann", "a", 1), ("bob", None, 2), ("cyd", "bob", None), ("dov", "a", 2)]
    add_nodes(
        graph, "Person", [{"name": name, "nick": nick, "age": age} for name, nick, age in people]
    )
    add_edges(
        graph,
        "Knows",
        [
            {"@src": "ann", "@dst": "bob", "since": 7, "note": "n"},
            {"@src": "cyd", "@dst": "ann", "since": None, "note": None},
        ],
    )
    add_edges(graph, "Likes", [{"@src": "bob", "@dst": "dov", "since": 9}])
    return graph


def test_a_reading_knows_the_types_of_all_variables_of_a_plan(graph: ModelGraph) -> None:
    reading, _ = _reading(
        graph, "$a: Person  $a $e:(knows | likes) $b  not { $b $f:knows $c  $c likes $_ }"
    )
    assert reading.nodes_of.keys() >= {"a", "b", "c"}
    assert set(reading.nodes_of.values()) == {"Person"}
    assert reading.edges_of == {"e": ("Knows", "Likes"), "f": ("Knows",)}


def test_values_of_nodes_are_fetched_by_number(graph: ModelGraph) -> None:
    reading, _ = _reading(graph, "$a: Person")
    rows = reading.rows_of(Batch(3, {"a": numbers([2, 0, 2])}))
    assert rows.num_rows == 3
    assert rows.get_property("a", "age").to_pylist() == [None, 1, None]
    assert rows.get_system_field("a", SystemName.ID).to_pylist() == ["cyd", "ann", "cyd"]


def test_values_of_a_bound_selection_are_united_over_its_members(graph: ModelGraph) -> None:
    reading, _ = _reading(graph, "$a: Person  $a $e:(knows | likes) $b")
    bound = BoundEdges(("Knows", "Likes"), np.array([1, 0, 0, 1], np.int16), numbers([0, 1, 0, 0]))
    rows = reading.rows_of(Batch(4, edges={"e": bound}))
    assert rows.get_property("e", "since").to_pylist() == [9, None, 7, 9]
    assert rows.get_system_field("e", SystemName.TYPE).to_pylist() == [
        "Likes",
        "Knows",
        "Knows",
        "Likes",
    ]
    assert rows.get_system_field("e", SystemName.SRC).to_pylist() == ["bob", "cyd", "ann", "bob"]
    assert rows.get_system_field("e", SystemName.DST).to_pylist() == ["dov", "ann", "bob", "dov"]
    assert rows.get_system_field("e", SystemName.ID).to_pylist()[1:3] == _ids(graph, "Knows")[::-1]


def test_a_selection_that_fits_nothing_has_no_values(graph: ModelGraph) -> None:
    reading, _ = _reading(graph, "$a: Person")
    rows = reading.rows_of(
        Batch(0, edges={"e": BoundEdges((), np.zeros(0, np.int16), numbers([]))})
    )
    assert rows.get_system_field("e", SystemName.TYPE).to_pylist() == []
    assert rows.get_property("e", "since").to_pylist() == []


CONDITIONS = [
    "$a.nick = $b.nick",
    "$a.nick != $b.nick",
    "$a.nick < $b.name",
    "$a.nick >= $b.name",
    "$a.@id = $b.@id",
    "$a.@id != $b.@id",
    "$a.@id <= $b.@id",
    "$a.name = $b.name",
    "$a.name > $b.name",
    "$a.nick = $b.@id",
    "$a.age = $b.age",
    "not ($a.age < $b.age)",
    "$a.age = 2 or $b.nick is null",
    '$a.nick = "a"',
    '$a.nick != "a"',
    "$b.age is null",
]


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_mask_holds_the_rows_whose_condition_is_true(
    graph: ModelGraph, condition: str, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(readings, "_DISTINCT_MIN", 1)
    reading, root = _reading(graph, f"$a: Person  $b: Person  {condition}")
    (tested,) = _conditions(root)
    people = list(graph.nodes["Person"].values())
    expected = [
        (first, second)
        for first, second in product(range(4), repeat=2)
        if At({"a": people[first], "b": people[second]}, {})(tested) is True
    ]
    assert 0 < len(expected) < 16
    pairs = list(product(range(4), repeat=2))
    columns = [numbers([pair[side] for pair in pairs]) for side in (0, 1)]
    mask = reading.evaluate_mask(Batch(16, {"a": columns[0], "b": columns[1]}), [tested])
    assert [pairs[row] for row in np.flatnonzero(mask)] == expected


def test_all_conditions_must_hold_and_constants_are_conditions_too(graph: ModelGraph) -> None:
    reading, root = _reading(graph, '$a: Person  $a.age = 2  $a.nick = "a"  $none > 1')
    batch = Batch(4, {"a": numbers([0, 1, 2, 3])})
    unknown, by_age, by_nick = _conditions(root)
    assert reading.evaluate_mask(batch, []).tolist() == [True] * 4
    assert reading.evaluate_mask(batch, [by_age, by_nick]).tolist() == [False, False, False, True]
    assert reading.evaluate_mask(batch, [by_age, unknown]).tolist() == [False] * 4


def test_no_rows_need_no_evaluation(graph: ModelGraph) -> None:
    reading, root = _reading(graph, "$a: Person  $b: Person  $a.nick = $b.nick")
    batch = Batch(0, {"a": numbers([]), "b": numbers([])})
    assert reading.evaluate_mask(batch, _conditions(root)).tolist() == []


def _reading(graph: ModelGraph, clauses: str) -> tuple[ExecutionContext, Operator]:
    text = f"query q($none: I64?) {{ match {{ {clauses} }} return {{ $a.name }} }}"
    root = plan_of(graph, text, is_rewritten=False).root
    return reading_of(graph, root, {"none": None}), root


def _conditions(root: Operator) -> list[Expr]:
    return [each.condition for each in chain_of(root) if isinstance(each, Filter)]


def _ids(graph: ModelGraph, type_name: str) -> list[str]:
    return list(graph.edges[type_name])
