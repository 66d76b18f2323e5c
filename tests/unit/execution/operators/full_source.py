"""A graph where everybody knows everybody: large answers, little data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from model.expressions import At
from omnigraph.execution.sources.graph_source import (
    DenseIds,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)
from omnigraph.query.tree_walk import variables_of
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.evaluator import Params


@dataclass(frozen=True)
class FullNodes:
    """So many nodes; node 7 has the id and the name `n7`."""

    count: int

    def list_all(self) -> DenseIds:
        return np.arange(self.count, dtype=np.int32)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        return pa.array([f"n{number}" for number in at], pa.utf8())

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        return at.astype(np.int64)

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        return pa.array(at.astype(np.int64)) if name == "age" else self.fetch_ids(at)

    def find(self, ids: pa.Array) -> DenseIds:
        return np.array([int(id_[1:]) for id_ in ids.to_pylist()], np.int32)

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        names = frozenset().union(*map(variables_of, conditions))
        people = [{"@id": f"n{age}", "name": f"n{age}", "age": age} for age in range(self.count)]
        rows = [dict.fromkeys(names, person) for person in people]
        is_kept = [all(At(row, params)(each) is True for each in conditions) for row in rows]
        return np.flatnonzero(is_kept).astype(np.int32)

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        return at.astype(np.uint64)

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        return row_ids.astype(np.int32)


@dataclass(frozen=True)
class FullAdjacency:
    """Every node has every node for a neighbour."""

    degrees: DenseIds

    def count_neighbours(self, nodes: DenseIds) -> DenseIds:
        return self.degrees.take(nodes)

    offsets: RowIndices

    @property
    def size(self) -> int:
        return len(self.degrees)

    @property
    def edge_count(self) -> int:
        return self.size**2

    @property
    def degree_max(self) -> int:
        return self.size


@dataclass(frozen=True)
class FullEdges:
    """An edge between every two nodes; each walk may take some time, and is noted."""

    nodes: FullNodes
    pause_s: float = 0
    walked: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.nodes.count**2

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        return pa.array([f"e{number}" for number in at], pa.utf8())

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        return at.astype(np.int64)

    def fetch_values(self, _name: str, at: DenseIds) -> pa.Array:
        return pa.array(at.astype(np.int64))

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        found = self.expand_edges(nodes, is_reversed=is_reversed)
        return Neighbours(found.start_indices, found.ends)

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        time.sleep(self.pause_s)
        self.walked.append(len(nodes))
        size = self.nodes.count
        places = np.repeat(np.arange(len(nodes)), size)
        ends = np.tile(self.nodes.list_all(), len(nodes))
        starts = nodes.take(places)
        pairs = (ends, starts) if is_reversed else (starts, ends)
        return NeighbourEdges(places, ends, (pairs[0] * size + pairs[1]).astype(np.int32))

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        return (at // self.nodes.count).astype(np.int32)

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        return (at % self.nodes.count).astype(np.int32)

    def get_adjacency(self, _is_reversed: bool) -> FullAdjacency:
        size = self.nodes.count
        return FullAdjacency(np.full(size, size, np.int32), np.arange(size + 1) * size)

    def get_edge_lists(self, is_reversed: bool) -> FullAdjacency:
        return self.get_adjacency(is_reversed)


@dataclass(frozen=True)
class FullSource:
    """One type of nodes and one type of edges, whatever their names."""

    size: int
    pause_s: float = 0
    edges_: list[FullEdges] = field(default_factory=list)

    def get_nodes(self, _type_name: str) -> FullNodes:
        return FullNodes(self.size)

    def get_edges(self, _type_name: str) -> FullEdges:
        if not self.edges_:
            self.edges_.append(FullEdges(FullNodes(self.size), self.pause_s))
        return self.edges_[0]
