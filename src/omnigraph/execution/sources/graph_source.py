"""What operators read from: the nodes and edges of a snapshot, by number.

Within one source every node of a type has a number, and so has every edge. Rows of a query hold
numbers; ids and properties are fetched where they are needed. Two sources exist, with the same
answers: `topology` holds whole types in memory, `index` reads from the tables what a query reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.typed_tree import Expr
from omnigraph.rows.evaluator import Params

# Numbers of nodes of one type, or of edges of one type.
DenseIds: TypeAlias = npt.NDArray[np.int32]
# Places in an array of rows.
RowIndices: TypeAlias = npt.NDArray[np.int64]


class Neighbours(NamedTuple):
    """Where edges lead: for each match the place of its start in the given nodes, and its end."""

    start_indices: RowIndices
    ends: DenseIds


class NeighbourEdges(NamedTuple):
    """The same with the edge of each match."""

    start_indices: RowIndices
    ends: DenseIds
    edges: DenseIds


class Entities(Protocol):
    """The nodes or the edges of one type."""

    @property
    def count(self) -> int:
        """How many there are."""

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""


class Nodes(Entities, Protocol):
    """The nodes of one type."""

    def list_all(self) -> DenseIds:
        """Every node, ascending."""

    def find(self, ids: pa.Array) -> DenseIds:
        """The nodes with these ids; -1 where there is none."""

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        """The rows of nodes in their table, for indexes that know rows."""

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        """The nodes at rows of their table; -1 where there is none."""


class Edges(Entities, Protocol):
    """The edges of one type; `is_reversed` walks them from target to source."""

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        """The distinct nodes next to each given node, ordered by place, then by end."""

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        """The nodes that edges come from."""

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        """The nodes that edges lead to."""


class Source(Protocol):
    """A snapshot by numbers."""

    def get_nodes(self, type_name: str) -> Nodes:
        """The nodes of a type."""

    def get_edges(self, type_name: str) -> Edges:
        """The edges of a type."""
