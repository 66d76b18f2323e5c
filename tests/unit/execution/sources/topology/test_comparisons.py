"""A comparison of a property with a constant is true exactly where the model says so."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import At
from omnigraph.execution.query_budget import Access
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.topology.topology_filter import FEW_TEXTS, compare_property
from omnigraph.execution.sources.topology.topology_nodes import DenseNodes
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query import typed_tree
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import NOW_NAME, Expr, Value
from unit.execution.items import PARAMETERS, Conditions, items_graph
from unit.execution.model_views import NOW, add_nodes, model_graph, view_of

GRAPH = items_graph(seed=8)
NUMBERS = ("i", "u", "f", "g", "none")
TEXTS = ("s", "nos")
# Which parameters each property is compared with.
GIVEN = {
    **dict.fromkeys(Conditions.NUMBERS, NUMBERS),
    **dict.fromkeys(Conditions.STRINGS, TEXTS),
    "day": ("d",),
    "at": ("t",),
}
ALL_OPS = ("=", "!=", "<", "<=", ">", ">=")
PAIRS = [(name, given_) for name, several in GIVEN.items() for given_ in several]


@pytest.fixture(scope="module")
def nodes() -> DenseNodes:
    source = SourceCache().get_source(view_of(GRAPH), Access.TOPOLOGY)
    assert isinstance(source, TopologySource)
    return source.get_nodes("Item")


@given(st.sampled_from(PAIRS), st.sampled_from(ALL_OPS), st.booleans(), st.integers(0, 2**32))
def test_numbers_and_equal_texts_are_compared_as_the_model_compares_them(
    nodes: DenseNodes, pair: tuple[str, str], op: str, is_mirrored: bool, seed: int
) -> None:
    name, given_ = pair
    text = f"${given_} {op} {name}" if is_mirrored else f"{name} {op} ${given_}"
    condition, params = _where(text, seed)
    everywhere = compare_property(nodes, condition, params, None)
    at = np.array(Random(seed).choices(range(nodes.size), k=9), np.int32)
    somewhere = compare_property(nodes, condition, params, at)
    if name in Conditions.STRINGS and op not in ("=", "!="):
        assert everywhere is None
        assert somewhere is None
        return
    expected = _truth(nodes, condition, params)
    assert everywhere is not None
    assert everywhere.tolist() == expected, text
    assert somewhere is not None
    assert somewhere.tolist() == [expected[number] for number in at], text


@pytest.mark.parametrize("op", ["=", "!="])
def test_flags_are_compared_as_the_model_compares_them(nodes: DenseNodes, op: str) -> None:
    for seed in range(4):
        condition, params = _where(f"flag {op} $b", seed)
        found = compare_property(nodes, condition, params, None)
        assert found is not None
        assert found.tolist() == _truth(nodes, condition, params)


@pytest.mark.parametrize("text", ["i64 = u64", "not i64 = $i", "i64 in $is", "text contains $s"])
def test_nothing_else_is_a_comparison_with_a_constant(nodes: DenseNodes, text: str) -> None:
    assert compare_property(nodes, *_where(text, 1), None) is None


def test_an_index_of_many_texts_is_not_made_for_a_few_rows() -> None:
    graph = model_graph("node Item { name: String @key  text: String }")
    numbers = range(FEW_TEXTS + 1)
    add_nodes(graph, "Item", [{"name": f"n{each}", "text": f"t{each}"} for each in numbers])
    source = SourceCache().get_source(view_of(graph), Access.TOPOLOGY)
    assert isinstance(source, TopologySource)
    nodes = source.get_nodes("Item")
    condition, params = _where("text = $s", 1)
    params["s"] = "t7"
    assert compare_property(nodes, condition, params, nodes.list_all()[:5]) is None
    found = compare_property(nodes, condition, params, None)
    assert found is not None
    assert nodes.fetch_ids(np.flatnonzero(found).astype(np.int32)).to_pylist() == ["n7"]


@given(st.integers(0, 2**32))
def test_a_mask_of_conditions_marks_the_nodes_that_satisfy_them(
    nodes: DenseNodes, seed: int
) -> None:
    conditions = Conditions(Random(seed), prefix="")
    several = [conditions.condition(depth=1) for _ in range(1 + seed % 3)]
    parts = [_where(text, seed)[0] for text in several]
    params = _where(several[0], seed)[1]
    found = np.flatnonzero(nodes.evaluate_mask(parts, params))
    assert found.tolist() == nodes.filter_nodes(parts, params).tolist(), several


def _where(text: str, seed: int) -> tuple[Expr, dict[str, Value]]:
    mutation = f"query m({PARAMETERS}) {{ delete Item where {text} }}"
    checked = compile_query(mutation, GRAPH.catalog).checked
    assert isinstance(checked, typed_tree.Mutation)
    (statement,) = checked.statements
    assert isinstance(statement, typed_tree.DeleteNodes)
    (condition,) = statement.conditions
    params = Conditions(Random(seed)).params()
    return condition, {**bind_parameters(checked.parameters, params), NOW_NAME: NOW}


def _truth(nodes: DenseNodes, condition: Expr, params: dict[str, Value]) -> list[bool]:
    """Whether the model finds a condition true, for each node."""
    entities = GRAPH.nodes["Item"]
    return [
        At({typed_tree.ROW: entities[id_]}, params)(condition) is True
        for id_ in nodes.fetch_ids(nodes.list_all()).to_pylist()
    ]
