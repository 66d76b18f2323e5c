"""The edges of one type, whole in memory: neighbours in both directions, and every edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from omnigraph.execution.source import Numbers, Reached, ReachedEdges
from omnigraph.execution.topology.adjacency import (
    Adjacency,
    EdgeLists,
    Pairs,
    PlainAdjacency,
    adjacency,
    edge_lists,
    packed,
)
from omnigraph.execution.topology.changed import (
    ChangedAdjacency,
    ChangedEdgeLists,
    changed_adjacency,
    changed_edge_lists,
    joined,
)
from omnigraph.execution.topology.ends import Ends, extended_ends, read_ends
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.execution.topology.memory import Sized
from omnigraph.execution.topology.nodes import DenseNodes
from omnigraph.execution.topology.numbered import Known, Numbered, numbered_from
from omnigraph.execution.topology.numbering import Numberings
from omnigraph.execution.topology.piece import Piece
from omnigraph.execution.topology.rows import Inherited

# More changes than this share of the edges, but never fewer than some, are put into place.
CHANGES_SHARE_MAX: Final = 0.01
CHANGES_MIN: Final = 1_024

_Value = TypeVar("_Value", bound=Sized)


@dataclass(frozen=True, slots=True)
class _Change:
    """The edges that were added and removed since a piece was made, in one direction."""

    added: Pairs
    added_edges: Numbers
    removed: Pairs

    def is_large(self, edges: int) -> bool:
        """Whether it is better put into place."""
        return len(self.added) + len(self.removed) > max(CHANGES_MIN, CHANGES_SHARE_MAX * edges)


@dataclass(frozen=True)
class DenseEdges(DenseEntities):
    """Edges by number; `is_reversed` walks them from target to source."""

    source_nodes: DenseNodes
    target_nodes: DenseNodes

    def reach(self, nodes: Numbers, *, is_reversed: bool) -> Reached:
        """The distinct nodes next to each given node, ordered by place, then by end."""
        return self.adjacency(is_reversed).reach(nodes)

    def match(self, nodes: Numbers, *, is_reversed: bool) -> ReachedEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""
        return self.edge_lists(is_reversed).match(nodes)

    def sources(self, at: Numbers) -> Numbers:
        """The nodes that edges come from."""
        return self.ends.sources.take(at)

    def targets(self, at: Numbers) -> Numbers:
        """The nodes that edges lead to."""
        return self.ends.targets.take(at)

    def adjacency(self, is_reversed: bool) -> Adjacency:
        """The distinct neighbours of every node."""
        name = "in" if is_reversed else "out"
        return self._kept(name, lambda: self._adjacency(name, is_reversed))

    def edge_lists(self, is_reversed: bool) -> EdgeLists | ChangedEdgeLists:
        """The edges at every node."""
        name = "in.edges" if is_reversed else "out.edges"
        return self._kept(name, lambda: self._edge_lists(name, is_reversed))

    @property
    def ends(self) -> Ends:
        """The nodes at both ends of each edge."""
        indexes = self.source_nodes.id_index, self.target_nodes.id_index
        found: Ends = self._numbered(
            "ends",
            lambda: read_ends(self.rows, *indexes),
            lambda older, was: extended_ends(older.value, self.rows, *indexes, was=was),
        )
        return found

    # ---- pieces ----

    def _adjacency(self, name: str, is_reversed: bool) -> Adjacency:
        def make() -> PlainAdjacency:
            starts, ends, _ = self._directed(self.all(), is_reversed)
            return adjacency(starts, ends, self._starts(is_reversed).size)

        def extend(older: Numbered, _was: Inherited) -> Adjacency:
            change = self._change(older.known, is_reversed)
            if change is None:
                return make()
            base: PlainAdjacency = older.base.sized(self._starts(is_reversed).size)
            if self.rows.is_settled or change.is_large(len(base.ends)):
                return joined(base, change.removed, change.added)
            return changed_adjacency(base, change.removed, change.added)

        found: Adjacency = self._sized(name, is_reversed, self._numbered(name, make, extend))
        return found

    def _edge_lists(self, name: str, is_reversed: bool) -> EdgeLists | ChangedEdgeLists:
        def make() -> EdgeLists:
            starts, ends, at = self._directed(self.all(), is_reversed)
            return edge_lists(starts, ends, at, size=self._starts(is_reversed).size)

        def extend(older: Numbered, _was: Inherited) -> EdgeLists | ChangedEdgeLists:
            change = self._change(older.known, is_reversed)
            base: EdgeLists = older.base.sized(self._starts(is_reversed).size)
            is_large = change is None or change.is_large(len(base.ends))
            if change is None or is_large or self.rows.is_settled:
                return make()
            is_alive = self.is_alive if len(change.removed) else None
            return changed_edge_lists(base, is_alive, change.added, change.added_edges)

        found: EdgeLists | ChangedEdgeLists = self._sized(
            name, is_reversed, self._numbered(name, make, extend)
        )
        return found

    def _numbered(
        self,
        name: str,
        make: Callable[[], _Value],
        extend: Callable[[Numbered, Inherited], _Value],
    ) -> Any:  # Any: a name has pieces of one kind
        """A piece that holds numbers of these very nodes."""
        numberings = self._numberings

        def kept(value: Sized, base: Sized, known: Known) -> Numbered:
            ends = value if isinstance(value, Ends) else self.ends
            return Numbered(value, base, known, numberings, ends.highest)

        def made() -> Numbered:
            value = make()
            return kept(value, value, Known(self.size, self.is_alive))

        def extended(was: Inherited) -> Numbered | None:
            older: Numbered = was.value
            if not older.fits(numberings):
                return None
            value = extend(older, was)
            if isinstance(value, ChangedAdjacency | ChangedEdgeLists):
                return kept(value, older.base, older.known)
            return kept(value, value, Known(self.size, self.is_alive))

        def restored(piece: Piece, was: Inherited) -> Numbered:
            return numbered_from(piece, Known(was.size, was.is_alive))

        found = self.rows.part(name, made, extend=extended, restore=restored)
        if not found.fits(numberings):
            found = made()
            self.rows.replace_part(name, found)
        return found.value

    def _sized(self, name: str, is_reversed: bool, value: Any) -> Any:  # Any: of either kind
        """A piece for exactly the nodes there are; kept, if it had to grow."""
        size = self._starts(is_reversed).size
        if value.size >= size:
            return value.sized(size)
        held: Numbered | None = self.rows.parts.peek(name)
        grown = value.sized(size)
        if held is not None and held.value is value:
            self.rows.parts.keep(
                name,
                Numbered(grown, held.base, held.known, held.numberings, held.highest),
            )
        return grown

    def _change(self, known: Known, is_reversed: bool) -> _Change | None:
        """What changed since a piece was made; None if it is not known any more."""
        new = np.arange(known.size, self.size, dtype=np.int32)
        if self.is_alive is not None:
            new = new[self.is_alive[known.size :]]
        added, added_ends, edges = self._directed(new, is_reversed)
        removed, removed_ends, _ = self._directed(self._dead_since(known), is_reversed)
        if len(removed) and int(removed.min()) < 0:
            # The ends were read again, when these edges were gone already.
            return None
        return _Change(packed(added, added_ends), edges, packed(removed, removed_ends))

    def _dead_since(self, known: Known) -> Numbers:
        if self.is_alive is None:
            return np.zeros(0, np.int32)
        is_dead = ~self.is_alive[: known.size]
        if known.is_alive is not None:
            is_dead &= known.is_alive
        return np.flatnonzero(is_dead).astype(np.int32)

    def _directed(self, at: Numbers, is_reversed: bool) -> tuple[Numbers, Numbers, Numbers]:
        """Where some edges start and end, and those edges."""
        ends = self.ends
        starts, stops = ends.sources, ends.targets
        if is_reversed:
            starts, stops = stops, starts
        if len(at) == len(starts):
            return starts, stops, at
        return starts.take(at), stops.take(at), at

    def _starts(self, is_reversed: bool) -> DenseNodes:
        return self.target_nodes if is_reversed else self.source_nodes

    @property
    def _numberings(self) -> Numberings:
        return self.source_nodes.rows.numbering, self.target_nodes.rows.numbering
