"""A snapshot by numbers, of which only what a query meets is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import CorruptObjectError
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import DenseIds, NeighbourEdges, Neighbours
from omnigraph.execution.sources.index.lazy_adjacency import EdgeList, LazyAdjacency
from omnigraph.execution.sources.index.lookup_numbering import (
    NO_ROW,
    IdNumbering,
    RowIds,
    RowNumbering,
    find_sorted,
)
from omnigraph.execution.sources.index.type_reader import TypeReader
from omnigraph.execution.type_scan import (
    build_rows_schema,
    find_type_candidate_ids,
    scan_matching_batches,
)
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.evaluator import Params
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN

# When more than one node in so many is asked about, reading every edge costs less than asking.
NODES_PER_LOOKUP: Final = 8
_END_COLUMNS: Final = [ROW_ID, SOURCE_COLUMN, TARGET_COLUMN]


class IndexSource:
    """The source of one query, for one thread at a time: it keeps all it has read.

    The budget of the query holds the memory of it.
    """

    def __init__(self, view: View, budget: Budget | None = None) -> None:
        self.view = view
        self._budget = budget or Budget()
        self._nodes: dict[str, IndexNodes] = {}
        self._edges: dict[str, IndexEdges] = {}

    def get_nodes(self, type_name: str) -> IndexNodes:
        """The nodes of a type."""
        found = self._nodes.get(type_name)
        if found is None:
            found = IndexNodes(self.view, TypeKey(TypeKind.NODE, type_name), self._budget)
            self._nodes[type_name] = found
        return found

    def get_edges(self, type_name: str) -> IndexEdges:
        """The edges of a type."""
        found = self._edges.get(type_name)
        if found is None:
            type_ = self.view.catalog.edges[type_name]
            found = IndexEdges(
                self.view,
                TypeKey(TypeKind.EDGE, type_name),
                self._budget,
                sources=self.get_nodes(type_.source),
                targets=self.get_nodes(type_.target),
            )
            self._edges[type_name] = found
        return found


class IndexNodes:
    """Numbers are given to ids: an edge names its ends by id before they are looked up.

    Ranks compare within one call only, as later calls may meet ids that lie in between.
    """

    def __init__(self, view: View, type_key: TypeKey, budget: Budget) -> None:
        self._looked = TypeReader(view, type_key, budget)
        self._numbers = IdNumbering(budget.allocate)
        self._row_ids: RowIds = np.empty(0, np.uint64)
        self._all: DenseIds | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return self._looked.count

    def list_all(self) -> DenseIds:
        """Every node, ascending."""
        if self._all is None:
            rows = self._looked.scan([ID_COLUMN, ROW_ID])
            self._all = np.sort(self._record_rows(rows))
        return self._all

    def find(self, ids: pa.Array) -> DenseIds:
        """The nodes with these ids; -1 where there is none."""
        found = self._numbers.find_numbers(ids)
        unknown = np.flatnonzero(found < 0)
        if self._all is not None or not len(unknown):
            return found
        columns = [ID_COLUMN, ROW_ID, *self._looked.list_read_columns(len(unknown))]
        absent = ids.take(pa.array(unknown))
        self._record_rows(self._looked.table.find(ID_COLUMN, absent, columns=columns))
        return self._numbers.find_numbers(ids)

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        if not conditions:
            return self.list_all()
        view, shape = self._looked.view, self._looked.shape
        pinned = find_type_candidate_ids(view, shape.type_key, conditions, params)
        along = [] if pinned is None else self._looked.list_read_columns(len(pinned))
        names = [ID_COLUMN, ROW_ID, *along]
        found = scan_matching_batches(view, shape.type_key, conditions, params, names=names)
        return np.sort(
            self._record_rows(self._looked.collect_batches(found, build_rows_schema(shape, names)))
        )

    def assign_dense_ids(self, ids: pa.Array) -> DenseIds:
        """The nodes with ids that are known to exist, without looking them up."""
        return self._numbers.assign_numbers(ids)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        return self._numbers.ids.take(pa.array(at))

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""
        return compute_order_codes(self.fetch_ids(at)).astype(np.int64, copy=False)

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        column = self._looked.shape.columns[name]
        missing = self._looked.fetched.find_missing(column, at)
        if len(missing):
            self._read_columns(missing, self._looked.list_read_columns(len(missing), column))
        return self._looked.fetched.get_values(column, at)

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        """The rows of nodes in their table, for indexes that know rows."""
        self._reserve_row_ids()
        unknown = np.unique(at[self._row_ids[at] == NO_ROW])
        if len(unknown):
            self._fetch_by_id(unknown, [])
        return self._row_ids[at]

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        """The nodes at rows of their table; -1 where there is none."""
        found = self._find_known_rows(row_ids)
        unknown = np.flatnonzero(found < 0)
        if not len(unknown):
            return found
        wanted = pa.array(np.unique(row_ids[unknown]))
        self._record_rows(self._looked.table.fetch_rows(wanted, columns=[ID_COLUMN, ROW_ID]))
        return self._find_known_rows(row_ids)

    def _find_known_rows(self, row_ids: RowIds) -> DenseIds:
        numbers = np.flatnonzero(self._row_ids != NO_ROW).astype(np.int32)
        keys = self._row_ids[numbers]
        order = np.argsort(keys)
        return find_sorted(keys[order], numbers[order], row_ids)

    def _read_columns(self, numbers: DenseIds, columns: list[str]) -> None:
        self._reserve_row_ids()
        has_row = self._row_ids[numbers] != NO_ROW
        by_row = numbers[has_row]
        if len(by_row):
            rows = pa.array(self._row_ids[by_row])
            self._looked.fetched.add_rows(by_row, self._looked.table.take(rows, columns=columns))
        if len(by_row) < len(numbers):
            self._fetch_by_id(numbers[~has_row], columns)

    def _fetch_by_id(self, numbers: DenseIds, columns: list[str]) -> None:
        table = self._looked.table
        names = [ID_COLUMN, ROW_ID, *columns]
        rows = table.find(ID_COLUMN, self.fetch_ids(numbers), columns=names)
        if rows.num_rows < len(numbers):
            problem = f"lacks {len(numbers) - rows.num_rows} nodes that edges name"
            raise CorruptObjectError(table.pin.path, problem)
        self._record_rows(rows)

    def _record_rows(self, rows: pa.Table) -> DenseIds:
        """The numbers of rows that were read, with whatever columns came along."""
        numbers = self._numbers.assign_numbers(rows[ID_COLUMN].combine_chunks())
        self._reserve_row_ids()
        self._row_ids[numbers] = rows[ROW_ID].to_numpy()
        along = [name for name in rows.column_names if name not in (ID_COLUMN, ROW_ID)]
        self._looked.fetched.add_rows(numbers, rows.select(along))
        return numbers

    def _reserve_row_ids(self) -> None:
        known, needed = len(self._row_ids), len(self._numbers)
        if needed > known:
            more = max(needed, 2 * known) - known
            self._looked.budget.allocate(more * NO_ROW.nbytes)
            unknown = np.full(more, NO_ROW)
            self._row_ids = np.concatenate([self._row_ids, unknown])


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
        return compute_order_codes(self.fetch_ids(at)).astype(np.int64, copy=False)

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
