"""The graph of a call: its nodes in the order of type and id, and the edges between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError, NegativeWeightError
from omnigraph.execution.algorithms.edge_graph import EdgeArrays, EdgeGraph, Floats, NodeNumbers
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import DenseIds, Edges, Source
from omnigraph.execution.sources.topology.topology_edges import DenseEdges
from omnigraph.query.ast import EdgeWay
from omnigraph.query.table_functions import TableFunction
from omnigraph.query.typed_table_calls import TableCall, TableEdges
from omnigraph.rows.comparison import flatten_chunks, to_numpy
from omnigraph.schema.catalog import Catalog, EdgeType

# Where an edge without a weight cannot be walked: its length is not known.
_LENGTHS = frozenset({TableFunction.DISTANCES, TableFunction.CLOSENESS, TableFunction.BETWEENNESS})
# Of a node: its number, its place, and its rank while it is sorted.
_NODE_BYTES = 24


class NodeTest(Protocol):
    """Which nodes of a type are part of the graph."""

    def evaluate_mask(self, numbers: DenseIds) -> npt.NDArray[np.bool_]:
        """Which of the nodes are."""


@dataclass(frozen=True, slots=True)
class SelectedNodes:
    """The nodes of some types; those of a type have numbers that follow each other."""

    source: Source
    types: tuple[str, ...]
    # The numbers of a type are those from one of these to before the next.
    bounds: npt.NDArray[np.int64]
    # For each node the number that its type gives it.
    dense_ids: DenseIds

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.dense_ids)

    def get_range(self, type_name: str) -> slice:
        """The numbers of a type."""
        place = self.types.index(type_name)
        return slice(int(self.bounds[place]), int(self.bounds[place + 1]))

    def find(self, ids: Sequence[str], option: str) -> NodeNumbers:
        """The nodes with some ids, `Type/id` if there are several types."""
        if not self.types:
            raise ExecutionError(f"{option}: the graph has no nodes")
        found = np.full(len(ids), -1, np.int64)
        names = np.array([self._split(each, option)[0] for each in ids], np.object_)
        texts = [self._split(each, option)[1] for each in ids]
        for type_name in self.types:
            own = np.flatnonzero(names == type_name)
            known = self.source.get_nodes(type_name).find(
                pa.array([texts[at] for at in own.tolist()], pa.utf8())
            )
            numbers = self.list_numbers(type_name)
            found[own[known >= 0]] = take_numbers(numbers, known[known >= 0])
        missing = np.flatnonzero(found < 0)
        if len(missing):
            raise ExecutionError(f"{option}: there is no node '{ids[int(missing[0])]}'")
        return np.unique(found).astype(np.int32)

    def _split(self, node_id: str, option: str) -> tuple[str, str]:
        if len(self.types) == 1:
            return self.types[0], node_id
        type_name, slash, text = node_id.partition("/")
        if not slash or type_name not in self.types:
            shown = " or ".join(f"'{each}/…'" for each in self.types)
            raise ExecutionError(
                f"{option}: '{node_id}' does not name a type",
                hint=f"the graph has nodes of several types: write {shown}",
            )
        return type_name, text

    def list_numbers(self, type_name: str) -> NodeNumbers:
        """The number of each node of a type, by the one that the type gives it.

        It is -1 for nodes that were not selected; the last place is one of them.
        """
        own = self.get_range(type_name)
        dense_ids = self.dense_ids[own]
        found = np.full(int(dense_ids.max(initial=-1)) + 2, -1, np.int32)
        found[dense_ids] = np.arange(own.start, own.stop, dtype=np.int32)
        return found

    def format_names(self, numbers: NodeNumbers) -> pa.Array:
        """`Type/id` of each node; each distinct one is made once."""
        distinct, places = np.unique(numbers, return_inverse=True)
        parts: list[pa.Array] = []
        for type_name in self.types:
            own = self.get_range(type_name)
            chosen = distinct[(distinct >= own.start) & (distinct < own.stop)]
            ids = self.source.get_nodes(type_name).fetch_ids(self.dense_ids.take(chosen))
            prefix = pa.scalar(f"{type_name}/", pa.utf8())
            parts.append(pc.binary_join_element_wise(prefix, flatten_chunks(ids), ""))
        names = pa.concat_arrays(parts) if parts else pa.array([], pa.utf8())
        return names.take(pa.array(places))


def take_numbers(numbers: NodeNumbers, dense_ids: DenseIds) -> NodeNumbers:
    """The numbers of nodes among those of `SelectedNodes.list_numbers`."""
    return numbers.take(np.minimum(dense_ids, len(numbers) - 1))


def select_nodes(
    source: Source, types: tuple[str, ...], budget: Budget, guards: Mapping[str, NodeTest | None]
) -> SelectedNodes:
    """The nodes of some types, which are sorted by name, in the order of their ids."""
    parts: list[DenseIds] = []
    for type_name in types:
        budget.check_interrupts()
        nodes = source.get_nodes(type_name)
        budget.require_memory(nodes.count * _NODE_BYTES)
        own = nodes.list_all()
        if (guard := guards.get(type_name)) is not None:
            own = own[guard.evaluate_mask(own)]
        ranks = nodes.rank_ids(own)
        is_sorted = bool((ranks[1:] > ranks[:-1]).all())
        parts.append(own if is_sorted else own.take(np.argsort(ranks)))
    bounds = np.cumsum([0, *map(len, parts)])
    dense_ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return SelectedNodes(source, types, bounds, dense_ids)


def select_edges(
    call: TableCall, nodes: SelectedNodes, catalog: Catalog, budget: Budget
) -> EdgeGraph:
    """The edges of a call between its nodes."""
    numbers = {each: nodes.list_numbers(each) for each in nodes.types}
    parts: list[EdgeArrays] = []
    for each in call.edges:
        budget.check_interrupts()
        type_ = catalog.edges[each.edge_type]
        starts, ends, at = _read_ends(nodes, type_)
        sources = take_numbers(numbers[type_.source], starts)
        targets = take_numbers(numbers[type_.target], ends)
        is_between = (sources >= 0) & (targets >= 0)
        if not is_between.all():
            sources, targets, at = sources[is_between], targets[is_between], at[is_between]
        parts.append(_make_part(call, each, nodes, (sources, targets, at)))
    return EdgeGraph(nodes.count, parts, budget)


def _make_part(
    call: TableCall,
    selected: TableEdges,
    nodes: SelectedNodes,
    found: tuple[NodeNumbers, NodeNumbers, DenseIds],
) -> EdgeArrays:
    sources, targets, at = found
    edges = nodes.source.get_edges(selected.edge_type)
    weights = None
    if call.weight is not None:
        weights, is_known = _read_weights(call, edges, at, selected.edge_type)
        if is_known is not None:
            sources, targets, weights = sources[is_known], targets[is_known], weights[is_known]
    if selected.way is EdgeWay.BACKWARD:
        sources, targets = targets, sources
    return EdgeArrays(sources, targets, weights, selected.way is EdgeWay.BOTH)


def _read_ends(nodes: SelectedNodes, type_: EdgeType) -> tuple[DenseIds, DenseIds, DenseIds]:
    """Both ends of every edge of a type, and the edges."""
    edges = nodes.source.get_edges(type_.name)
    if isinstance(edges, DenseEdges):
        at = edges.list_all()
        return edges.fetch_sources(at), edges.fetch_targets(at), at
    own = nodes.dense_ids[nodes.get_range(type_.source)]
    found = edges.expand_edges(own, is_reversed=False)
    return own.take(found.start_indices), found.ends, found.edges


def _read_weights(
    call: TableCall, edges: Edges, at: DenseIds, edge_type: str
) -> tuple[Floats, npt.NDArray[np.bool_] | None]:
    """The weight of each edge, and which edges can be walked; None if all can."""
    assert call.weight is not None
    values = flatten_chunks(edges.fetch_values(call.weight, at))
    is_known = None
    if values.null_count:
        if call.function in _LENGTHS:
            is_known = to_numpy(values.is_valid())
        values = values.fill_null(pa.scalar(1, values.type))
    weights = to_numpy(values).astype(np.float64)
    wrong = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(wrong):
        edge_id = edges.fetch_ids(at[wrong[:1]])[0].as_py()
        raise NegativeWeightError(
            edge_type, edge_id, property_name=call.weight, value=float(weights[wrong[0]])
        )
    return weights, is_known
