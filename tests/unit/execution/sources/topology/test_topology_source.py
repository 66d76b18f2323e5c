"""A topology gives what a plain reading of the same entities gives."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import At, Entity
from omnigraph.execution.query_budget import Access
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query import typed_tree
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import NOW_NAME, Expr, Value
from omnigraph.rows.view import View
from unit.execution.items import PARAMETERS, Conditions, items_graph
from unit.execution.model_views import NOW, add_edges, add_nodes, model_graph, view_of

GRAPH = items_graph(seed=5)
WALKS = """
node Person { name: String @key }
node Place { name: String @key }
edge Knows: Person -> Person
edge Visits: Person -> Place { at: I64? }
"""


def topology(view: View) -> TopologySource:
    found = SourceCache().get_source(view, Access.TOPOLOGY)
    assert isinstance(found, TopologySource)
    return found


@pytest.fixture(scope="module")
def source() -> TopologySource:
    return topology(view_of(GRAPH))


@given(st.integers(0, 2**32))
def test_the_nodes_of_conditions_are_those_that_the_model_finds(
    source: TopologySource, seed: int
) -> None:
    conditions = Conditions(Random(seed), prefix="")
    text = conditions.condition()
    condition, params = _where(text, conditions.params())
    found = source.get_nodes("Item").filter_nodes([condition], params)
    assert np.all(np.diff(found) > 0)
    ids = source.get_nodes("Item").fetch_ids(found).to_pylist()
    assert sorted(ids) == _selected(list(GRAPH.nodes["Item"].values()), condition, params), text


def test_nodes_are_found_by_id_whether_few_or_many_are_asked_for(source: TopologySource) -> None:
    nodes = source.get_nodes("Item")
    ids = nodes.fetch_ids(nodes.list_all()).to_pylist()
    assert sorted(ids) == sorted(GRAPH.nodes["Item"])
    assert nodes.count == nodes.size == len(ids)
    for asked in (ids[:3], [*ids, "nobody", *ids], ["nobody"], []):
        expected = [ids.index(each) if each in ids else -1 for each in asked]
        assert nodes.find(pa.array(asked, pa.utf8())).tolist() == expected


def test_ranks_compare_as_the_bytes_of_ids_do(source: TopologySource) -> None:
    nodes = source.get_nodes("Item")
    ids = nodes.fetch_ids(nodes.list_all()).to_pylist()
    ordered = np.argsort(nodes.rank_ids(nodes.list_all()))
    by_bytes = sorted(ids, key=str.encode)
    assert [ids[place] for place in ordered] == by_bytes


def test_values_have_the_types_of_the_table_and_are_those_of_the_entity(
    source: TopologySource,
) -> None:
    nodes = source.get_nodes("Item")
    at = np.array([7, 3, 3, 0], np.int32)
    ids = nodes.fetch_ids(at).to_pylist()
    for name, column in nodes.shape.columns.items():
        if name == "file":
            continue
        values = nodes.fetch_values(name, at)
        assert values.type == nodes.shape.schema.field(column).type
        shown = nodes.get_column(name).take_all()
        assert shown.take(pa.array(at)).equals(values)
        expected = [GRAPH.nodes["Item"][each][name] for each in ids]
        assert [_plain(each) for each in values] == [_listed(each) for each in expected], name


def test_nodes_are_known_by_their_rows(source: TopologySource) -> None:
    nodes = source.get_nodes("Item")
    at = np.array([5, 0, 2], np.int32)
    assert nodes.find_by_row_ids(nodes.fetch_row_ids(at)).tolist() == at.tolist()
    assert nodes.find_by_row_ids(np.array([2**40], np.uint64)).tolist() == [-1]


ends = st.tuples(st.integers(0, 7), st.integers(0, 7))


@pytest.mark.slow
@given(st.lists(ends, max_size=40), st.lists(ends, max_size=20), st.data())
def test_neighbours_and_edges_are_those_of_plain_lists(
    knows: list[tuple[int, int]], visits: list[tuple[int, int]], data: st.DataObject
) -> None:
    graph = model_graph(WALKS)
    add_nodes(graph, "Person", [{"name": f"p{number}"} for number in range(8)])
    add_nodes(graph, "Place", [{"name": f"c{number}"} for number in range(8)])
    add_edges(graph, "Knows", [_edge(f"k{n}", "p", "p", *at) for n, at in enumerate(knows)])
    add_edges(
        graph,
        "Visits",
        [_edge(f"v{n}", "p", "c", *at) | {"at": n} for n, at in enumerate(visits)],
    )
    source = topology(view_of(graph))
    for name in ("Knows", "Visits"):
        for is_reversed in (False, True):
            asked = data.draw(st.lists(st.integers(0, 7), max_size=12))
            check_walks(source, name, asked, is_reversed=is_reversed)


def check_walks(
    source: TopologySource, name: str, asked: Sequence[int], *, is_reversed: bool
) -> None:
    """Compare what a type's edges say with a plain list of them."""
    edges = source.get_edges(name)
    starts, stops = edges.source_nodes, edges.target_nodes
    everything = [
        (int(s), int(t), int(e))
        for s, t, e in zip(
            edges.fetch_sources(edges.list_all()),
            edges.fetch_targets(edges.list_all()),
            edges.list_all(),
            strict=True,
        )
    ]
    assert len(everything) == edges.count
    if is_reversed:
        starts, stops = stops, starts
        everything = [(t, s, e) for s, t, e in everything]
    nodes = starts.list_all().take(np.array(asked, np.int64))
    expected = [
        (place, end, edge)
        for place, node in enumerate(nodes.tolist())
        for start, end, edge in sorted(everything)
        if start == node
    ]
    matched = edges.expand_edges(nodes, is_reversed=is_reversed)
    assert list(zip(*map(_list, matched), strict=True)) == expected
    reached = edges.expand_neighbours(nodes, is_reversed=is_reversed)
    assert list(zip(*map(_list, reached), strict=True)) == sorted({each[:2] for each in expected})
    assert {each.start_indices.dtype for each in (matched, reached)} == {np.dtype(np.int64)}
    assert {each.dtype for each in (matched.ends, matched.edges, reached.ends)} == {
        np.dtype(np.int32)
    }
    neighbours = edges.get_adjacency(is_reversed)
    assert len(neighbours.degrees) == starts.size
    assert int(neighbours.degrees.sum()) == len({each[:2] for each in everything})
    assert neighbours.is_functional == bool(np.all(neighbours.degrees == 1) and starts.size)


