"""Views of real tables that hold what a model graph holds, and plans to read both by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from model import ModelGraph, to_json
from model.expressions import Entity
from model.store import types_of
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.query_budget import Access, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import Value
from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.rows.view import View
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import MAIN, Snapshot
from omnigraph.versioning.schema_store import StoredSchema
from people import with_index

NOW = 1_700_000_000_000
_stores = count()


class UnreadySources(SourceCache):
    """Sources that take every type for a large one that is not in memory."""

    def is_ready(self, _view: View, _types: Iterable[TypeKey]) -> bool:
        return False


# Every way to read: types in memory, look-ups, and straight from a table what is of one type.
PATHS: tuple[tuple[Access, type[SourceCache]], ...] = (
    (Access.AUTO, SourceCache),
    (Access.TOPOLOGY, SourceCache),
    (Access.LOOKUPS, SourceCache),
    (Access.AUTO, UnreadySources),
)


def model_graph(schema: str) -> ModelGraph:
    """An empty graph of a schema text, with ids that count up."""
    numbers = count(1)
    return ModelGraph(load_catalog(schema), new_id=lambda: f"new{next(numbers)}")


def add_nodes(graph: ModelGraph, type_name: str, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Put nodes into a model as they are, without any check."""
    type_ = graph.catalog.nodes[type_name]
    for node in nodes:
        entity = graph.entity(type_, dict(node))
        graph.nodes[type_name][entity["@id"]] = entity


def add_edges(graph: ModelGraph, type_name: str, edges: Sequence[Mapping[str, Any]]) -> None:
    """Put edges into a model as they are, without any check."""
    type_ = graph.catalog.edges[type_name]
    for edge in edges:
        entity = graph.entity(type_, dict(edge))
        graph.edges[type_name][entity["@id"]] = entity


def view_of(graph: ModelGraph, *, parts: int = 2) -> View:
    """A view of tables in memory with the entities of a model, each table in so many fragments."""
    tables = Tables(f"memory://model-views-{next(_stores)}")
    pins: dict[str, Pin] = {}
    for type_ in types_of(graph.catalog):
        kind = TypeKind.EDGE if isinstance(type_, EdgeType) else TypeKind.NODE
        key = TypeKey(kind, type_.name)
        shape = build_table_shape(graph.accepted, key)
        pin = tables.create(layout.build_table_path(str(key), "00000001"), shape.schema)
        entities = list(graph.table(type_).values())
        size = max(1, -(-len(entities) // parts))
        for start in range(0, len(entities), size):
            rows = physical_rows(entities[start : start + size], shape)
            pin = tables.append(pin, [tables.write(pin, rows)])
        pins[str(key)] = pin
    snapshot = Snapshot(MAIN, 0, "commit", 0, "sha256:schema", pins)
    return View(snapshot, StoredSchema("sha256:schema", "", graph.accepted), tables)


def indexed(view: View, type_key: TypeKey, properties: Sequence[str]) -> View:
    """The view with indexes on the id and some properties of a type."""
    pin, shape = view.snapshot.pins[str(type_key)], view.get_shape(type_key)
    for column in ("__id", *(shape.columns[name] for name in properties)):
        pin = with_index(view.tables, pin, column, name=f"of_{column}")
    pins = {**view.snapshot.pins, str(type_key): pin}
    return replace(view, snapshot=replace(view.snapshot, pins=pins))


def physical_rows(entities: Sequence[Entity], shape: TableShape) -> pa.Table:
    """Entities of a model as rows of a table."""
    fields = {"__id": "@id", "__src": "@src", "__dst": "@dst"}
    fields |= {column: name for name, column in shape.columns.items()}
    columns = [
        _array([entity[fields[field.name]] for entity in entities], field.type)
        for field in shape.schema
    ]
    return pa.table(columns, schema=shape.schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([list(each) if isinstance(each, tuple) else each for each in values], kind)


def plan_of(graph: ModelGraph, text: str, *, is_rewritten: bool = True) -> ReadPlan:
    """The plan of a query."""
    compiled = compile_query(text, graph.catalog)
    plan = compiled.plan if is_rewritten else lower_query(compiled.checked)
    assert isinstance(plan, ReadPlan)
    return plan


def read(
    graph: ModelGraph, view: View, text: str, params: Mapping[str, Any] | None = None
) -> Result:
    """The result of a query on real tables."""
    plan = plan_of(graph, text)
    return QueryExecutor(SourceCache()).run(plan, view, bound(plan, params), now=NOW)


def assert_reads_agree(
    graph: ModelGraph, view: View, text: str, params: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Read by the model and by the engine, rewritten or not, from every source; the rows."""
    expected = None
    for is_rewritten in (False, True):
        plan = plan_of(graph, text, is_rewritten=is_rewritten)
        values = bound(plan, params)
        by_model = [
            {c.name: to_json(row[c.name], c.type, graph.catalog) for c in plan.columns}
            for row in graph.read(plan, values, now=NOW)
        ]
        if not plan.is_ordered:
            by_model.sort(key=_text)
        for access, sources in PATHS:
            options = ReadOptions(access)
            result = QueryExecutor(sources()).run(plan, view, values, now=NOW, options=options)
            found = result.to_json_rows()
            if not plan.is_ordered:
                found.sort(key=_text)
            assert found == by_model, (access, sources, text)
            assert _text(found) == _text(by_model), (access, sources, text)
            expected = found
    assert expected is not None
    return expected


def _text(value: Any) -> str:
    # Of two zeros, an aggregate may show either.
    return json.dumps(value).replace("-0.0", "0.0")


def bound(plan: ReadPlan, params: Mapping[str, Any] | None) -> dict[str, Value]:
    """The values of a plan's parameters."""
    return {**bind_parameters(plan.parameters, dict(params or {}))}
