"""The edges of one type, as far as a query has met them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.lookups.adjacency import Adjacency, Incident
from omnigraph.execution.lookups.entities import Looked, ranks_of
from omnigraph.execution.lookups.nodes import LookupNodes
from omnigraph.execution.lookups.numbering import RowNumbers
from omnigraph.execution.source import Numbers, Reached, ReachedEdges
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN

# When more than one node in so many is asked about, reading every edge costs less than asking.
NODES_PER_ASKED: Final = 8
_ENDS: Final = [ROW_ID, SOURCE_COLUMN, TARGET_COLUMN]


class LookupEdges:
    """Numbers are given to rows: nothing names an edge by its id.

    Ranks compare within one call only, as later calls may meet ids that lie in between.
    """

    def __init__(
        self,
        view: View,
        type_key: TypeKey,
        budget: Budget,
        *,
        sources: LookupNodes,
        targets: LookupNodes,
    ) -> None:
        self._looked = Looked(view, type_key, budget)
        self._source_nodes = sources
        self._target_nodes = targets
        self._numbers = RowNumbers(budget.hold)
        self._sources: Numbers = np.empty(0, np.int32)
        self._targets: Numbers = np.empty(0, np.int32)
        self._forward = Adjacency(budget)
        self._backward = Adjacency(budget)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._looked.count

    def reach(self, nodes: Numbers, *, is_reversed: bool) -> Reached:
        """The distinct nodes next to each given node, ordered by place, then by end."""
        return self._asked(nodes, is_reversed=is_reversed).reach(nodes)

    def match(self, nodes: Numbers, *, is_reversed: bool) -> ReachedEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""
        return self._asked(nodes, is_reversed=is_reversed).match(nodes)

    def sources(self, at: Numbers) -> Numbers:
        """The nodes that edges come from."""
        return self._sources.take(at)

    def targets(self, at: Numbers) -> Numbers:
        """The nodes that edges lead to."""
        return self._targets.take(at)

    def ids(self, at: Numbers) -> pa.Array:
        """Their ids."""
        return self._column(ID_COLUMN, at)

    def ranks(self, at: Numbers) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""
        return ranks_of(self.ids(at))

    def values(self, name: str, at: Numbers) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        return self._column(self._looked.shape.columns[name], at)

    def _column(self, column: str, at: Numbers) -> pa.Array:
        missing = self._looked.fetched.missing(column, at)
        if len(missing):
            names = self._looked.along(len(missing), column)
            rows = pa.array(self._numbers.row_ids[missing])
            self._looked.fetched.add(missing, self._looked.table.take(rows, columns=names))
        return self._looked.fetched.values(column, at)

    def _asked(self, nodes: Numbers, *, is_reversed: bool) -> Adjacency:
        """The adjacency of a direction, with all edges at the nodes."""
        adjacency = self._backward if is_reversed else self._forward
        starts = self._target_nodes if is_reversed else self._source_nodes
        unknown = adjacency.unknown(nodes)
        if not len(unknown):
            return adjacency
        if len(unknown) > starts.count // NODES_PER_ASKED and not _is_few(len(unknown)):
            edges = self._met(self._looked.scan(_ENDS))
            adjacency.complete(self._incident(edges, is_reversed=is_reversed))
        else:
            column = TARGET_COLUMN if is_reversed else SOURCE_COLUMN
            found = self._looked.table.find(column, starts.ids(unknown), columns=_ENDS)
            edges = self._met(found)
            adjacency.add(unknown, self._incident(edges, is_reversed=is_reversed))
        return adjacency

    def _met(self, rows: pa.Table) -> Numbers:
        """The numbers of edges that were read."""
        numbers, new = self._numbers.give(rows[ROW_ID].to_numpy())
        if len(new):
            fresh = rows if len(new) == rows.num_rows else rows.take(pa.array(new))
            sources = self._source_nodes.expect(fresh[SOURCE_COLUMN].combine_chunks())
            targets = self._target_nodes.expect(fresh[TARGET_COLUMN].combine_chunks())
            self._looked.budget.hold(sources.nbytes + targets.nbytes)
            self._sources = np.concatenate([self._sources, sources])
            self._targets = np.concatenate([self._targets, targets])
        return numbers

    def _incident(self, edges: Numbers, *, is_reversed: bool) -> Incident:
        sources, targets = self._sources.take(edges), self._targets.take(edges)
        starts, ends = (targets, sources) if is_reversed else (sources, targets)
        return Incident(starts, ends, edges)


def _is_few(count: int) -> bool:
    return count <= NODES_PER_ASKED
