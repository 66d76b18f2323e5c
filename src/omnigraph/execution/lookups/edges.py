"""The edges of one type, as far as a query has met them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.lookups.adjacency import EdgeList, LazyAdjacency
from omnigraph.execution.lookups.entities import TypeReader, rank_texts
from omnigraph.execution.lookups.nodes import IndexNodes
from omnigraph.execution.lookups.numbering import RowNumbering
from omnigraph.execution.source import DenseIds, NeighbourEdges, Neighbours
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN

# When more than one node in so many is asked about, reading every edge costs less than asking.
NODES_PER_LOOKUP: Final = 8
_END_COLUMNS: Final = [ROW_ID, SOURCE_COLUMN, TARGET_COLUMN]


class IndexEdges:
    """Numbers are given to rows: nothing names an edge by its id.

    Ranks compare within one call only, as later calls may meet ids that lie in between.
    """

    def __init__(
        self,
        view: View,
        type_key: TypeKey,
        budget: Budget,
        *,
        sources: IndexNodes,
        targets: IndexNodes,
    ) -> None:
        self._looked = TypeReader(view, type_key, budget)
        self._source_nodes = sources
        self._target_nodes = targets
        self._numbers = RowNumbering(budget.allocate)
        self._sources: DenseIds = np.empty(0, np.int32)
        self._targets: DenseIds = np.empty(0, np.int32)
        self._forward = LazyAdjacency(budget)
        self._backward = LazyAdjacency(budget)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._looked.count

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        """The distinct nodes next to each given node, ordered by place, then by end."""
        return self._load_adjacency(nodes, is_reversed=is_reversed).expand_neighbours(nodes)

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""
        return self._load_adjacency(nodes, is_reversed=is_reversed).expand_edges(nodes)

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        """The nodes that edges come from."""
        return self._sources.take(at)

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        """The nodes that edges lead to."""
        return self._targets.take(at)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        return self._fetch_column(ID_COLUMN, at)

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""
        return rank_texts(self.fetch_ids(at))

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        return self._fetch_column(self._looked.shape.columns[name], at)

    def _fetch_column(self, column: str, at: DenseIds) -> pa.Array:
        missing = self._looked.fetched.find_missing(column, at)
        if len(missing):
            names = self._looked.list_read_columns(len(missing), column)
            rows = pa.array(self._numbers.row_ids[missing])
            self._looked.fetched.add_rows(missing, self._looked.table.take(rows, columns=names))
        return self._looked.fetched.get_values(column, at)

    def _load_adjacency(self, nodes: DenseIds, *, is_reversed: bool) -> LazyAdjacency:
        """The adjacency of a direction, with all edges at the nodes."""
        adjacency = self._backward if is_reversed else self._forward
        starts = self._target_nodes if is_reversed else self._source_nodes
        unknown = adjacency.find_unknown(nodes)
        if not len(unknown):
            return adjacency
        if len(unknown) > starts.count // NODES_PER_LOOKUP and not _is_few(len(unknown)):
            edges = self._record_rows(self._looked.scan(_END_COLUMNS))
            adjacency.set_all_edges(self._build_edge_list(edges, is_reversed=is_reversed))
        else:
            column = TARGET_COLUMN if is_reversed else SOURCE_COLUMN
            found = self._looked.table.find(column, starts.fetch_ids(unknown), columns=_END_COLUMNS)
            edges = self._record_rows(found)
            adjacency.add_edges(unknown, self._build_edge_list(edges, is_reversed=is_reversed))
        return adjacency

    def _record_rows(self, rows: pa.Table) -> DenseIds:
        """The numbers of edges that were read."""
        numbers, new = self._numbers.assign_numbers(rows[ROW_ID].to_numpy())
        if len(new):
            fresh = rows if len(new) == rows.num_rows else rows.take(pa.array(new))
            sources = self._source_nodes.assign_dense_ids(fresh[SOURCE_COLUMN].combine_chunks())
            targets = self._target_nodes.assign_dense_ids(fresh[TARGET_COLUMN].combine_chunks())
            self._looked.budget.allocate(sources.nbytes + targets.nbytes)
            self._sources = np.concatenate([self._sources, sources])
            self._targets = np.concatenate([self._targets, targets])
        return numbers

    def _build_edge_list(self, edges: DenseIds, *, is_reversed: bool) -> EdgeList:
        sources, targets = self._sources.take(edges), self._targets.take(edges)
        starts, ends = (targets, sources) if is_reversed else (sources, targets)
        return EdgeList(starts, ends, edges)


def _is_few(count: int) -> bool:
    return count <= NODES_PER_LOOKUP
