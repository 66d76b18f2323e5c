"""Snapshots as graphs of rustworkx and igraph, and as arrays for PyTorch Geometric."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import ExecutionError, LibraryMissingError
from omnigraph.networks.igraph_graph import to_igraph
from omnigraph.networks.pyg_graph import build_arrays, to_pyg
from omnigraph.networks.rustworkx_graph import to_rustworkx
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.model_views import add_edges, add_nodes, model_graph, view_of

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  vec: Vector(2)?  on: Bool }
node Town { name: String @key }
edge Knows: Person -> Person { weight: F64? }
edge Lives: Person -> Town
"""
KNOWS, LIVES = TypeKey(TypeKind.EDGE, "Knows"), TypeKey(TypeKind.EDGE, "Lives")
TYPES = [KNOWS, LIVES, TypeKey(TypeKind.NODE, "Person"), TypeKey(TypeKind.NODE, "Town")]
GRAPH = model_graph(SCHEMA)
add_nodes(
    GRAPH,
    "Person",
    [
        {"name": "ada", "age": 3, "born": 1, "vec": [1.0, 2.0], "on": True},
        {"name": "bob", "on": False},
    ],
)
add_nodes(GRAPH, "Town", [{"name": "ada"}])
add_edges(
    GRAPH,
    "Knows",
    [
        {"@id": "k1", "@src": "bob", "@dst": "ada", "weight": 0.5},
        {"@id": "k2", "@src": "bob", "@dst": "ada"},
    ],
)
add_edges(GRAPH, "Lives", [{"@id": "k1", "@src": "bob", "@dst": "ada"}])
VIEW = view_of(GRAPH)


def test_rustworkx_has_entities_as_dictionaries() -> None:
    graph = to_rustworkx(VIEW, TYPES)
    assert [(node["@type"], node["@id"]) for node in graph.nodes()] == [
        ("Person", "ada"),
        ("Person", "bob"),
        ("Town", "ada"),
    ]
    assert "vec" not in graph[0]
    assert to_rustworkx(VIEW, TYPES, has_vectors=True)[0]["vec"] == [1.0, 2.0]
    assert [(a, b, edge["@type"], edge["@id"]) for a, b, edge in graph.weighted_edge_list()] == [
        (1, 0, "Knows", "k1"),
        (1, 0, "Knows", "k2"),
        (1, 2, "Lives", "k1"),
    ]
    assert graph.get_edge_data_by_index(0)["weight"] == 0.5


def test_igraph_has_properties_as_attributes() -> None:
    graph = to_igraph(VIEW, TYPES)
    assert graph.is_directed()
    assert graph.get_edgelist() == [(1, 0), (1, 0), (1, 2)]
    assert graph.vs["@type"] == ["Person", "Person", "Town"]
    assert graph.vs["age"] == [3, None, None]
    assert graph.es["@id"] == ["k1", "k2", "k1"]
    assert graph.es["weight"] == [0.5, None, None]
    assert to_igraph(view_of(model_graph(SCHEMA)), TYPES).vcount() == 0


def test_ends_of_other_types_are_there_with_their_ids() -> None:
    graph = to_rustworkx(VIEW, [LIVES])
    assert graph.nodes() == [{"@id": "bob", "@type": "Person"}, {"@id": "ada", "@type": "Town"}]
    assert graph.edge_list() == [(0, 1)]


def test_arrays_have_numbers_vectors_and_ends() -> None:
    person, town, knows, lives = build_arrays(VIEW, TYPES)
    assert (person.key, person.ids, town.ids) == ("Person", ["ada", "bob"], ["ada"])
    assert sorted(person.arrays) == ["age", "on", "vec"]
    np.testing.assert_array_equal(person.arrays["age"], [3, np.nan])
    np.testing.assert_array_equal(person.arrays["vec"], [[1, 2], [np.nan, np.nan]])
    assert person.arrays["on"].tolist() == [True, False]
    assert knows.key == ("Person", "Knows", "Person")
    assert knows.arrays["edge_index"].tolist() == [[1, 1], [0, 0]]
    assert lives.arrays["edge_index"].tolist() == [[1], [0]]
    assert all(each.flags.writeable for each in person.arrays.values())


@pytest.mark.parametrize(("kind", "values"), [("U64", [2**63]), ("I64", [2**53 + 1, None])])
def test_integers_that_no_tensor_holds_are_named(kind: str, values: list[int | None]) -> None:
    graph = model_graph(f"node Count {{ name: String @key  n: {kind}? }}")
    add_nodes(graph, "Count", [{"name": str(i), "n": n} for i, n in enumerate(values)])
    with pytest.raises(ExecutionError, match=r"Count\.n: no tensor holds its values"):
        build_arrays(view_of(graph), [TypeKey(TypeKind.NODE, "Count")])


def test_a_date_that_python_cannot_hold_is_named() -> None:
    graph = model_graph(SCHEMA)
    add_nodes(graph, "Person", [{"name": "old", "born": -10_000_000, "on": True}])
    for convert in (to_rustworkx, to_igraph):
        with pytest.raises(ExecutionError, match="Person: a Date is outside the years"):
            convert(view_of(graph), TYPES)


@pytest.mark.parametrize(
    ("convert", "module", "command"),
    [
        (to_rustworkx, "rustworkx", "pip install rustworkx"),
        (to_igraph, "igraph", "pip install igraph"),
        (to_pyg, "torch", "pip install torch torch_geometric"),
    ],
)
def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, convert: Callable[..., Any], module: str, command: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LibraryMissingError) as missing:
        convert(VIEW, TYPES)
    assert missing.value.hint == command