def _edge(name: str, from_: str, to: str, source: int, target: int) -> dict[str, Any]:
    return {"@id": name, "@src": f"{from_}{source}", "@dst": f"{to}{target}"}


def _list(numbers: DenseIds | Any) -> list[int]:
    return [int(each) for each in numbers]


def _where(text: str, params: dict[str, Any]) -> tuple[Expr, dict[str, Value]]:
    mutation = f"query m({PARAMETERS}) {{ delete Item where {text} }}"
    checked = compile_query(mutation, GRAPH.catalog).checked
    assert isinstance(checked, typed_tree.Mutation)
    statement = checked.statements[0]
    assert isinstance(statement, typed_tree.DeleteNodes)
    (condition,) = statement.conditions
    return condition, {**bind_parameters(checked.parameters, params), NOW_NAME: NOW}


def _selected(entities: list[Entity], condition: Expr, params: dict[str, Value]) -> list[str]:
    return sorted(
        entity["@id"]
        for entity in entities
        if At({typed_tree.ROW: entity}, params)(condition) is True
    )


def _plain(value: pa.Scalar) -> Any:
    kind = value.type
    if pa.types.is_date32(kind):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_date64(kind):
        return value.cast(pa.int64()).as_py()
    if pa.types.is_list(kind) and value.is_valid and pa.types.is_date64(kind.value_type):
        return value.values.cast(pa.int64()).to_pylist()
    return _listed(value.as_py())


def _listed(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "nan"
    return list(value) if isinstance(value, tuple) else value
