"""A source that reads only what a query meets, beside plain Python over the same entities."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import ModelGraph
from omnigraph.errors import CorruptObjectError
from omnigraph.execution.sources.index.index_source import IndexSource
from omnigraph.query.logical_plan import Filter, Project
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from people import with_index
from unit.execution.model_views import add_edges, add_nodes, model_graph, plan_of, view_of
from unit.execution.sources.index.walks import SCHEMA, Plain, Told, random_graph, random_question


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_lookups_say_what_the_entities_say_in_whatever_order_they_are_asked(seed: int) -> None:
    random = Random(seed)
    graph = random_graph(random)
    view = view_of(graph)
    source = IndexSource(indexed(view) if random.random() < 0.5 else view)
    told, plain = Told(source), Plain(graph)
    for _ in range(12):
        method, arguments, options = random_question(random, graph)
        answer = getattr(told, method)(*arguments, **options)
        assert answer == getattr(plain, method)(*arguments, **options), (method, arguments, options)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('$p.name = "b"', ["b"]),
        ('$p.name in ["c", "a", "no"]', ["a", "c"]),
        ("$p.age > 20", ["b", "c"]),
        ('search($p.city, "oslo")', ["a"]),
        ("$p.age < 0", []),
    ],
)
def test_nodes_are_found_by_conditions(condition: str, expected: list[str]) -> None:
    graph = people()
    nodes = IndexSource(view_of(graph)).get_nodes("Person")
    found = nodes.filter_nodes([condition_of(graph, condition)], {})
    assert found.tolist() == sorted(found.tolist())
    assert sorted(nodes.fetch_ids(found).to_pylist()) == expected


def test_no_condition_means_every_node() -> None:
    nodes = IndexSource(view_of(people())).get_nodes("Person")
    assert sorted(nodes.fetch_ids(nodes.filter_nodes([], {})).to_pylist()) == ["a", "b", "c"]


def test_rows_and_numbers_lead_to_each_other() -> None:
    source = IndexSource(view_of(people()))
    nodes = source.get_nodes("Person")
    reached = source.get_edges("Knows").expand_neighbours(
        nodes.find(pa.array(["a"])), is_reversed=False
    )
    at = np.concatenate([reached.ends, reached.ends])
    assert nodes.find_by_row_ids(nodes.fetch_row_ids(at)).tolist() == at.tolist()


def test_rows_that_nobody_met_get_numbers_and_absent_rows_get_none() -> None:
    view = view_of(people())
    rows = view.open_table(TypeKey(TypeKind.NODE, "Person")).scan(columns=["__id", "_rowid"])
    wanted = np.append(rows["_rowid"].to_numpy(), [np.uint64(10**9)])
    nodes = IndexSource(view).get_nodes("Person")
    found = nodes.find_by_row_ids(wanted)
    assert found[-1] == -1
    assert nodes.fetch_ids(found[:-1]).to_pylist() == rows["__id"].to_pylist()


def test_only_what_is_met_gets_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(people())
    monkeypatch.setattr("omnigraph.storage.tables.table_reader.Table.scan", _refused)
    source = IndexSource(view)
    nodes = source.get_nodes("Person")
    start = nodes.find(pa.array(["a", "no"]))
    assert start.tolist() == [0, -1]
    ends = source.get_edges("Knows").expand_neighbours(start[:1], is_reversed=False).ends
    assert nodes.fetch_values("age", ends).to_pylist() == [30]
    assert len(nodes.fetch_ids(np.arange(2, dtype=np.int32))) == 2
    assert nodes.count == 3


def test_values_that_were_read_once_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = IndexSource(view_of(people())).get_nodes("Person")
    at = nodes.find(pa.array(["a", "b"]))
    monkeypatch.setattr("omnigraph.storage.tables.table_reader.Table.take", _refused)
    monkeypatch.setattr("omnigraph.storage.tables.table_reader.Table.find", _refused)
    # The few rows of the look-up came with their plain columns.
    assert nodes.fetch_values("age", at).to_pylist() == [10, 30]
    assert nodes.find(pa.array(["b", "a"])).tolist() == at[::-1].tolist()


def test_an_edge_to_a_node_that_is_gone_is_reported_as_damage() -> None:
    graph = people()
    view = view_of(graph)
    person = str(TypeKey(TypeKind.NODE, "Person"))
    empty = view.tables.create(
        "t/other.lance", view.get_shape(TypeKey(TypeKind.NODE, "Person")).schema
    )
    a = view.open_table(TypeKey(TypeKind.NODE, "Person")).find(
        "__id", pa.array(["a"]), columns=None
    )
    assert a.num_rows == 1
    pins = {**view.snapshot.pins, person: empty}
    source = IndexSource(replace(view, snapshot=replace(view.snapshot, pins=pins)))
    edges, nodes = source.get_edges("Knows"), source.get_nodes("Person")
    start = nodes.assign_dense_ids(pa.array(["a"]))
    ends = edges.expand_neighbours(start, is_reversed=False).ends
    with pytest.raises(CorruptObjectError, match="lacks 1 nodes that edges name"):
        nodes.fetch_values("age", ends)


def test_the_answers_have_the_types_of_the_properties() -> None:
    source = IndexSource(view_of(people()))
    nodes, none = source.get_nodes("Person"), np.empty(0, np.int32)
    assert nodes.fetch_values("age", none).type == pa.int32()
    assert nodes.fetch_values("vec", none).type == pa.list_(pa.field("item", pa.float32()), 2)
    assert nodes.fetch_ids(none).type == pa.utf8()
    assert nodes.find(pa.array([], pa.utf8())).dtype == np.int32
    reached = source.get_edges("Knows").expand_edges(none, is_reversed=True)
    assert [part.dtype for part in reached] == [np.int64, np.int32, np.int32]
    assert source.get_edges("Knows").fetch_values("since", none).type == pa.int32()


def indexed(view: View) -> View:
    """The view with the indexes that look-ups use."""
    pins = {}
    for key, pin in view.snapshot.pins.items():
        pins[key] = pin
        for column in ("__id", "__src", "__dst") if key.startswith("edge:") else ("__id",):
            pins[key] = with_index(view.tables, pins[key], column, name=f"of_{column}")
    return replace(view, snapshot=replace(view.snapshot, pins=pins))


def people() -> ModelGraph:
    graph = model_graph(SCHEMA)
    ages = {"a": 10, "b": 30, "c": 40}
    cities = {"a": "Oslo", "b": "Rome", "c": None}
    add_nodes(
        graph, "Person", [{"name": n, "age": age, "city": cities[n]} for n, age in ages.items()]
    )
    add_edges(graph, "Knows", [{"@src": "a", "@dst": "b"}, {"@src": "a", "@dst": "b"}])
    return graph


def condition_of(graph: ModelGraph, text: str) -> Expr:
    query = f"query q() {{ match {{ $p: Person  {text} }} return {{ $p.name }} }}"
    root = plan_of(graph, query, is_rewritten=False).root
    assert isinstance(root, Project)
    assert isinstance(root.input, Filter)
    return root.input.condition


def _refused(*_: object, **__: object) -> None:
    raise AssertionError("this reads more than it has to")
