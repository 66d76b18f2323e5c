"""The columns of a call of a table function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import ParameterError
from omnigraph.execution.algorithms.centrality import compute_betweenness, compute_closeness
from omnigraph.execution.algorithms.connected_components import find_components
from omnigraph.execution.algorithms.core_numbers import compute_cores
from omnigraph.execution.algorithms.distance_blocks import DistanceSearch
from omnigraph.execution.algorithms.edge_graph import EdgeGraph, NodeNumbers
from omnigraph.execution.algorithms.label_propagation import find_communities_by_labels
from omnigraph.execution.algorithms.louvain import find_louvain_communities
from omnigraph.execution.algorithms.neighbour_similarity import SimilarityOptions, find_similar
from omnigraph.execution.algorithms.node_degrees import compute_degrees
from omnigraph.execution.algorithms.pagerank import PageRankOptions, compute_pagerank
from omnigraph.execution.algorithms.selected_graph import (
    NodeTest,
    SelectedNodes,
    select_edges,
    select_nodes,
)
from omnigraph.execution.algorithms.triangle_counts import count_triangles
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.query.table_functions import (
    LOUVAIN,
    OVERLAP,
    TABLE_SIGNATURES,
    TableFunction,
)
from omnigraph.query.typed_table_calls import TableCall
from omnigraph.rows.evaluator import Params, evaluate_constant

# Numbers of nodes, or values.
Column: TypeAlias = npt.NDArray[np.integer] | pa.Array
_Options: TypeAlias = Mapping[str, Any]  # Any: each option has values of its own kind


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table: nodes as numbers among those that were selected, and values."""

    nodes: SelectedNodes
    columns: tuple[Column, ...]

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self.columns[0])


def compute_table(
    call: TableCall, context: ExecutionContext, guards: Mapping[str, NodeTest | None]
) -> TableRows:
    """The table of a call, on the nodes and edges of a read; guards say which nodes are seen."""
    options = _read_options(call, context.params)
    nodes = select_nodes(context.source, call.node_types, context.budget, guards)
    if options.get("sources") is not None:
        options["sources"] = nodes.find(options["sources"], "sources")
    graph = select_edges(call, nodes, context.view.catalog, context.budget)
    return TableRows(nodes, _COMPUTE[call.function](graph, nodes, options))


def _read_options(call: TableCall, params: Params) -> dict[str, Any]:  # Any: as above
    signature, found = TABLE_SIGNATURES[call.function], {}
    for name, expr in zip(call.options, call.values, strict=True):
        option, value = signature.find_option(name), evaluate_constant(expr, params)
        assert option is not None
        problem = option.find_problem(value)
        if problem is not None:
            raise ParameterError(f"{call.function}: {name}: {problem}")
        found[name] = value
    return found


def _list_all(nodes: SelectedNodes) -> NodeNumbers:
    return np.arange(nodes.count, dtype=np.int32)


def _compute_pagerank(
    graph: EdgeGraph, nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    given = PageRankOptions(
        options["damping"], options["tolerance"], options["rounds"], options["sources"]
    )
    return _list_all(nodes), pa.array(compute_pagerank(graph, given))


def _find_components(
    graph: EdgeGraph, nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    least = find_components(graph, is_strong=options["strong"])
    sizes = np.bincount(least, minlength=nodes.count).take(least)
    return _list_all(nodes), nodes.format_names(least), pa.array(sizes, pa.int64())


def _find_communities(
    graph: EdgeGraph, nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    if options["method"] == LOUVAIN:
        least = find_louvain_communities(
            graph, rounds=options["rounds"], resolution=options["resolution"]
        )
    else:
        least = find_communities_by_labels(graph, rounds=options["rounds"])
    return _list_all(nodes), nodes.format_names(least)


def _compute_degrees(
    graph: EdgeGraph, nodes: SelectedNodes, _options: _Options
) -> tuple[Column, ...]:
    found = compute_degrees(graph)
    return _list_all(nodes), pa.array(found.out), pa.array(found.into), pa.array(found.weight)


def _compute_betweenness(
    graph: EdgeGraph, nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    return _list_all(nodes), pa.array(compute_betweenness(graph, samples=options["samples"]))


def _compute_closeness(
    graph: EdgeGraph, nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    return _list_all(nodes), pa.array(compute_closeness(graph, samples=options["samples"]))


def _count_triangles(
    graph: EdgeGraph, nodes: SelectedNodes, _options: _Options
) -> tuple[Column, ...]:
    found = count_triangles(graph)
    return _list_all(nodes), pa.array(found.counts), pa.array(found.clustering)


def _compute_cores(
    graph: EdgeGraph, nodes: SelectedNodes, _options: _Options
) -> tuple[Column, ...]:
    return _list_all(nodes), pa.array(compute_cores(graph))


def _compute_distances(
    graph: EdgeGraph, _nodes: SelectedNodes, options: _Options
) -> tuple[Column, ...]:
    maximum = options["max"]
    limit = np.inf if maximum is None else float(maximum)
    search = DistanceSearch(graph.build_lengths(), graph.is_weighted, graph.budget, limit)
    found, starts, lengths = [], [], []
    for block in search.iter_blocks(options["sources"]):
        places, reached = np.nonzero(np.isfinite(block.distances))
        found.append(reached)
        starts.append(block.sources.take(places))
        lengths.append(block.distances[places, reached])
    kind = pa.float64() if graph.is_weighted else pa.int64()
    ends = np.concatenate([np.zeros(0, np.int64), *found])
    distances = np.concatenate([np.zeros(0), *lengths])
    return ends, np.concatenate([np.zeros(0, np.int32), *starts]), pa.array(distances).cast(kind)


def _find_similar(graph: EdgeGraph, _nodes: SelectedNodes, options: _Options) -> tuple[Column, ...]:
    given = SimilarityOptions(options["metric"] == OVERLAP, options["k"], options["min"])
    found = find_similar(graph, given)
    return found.nodes, found.others, pa.array(found.scores)


_COMPUTE: Final[
    Mapping[TableFunction, Callable[[EdgeGraph, SelectedNodes, _Options], tuple[Column, ...]]]
] = {
    TableFunction.PAGERANK: _compute_pagerank,
    TableFunction.COMPONENTS: _find_components,
    TableFunction.COMMUNITIES: _find_communities,
    TableFunction.DEGREES: _compute_degrees,
    TableFunction.BETWEENNESS: _compute_betweenness,
    TableFunction.CLOSENESS: _compute_closeness,
    TableFunction.TRIANGLES: _count_triangles,
    TableFunction.CORES: _compute_cores,
    TableFunction.DISTANCES: _compute_distances,
    TableFunction.SIMILAR: _find_similar,
}
