"""Graphs whose labels are data, without any framework."""

from __future__ import annotations

import importlib
import itertools
import sys

import pytest

import omnigraph
from omnigraph.adapters import (
    PropertyGraph,
    PropertyNode,
    PropertyRelation,
    build_property_graph_schema,
)
from omnigraph.adapters.facets import encode_facet, list_facets
from omnigraph.adapters.langchain_graphs import OmnigraphGraphStore
from omnigraph.adapters.property_graph import NodeFilter
from omnigraph.errors import LibraryMissingError

_NUMBERS = itertools.count()
FRAMEWORKS = {
    "langchain": "langchain_core",
    "lightrag": "lightrag",
    "llama_index": "llama_index",
}


@pytest.fixture
def graph() -> PropertyGraph:
    address = f"memory://property-graph-{next(_NUMBERS)}"
    schema = build_property_graph_schema(2, node_type="Thing", edge_type="RelatedTo")
    branch = omnigraph.create(address, schema=schema).branch()
    return PropertyGraph(branch, node_type="Thing", edge_type="RelatedTo")


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_an_adapter_without_its_framework_names_the_extra(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, FRAMEWORKS[module], None)
    monkeypatch.delitem(sys.modules, f"omnigraph.adapters.{module}", raising=False)
    with pytest.raises(LibraryMissingError) as refused:
        importlib.import_module(f"omnigraph.adapters.{module}")
    assert f"omnigraph[{module.replace('_', '-')}]" in str(refused.value.hint)


def test_a_batch_is_one_commit_in_which_the_last_of_an_id_counts(graph: PropertyGraph) -> None:
    before = graph.branch.snapshot().commit.version
    graph.write(
        [PropertyNode("a", "x", "A"), PropertyNode("a", "y", "A"), PropertyNode("b", "x", "B")],
        [PropertyRelation("a", "b", "R"), PropertyRelation("a", "c", "R", {"w": 1})],
    )
    assert graph.branch.snapshot().commit.version == before + 1
    nodes = graph.fetch_nodes(NodeFilter())
    assert [(each.id, each.label, each.name) for each in nodes] == [
        ("a", "y", "A"),
        ("b", "x", "B"),
        ("c", "entity", "c"),
    ]
    assert graph.count_labels() == (
        {"entity": 1, "x": 1, "y": 1},
        {("y", "R", "entity"): 1, ("y", "R", "x"): 1},
    )


def test_an_empty_batch_makes_no_commit(graph: PropertyGraph) -> None:
    before = graph.branch.head
    assert graph.write() is None
    assert graph.branch.head == before


def test_an_end_that_exists_stays_as_it_is(graph: PropertyGraph) -> None:
    text = PropertyNode("t", "text", None, "words", {"page": 1}, [1.0, 0.0])
    graph.write([text])
    graph.write(relations=[PropertyRelation("t", "t", "SELF")])
    assert graph.fetch_nodes(NodeFilter(ids=["t"]), has_vectors=True) == [text]


def test_properties_are_compared_whole_and_on_the_first_level(graph: PropertyGraph) -> None:
    long = "x" * 1000
    graph.write(
        [
            PropertyNode("a", properties={"n": 1, "s": long}),
            PropertyNode("b", properties={"n": 12, "deep": {"n": 1}}),
            PropertyNode("c", properties={"n": "1", "s": long + "y"}),
        ]
    )
    found = {
        str(value): [node.id for node in graph.fetch_nodes(NodeFilter(properties=value))]
        for value in ({"n": 1}, {"n": "1"}, {"s": long}, {"n": 1, "s": "x"})
    }
    assert list(found.values()) == [["a"], ["c"], ["a"], []]


def test_facets_are_those_of_values_that_are_not_nested() -> None:
    properties = {"a": 1, "b": [1], "c": None, "d": True, "e": "ä"}
    assert list_facets(properties) == ["a=1", "d=true", 'e="ä"']
    assert len(encode_facet("name", "x" * 1000)) < 50


def test_the_nearest_are_chosen_among_those_of_a_filter(graph: PropertyGraph) -> None:
    graph.write(
        [
            PropertyNode("a", "x", vector=[1.0, 0.0]),
            PropertyNode("b", "y", vector=[0.9, 0.1]),
            PropertyNode("c", "y", vector=[0.0, 1.0]),
        ]
    )
    found = graph.find_nearest([1.0, 0.0], limit=1, wanted=NodeFilter(label="y"))
    assert [(node.id, round(score, 2)) for node, score in found] == [("b", 0.99)]


def test_a_neighbourhood_ends_at_its_depth_and_its_limit(graph: PropertyGraph) -> None:
    graph.write(relations=[PropertyRelation(str(at), str(at + 1), "NEXT") for at in range(9)])
    near = graph.fetch_neighbourhood(["4"], depth=2, limit=100)
    assert sorted(each.source for each in near) == ["2", "3", "4", "5"]
    assert len(graph.fetch_neighbourhood(["4"], depth=9, limit=3)) == 3
    assert graph.fetch_neighbourhood(["4"], depth=9, limit=9, ignored_labels=["NEXT"]) == []


def test_relations_are_deleted_by_key_and_by_label(graph: PropertyGraph) -> None:
    keys = [PropertyRelation("a", "b", "R"), PropertyRelation("a", "b", "S")]
    graph.write(relations=[*keys, PropertyRelation("b", "a", "S")])
    graph.delete_relation_keys([keys[0], PropertyRelation("a", "b", "missing")])
    assert [(each.source, each.label) for each in graph.fetch_relations()] == [
        ("a", "S"),
        ("b", "S"),
    ]
    graph.delete_relations(["S"])
    assert graph.fetch_relations() == []
    assert graph.delete_nodes(NodeFilter(names=["a"])).affected_nodes == 1


def test_a_graph_store_of_langchain_needs_no_package_of_it(graph: PropertyGraph) -> None:
    store = OmnigraphGraphStore(graph.branch, node_type="Thing", edge_type="RelatedTo")
    assert store.get_structured_schema == {"node_labels": [], "relationships": []}
    assert "node Thing" in store.get_schema
