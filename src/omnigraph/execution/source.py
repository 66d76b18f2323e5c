"""What operators read from: the nodes and edges of a snapshot, by number.

Within one source every node of a type has a number, and so has every edge. Rows of a query hold
numbers; ids and properties are fetched where they are needed. Two sources exist, with the same
answers: `topology` holds whole types in memory, `lookups` asks the tables for what a query meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.expressions import Params
from omnigraph.query.typed import Expr

# Numbers of nodes of one type, or of edges of one type.
Numbers: TypeAlias = npt.NDArray[np.int32]
# Places in an array of rows.
Places: TypeAlias = npt.NDArray[np.int64]


class Reached(NamedTuple):
    """Where edges lead: for each match the place of its start in the given nodes, and its end."""

    places: Places
    ends: Numbers


class ReachedEdges(NamedTuple):
    """The same with the edge of each match."""

    places: Places
    ends: Numbers
    edges: Numbers


class Entities(Protocol):
    """The nodes or the edges of one type."""

    @property
    def count(self) -> int:
        """How many there are."""

    def ids(self, at: Numbers) -> pa.Array:
        """Their ids."""

    def ranks(self, at: Numbers) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""

    def values(self, name: str, at: Numbers) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""


class Nodes(Entities, Protocol):
    """The nodes of one type."""

    def all(self) -> Numbers:
        """Every node, ascending."""

    def find(self, ids: pa.Array) -> Numbers:
        """The nodes with these ids; -1 where there is none."""

    def where(self, conditions: Sequence[Expr], params: Params) -> Numbers:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""

    def row_ids(self, at: Numbers) -> npt.NDArray[np.uint64]:
        """The rows of nodes in their table, for indexes that know rows."""

    def at_rows(self, row_ids: npt.NDArray[np.uint64]) -> Numbers:
        """The nodes at rows of their table; -1 where there is none."""


class Edges(Entities, Protocol):
    """The edges of one type; `is_reversed` walks them from target to source."""

    def reach(self, nodes: Numbers, *, is_reversed: bool) -> Reached:
        """The distinct nodes next to each given node, ordered by place, then by end."""

    def match(self, nodes: Numbers, *, is_reversed: bool) -> ReachedEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""

    def sources(self, at: Numbers) -> Numbers:
        """The nodes that edges come from."""

    def targets(self, at: Numbers) -> Numbers:
        """The nodes that edges lead to."""


class Source(Protocol):
    """A snapshot by numbers."""

    def nodes(self, type_name: str) -> Nodes:
        """The nodes of a type."""

    def edges(self, type_name: str) -> Edges:
        """The edges of a type."""
