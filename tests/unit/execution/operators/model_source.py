"""A source over a model graph, with nothing clever in it: dictionaries and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from model import ModelGraph
from model.expressions import At, Entity
from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.optimizer.plan_split import variable_types_of
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import DenseIds, NeighbourEdges, Neighbours
from omnigraph.query import logical_plan, tree_walk
from omnigraph.query.typed_tree import NOW_NAME, Expr
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View
from omnigraph.schema.catalog import Property
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Snapshot
from omnigraph.versioning.schema_store import StoredSchema

NOW = 1_700_000_000_000
_places = count()


def numbers(values: Sequence[int]) -> DenseIds:
    """Numbers of entities."""
    return np.array(values, np.int32)


class ModelEntities:
    """The entities of one type; their numbers are their places in the model."""

    def __init__(self, table: Mapping[str, Entity], properties: Mapping[str, Property]) -> None:
        self.entities = list(table.values())
        self.properties = properties
        self.place_of = {entity["@id"]: place for place, entity in enumerate(self.entities)}

    @property
    def count(self) -> int:
        return len(self.entities)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        return pa.array([self.entities[place]["@id"] for place in at], pa.utf8())

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        order = sorted(self.place_of, key=str.encode)
        rank_of = {id_: rank for rank, id_ in enumerate(order)}
        return np.array([rank_of[self.entities[place]["@id"]] for place in at], np.int64)

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        found = [self.entities[place][name] for place in at]
        plain = [list(each) if isinstance(each, tuple) else each for each in found]
        return pa.array(plain, arrow_type_of(self.properties[name].type))


class ModelNodes(ModelEntities):
    """The nodes of one type."""

    def list_all(self) -> DenseIds:
        return numbers(range(self.count))

    def find(self, ids: pa.Array) -> DenseIds:
        return numbers([self.place_of.get(id_, -1) for id_ in ids.to_pylist()])

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        names = frozenset().union(*map(tree_walk.variables_of, conditions))
        assert len(names) <= 1
        rows = [dict.fromkeys(names, entity) for entity in self.entities]
        hold = [all(At(row, params)(each) is True for each in conditions) for row in rows]
        return numbers(np.flatnonzero(hold).tolist())

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        return at.astype(np.uint64)

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        return row_ids.astype(np.int32)


class ModelEdges(ModelEntities):
    """The edges of one type; `are_counted` is whether they know their degrees."""

    def __init__(
        self,
        table: Mapping[str, Entity],
        properties: Mapping[str, Property],
        ends: tuple[ModelNodes, ModelNodes],
    ) -> None:
        super().__init__(table, properties)
        self._source_nodes, self._target_nodes = ends

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        found = self.expand_edges(nodes, is_reversed=is_reversed)
        pairs = sorted(set(zip(found.start_indices.tolist(), found.ends.tolist(), strict=True)))
        places, ends = zip(*pairs, strict=True) if pairs else ((), ())
        return Neighbours(np.array(places, np.int64), numbers(ends))

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        pairs = list(
            zip(self.fetch_sources(self._all()), self.fetch_targets(self._all()), strict=True)
        )
        found = [
            (place, int(end), edge)
            for place, node in enumerate(nodes)
            for edge, (source, target) in enumerate(pairs)
            for start, end in [(target, source) if is_reversed else (source, target)]
            if start == node
        ]
        places, ends, edges = zip(*sorted(found), strict=True) if found else ((), (), ())
        return NeighbourEdges(np.array(places, np.int64), numbers(ends), numbers(edges))

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        return self._ends("@src", self._source_nodes, at)

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        return self._ends("@dst", self._target_nodes, at)

    def _ends(self, name: str, nodes: ModelNodes, at: DenseIds) -> DenseIds:
        return numbers([nodes.place_of[self.entities[place][name]] for place in at])

    def _all(self) -> DenseIds:
        return numbers(range(self.count))


@dataclass(frozen=True)
class Degrees:
    """What an adjacency knows of its size."""

    degrees: DenseIds

    def degrees_at(self, nodes: DenseIds) -> DenseIds:
        return self.degrees.take(nodes)


class CountedEdges(ModelEdges):
    """Edges that know their degrees."""

    def adjacency(self, is_reversed: bool) -> Degrees:
        nodes = self._target_nodes if is_reversed else self._source_nodes
        places = self.expand_neighbours(nodes.list_all(), is_reversed=is_reversed).start_indices
        return Degrees(np.bincount(places, minlength=nodes.count).astype(np.int32))


class ModelSource:
    """A model graph by numbers."""

    def __init__(self, graph: ModelGraph, *, is_counted: bool = False) -> None:
        catalog = graph.catalog
        self._nodes = {
            name: ModelNodes(table, catalog.nodes[name].properties)
            for name, table in graph.nodes.items()
        }
        kind = CountedEdges if is_counted else ModelEdges
        self._edges = {
            name: kind(
                table, type_.properties, (self._nodes[type_.source], self._nodes[type_.target])
            )
            for name, table in graph.edges.items()
            for type_ in [catalog.edges[name]]
        }

    def get_nodes(self, type_name: str) -> ModelNodes:
        return self._nodes[type_name]

    def get_edges(self, type_name: str) -> ModelEdges:
        return self._edges[type_name]


def reading_of(
    graph: ModelGraph,
    root: logical_plan.Operator,
    params: Params | None = None,
    *,
    budget: Budget | None = None,
    is_counted: bool = False,
) -> ExecutionContext:
    """A reading of a model graph; its view knows the schema, and no tables."""
    tables = Tables(f"memory://model-source-{next(_places)}")
    snapshot = Snapshot(MAIN, 0, "commit", 0, "sha256:schema", {})
    view = View(snapshot, StoredSchema("sha256:schema", "", graph.accepted), tables)
    values = {**(params or {}), NOW_NAME: NOW}
    source = ModelSource(graph, is_counted=is_counted)
    types = variable_types_of(root)
    return ExecutionContext(
        view,
        source,
        values,
        budget or Budget(),
        None,
        types.nodes,
        types.edges,
        types.nullable,
    )


def pattern_of(root: logical_plan.Operator) -> logical_plan.Operator:
    """The part of a plan below aggregates, sorts, limits and columns."""
    while isinstance(
        root, logical_plan.Aggregate | logical_plan.Sort | logical_plan.Limit | logical_plan.Project
    ):
        root = root.input
    return root


def shown(reading: ExecutionContext, batch: Batch) -> list[dict[str, Any]]:
    """What each row binds: a node is its id, an edge its type and its id."""
    columns: dict[str, list[Any]] = {}
    for name, at in batch.nodes.items():
        assert at.dtype == np.int32
        assert len(at) == batch.num_rows
        columns[name] = reading.source.get_nodes(reading.nodes_of[name]).fetch_ids(at).to_pylist()
    for name, bound in batch.edges.items():
        assert len(bound.type_indices) == len(bound.dense_ids) == batch.num_rows
        columns[name] = [
            (
                bound.types[member],
                reading.source.get_edges(bound.types[member]).fetch_ids(numbers([at]))[0].as_py(),
            )
            for member, at in zip(bound.type_indices, bound.dense_ids, strict=True)
        ]
    return [
        {name: values[row] for name, values in columns.items()} for row in range(batch.num_rows)
    ]


def model_rows(
    rows: Iterator[dict[str, Any]], names: frozenset[str] | None
) -> list[dict[str, Any]]:
    """The rows of the model in the same form, with all variables or some."""
    return [
        {
            name: (entity["@type"], entity["@id"]) if "@src" in entity else entity["@id"]
            for name, entity in row.items()
            if names is None or name in names
        }
        for row in rows
    ]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without the order they come in."""
    return sorted(repr(sorted(row.items())) for row in rows)
