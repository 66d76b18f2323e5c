"""The pattern of a plan as variables, traversals and tests."""

from __future__ import annotations

import pytest

from omnigraph.execution.optimizer.pattern_graph import PatternGraph, build_pattern_graph
from omnigraph.execution.optimizer.plan_split import split_plan
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.typed_tree import ParameterValue
from omnigraph.schema import load_catalog
from unit.execution.optimizer.random_reads import SCHEMA

CATALOG = load_catalog(SCHEMA)


def graph_of(clauses: str, *, parameters: str = "") -> PatternGraph:
    """The graph of a pattern of which nothing is returned but a count."""
    text = f"query q({parameters}) {{ match {{ {clauses} }} return {{ count($a) as n }} }}"
    plan = compile_query(text, CATALOG).plan
    assert isinstance(plan, ReadPlan)
    return build_pattern_graph(split_plan(plan.root).pattern, CATALOG)


def test_a_pattern_is_its_variables_and_the_traversals_between_them() -> None:
    graph = graph_of("$a: Person $a knows $b $b lives $c")
    assert {name: each.type_name for name, each in graph.variables.items()} == {
        "a": "Person",
        "b": "Person",
        "c": "Place",
    }
    assert [(link.source, link.target) for link in graph.links] == [("a", "b"), ("b", "c")]
    assert all(link.is_plain for link in graph.links)


def test_a_traversal_can_be_walked_from_both_of_its_ends() -> None:
    graph = graph_of("$a: Person $a lives $c")
    (there,), (back,) = graph.links_of["a"], graph.links_of["c"]
    assert (there.source, there.step.is_reversed) == ("a", False)
    assert (back.source, back.target, back.step.is_reversed) == ("c", "a", True)
    assert back.expand.source_type == "Place"


def test_what_is_about_one_variable_is_a_condition_of_it() -> None:
    graph = graph_of("$a: Person $a knows $b $b.age > 3 not { $b lives $p } $a.age = $b.age")
    assert len(graph.variables["b"].conditions) == 1
    assert len(graph.variables["b"].blocks) == 1
    assert len(graph.tests) == 1
    assert graph.entangled == {"a", "b"}


@pytest.mark.parametrize(
    "traversal", ["$a knows{1,2} $b", "$a <knows> $b", "$a $e:knows $b", "$a knows $a"]
)
def test_ends_of_traversals_that_are_no_sets_of_pairs_are_entangled(traversal: str) -> None:
    graph = graph_of(f"$a: Person $b: Person {traversal}")
    assert "a" in graph.entangled


def test_a_condition_on_the_id_or_on_a_key_of_one_text_gives_the_id() -> None:
    by_key = graph_of("$a: Person { name: $x } $a.age > 1", parameters="$x: String")
    (variable,) = by_key.variables.values()
    assert isinstance(variable.required_id, ParameterValue)
    assert len(variable.other_conditions) == 1
    by_id = graph_of('$a: Place "q1" = $a.@id')
    assert by_id.variables["a"].required_id is not None
    assert graph_of('$a: Place $a.title = "q1"').variables["a"].required_id is None


def test_leaves_that_are_not_needed_are_stripped() -> None:
    graph = graph_of("$a: Person $a knows $b $b knows $c $c lives $d")
    assert graph.find_core({"a"}) == {"a"}
    assert graph.find_core({"a", "c"}) == {"a", "b", "c"}
    assert graph.find_core(()) == frozenset()


def test_a_cycle_is_never_stripped() -> None:
    graph = graph_of("$a: Person $a knows $b $b knows $c $c knows $a $c lives $d")
    assert graph.find_core({"a"}) == {"a", "b", "c"}


def test_variables_that_no_traversal_connects_are_different_components() -> None:
    graph = graph_of("$a: Person $b: Place $a knows $c")
    assert graph.find_components(graph.variables) == [{"a", "c"}, {"b"}]


def test_a_selection_anywhere_keeps_the_order_as_it_is_written() -> None:
    assert graph_of("$a: Person $a (lives | visits) $b").is_selecting
    assert graph_of("$a: Person exists { $a (lives | visits) $b }").is_selecting
    assert not graph_of("$a: Person exists { $a lives $b }").is_selecting
