"""Snapshots as graphs of networkx."""

from __future__ import annotations

import sys
from datetime import date

import networkx  # type: ignore[import-untyped]
import pytest

from omnigraph.errors import ExecutionError, LibraryMissingError
from omnigraph.networks.networkx_graph import to_networkx
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.model_views import add_edges, add_nodes, model_graph, view_of

SCHEMA = """
node Person { name: String @key  born: Date?  photo: Blob? }
node Town { name: String @key }
edge Knows: Person -> Person { weight: F64? }
edge Lives: Person -> Town
"""
TYPES = [
    TypeKey(TypeKind.EDGE, "Knows"),
    TypeKey(TypeKind.EDGE, "Lives"),
    TypeKey(TypeKind.NODE, "Person"),
    TypeKey(TypeKind.NODE, "Town"),
]
GRAPH = model_graph(SCHEMA)
add_nodes(GRAPH, "Person", [{"name": "ada", "born": 1}, {"name": "bob"}])
add_nodes(GRAPH, "Town", [{"name": "ada"}])
add_edges(
    GRAPH,
    "Knows",
    [
        {"@id": "k1", "@src": "ada", "@dst": "bob", "weight": 0.5},
        {"@id": "k2", "@src": "ada", "@dst": "bob"},
    ],
)
add_edges(GRAPH, "Lives", [{"@id": "k1", "@src": "bob", "@dst": "ada"}])


def test_everything_becomes_a_multigraph_with_attributes() -> None:
    graph = to_networkx(view_of(GRAPH), TYPES)
    assert isinstance(graph, networkx.MultiDiGraph)
    assert dict(graph.nodes(data=True)) == {
        ("Person", "ada"): {
            "@id": "ada", "@type": "Person", "name": "ada", "born": date(1970, 1, 2),
        },
        ("Person", "bob"): {"@id": "bob", "@type": "Person", "name": "bob", "born": None},
        ("Town", "ada"): {"@id": "ada", "@type": "Town", "name": "ada"},
    }  # fmt: skip
    ada, bob, town = ("Person", "ada"), ("Person", "bob"), ("Town", "ada")
    assert sorted(graph.edges(keys=True, data=True), key=str) == [
        (ada, bob, ("Knows", "k1"), {"@id": "k1", "@type": "Knows", "weight": 0.5}),
        (ada, bob, ("Knows", "k2"), {"@id": "k2", "@type": "Knows", "weight": None}),
        (bob, town, ("Lives", "k1"), {"@id": "k1", "@type": "Lives"}),
    ]


def test_some_types_bring_the_ends_of_their_edges_with_them() -> None:
    graph = to_networkx(view_of(GRAPH), [TYPES[1]])
    assert dict(graph.nodes(data=True)) == {("Person", "bob"): {}, ("Town", "ada"): {}}
    assert graph.number_of_edges() == 1


def test_an_empty_graph_is_empty() -> None:
    assert len(to_networkx(view_of(model_graph(SCHEMA)), TYPES)) == 0


def test_a_date_that_python_cannot_hold_is_named() -> None:
    graph = model_graph(SCHEMA)
    add_nodes(graph, "Person", [{"name": "old", "born": -10_000_000}])
    with pytest.raises(ExecutionError, match="Person: a Date is outside the years"):
        to_networkx(view_of(graph), TYPES)


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(LibraryMissingError) as missing:
        to_networkx(view_of(GRAPH), TYPES)
    assert missing.value.library == "networkx"
    assert missing.value.hint == "pip install networkx"


def test_vectors_are_copied_only_on_request() -> None:
    world = model_graph("node Doc { name: String @key  vec: Vector(2)? }")
    add_nodes(world, "Doc", [{"name": "a", "vec": [1.0, 2.0]}])
    types = [TypeKey(TypeKind.NODE, "Doc")]
    plain = to_networkx(view_of(world), types)
    assert plain.nodes["Doc", "a"] == {"@id": "a", "@type": "Doc", "name": "a"}
    whole = to_networkx(view_of(world), types, has_vectors=True)
    assert whole.nodes["Doc", "a"]["vec"] == [1.0, 2.0]
