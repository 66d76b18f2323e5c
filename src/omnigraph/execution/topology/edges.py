"""The edges of one type, whole in memory: neighbours in both directions, and every edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

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
    ChangedEdgeLists,
    changed_adjacency,
    changed_edge_lists,
    larger,
)
from omnigraph.execution.topology.ends import Ends, extended_ends, read_ends
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.execution.topology.memory import Sized
from omnigraph.execution.topology.nodes import DenseNodes
from omnigraph.execution.topology.numbered import Numbered, numbered_from
from omnigraph.execution.topology.numbering import Numberings
from omnigraph.execution.topology.rows import Inherited
from omnigraph.execution.topology.texts import ChainedIndex

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
    removed_edges: Numbers

    @property
    def is_any(self) -> bool:
        """Whether there are any."""
        return bool(len(self.added) or len(self.removed))


def is_many(changes: int, edges: int) -> bool:
    """Whether changes are better put into place."""
    return changes > max(CHANGES_MIN, CHANGES_SHARE_MAX * edges)


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

        def indexes() -> tuple[ChainedIndex, ChainedIndex]:
            return self.source_nodes.id_index, self.target_nodes.id_index

        def extend(older: Numbered, was: Inherited) -> Ends:
            ends: Ends = older.value
            if self.size == was.size:
                return ends
            return extended_ends(ends, self.rows, *indexes(), was=was)

        found: Ends = self._numbered("ends", lambda: read_ends(self.rows, *indexes()), extend)
        return found

    # ---- pieces ----

    def _adjacency(self, name: str, is_reversed: bool) -> Adjacency:
        def make() -> PlainAdjacency:
            starts, ends, _ = self._directed(self.all(), is_reversed)
            return adjacency(starts, ends, self._starts(is_reversed).size)

        def extend(older: Numbered, was: Inherited) -> Adjacency | None:
            change = self._change(was, is_reversed)
            if change is None:
                return None
            size = max(self._starts(is_reversed).size, older.value.size)
            if not change.is_any and size == older.value.size:
                value: Adjacency = older.value
                return value
            found = changed_adjacency(older.value, change.removed, change.added, size=size)
            is_large = is_many(len(found.pairs), len(found.base.ends))
            return found.joined() if is_large else found

        found: Adjacency = self._sized(name, is_reversed, self._numbered(name, make, extend))
        return found

    def _edge_lists(self, name: str, is_reversed: bool) -> EdgeLists | ChangedEdgeLists:
        def make() -> EdgeLists:
            starts, ends, at = self._directed(self.all(), is_reversed)
            return edge_lists(starts, ends, at, size=self._starts(is_reversed).size)

        def extend(older: Numbered, was: Inherited) -> EdgeLists | ChangedEdgeLists | None:
            change = self._change(was, is_reversed)
            if change is None:
                return None
            size = max(self._starts(is_reversed).size, older.value.size)
            if not change.is_any and size == older.value.size:
                value: EdgeLists | ChangedEdgeLists = older.value
                return value
            found = changed_edge_lists(
                older.value, change.removed_edges, change.added, change.added_edges, size=size
            )
            is_large = is_many(len(found.pairs) + len(found.gone), len(found.base.ends))
            return found.joined() if is_large else found

        found: EdgeLists | ChangedEdgeLists = self._sized(
            name, is_reversed, self._numbered(name, make, extend)
        )
        return found

    def _numbered(
        self,
        name: str,
        make: Callable[[], _Value],
        extend: Callable[[Numbered, Inherited], _Value | None],
    ) -> Any:  # Any: a name has pieces of one kind
        """A piece that holds numbers of these very nodes."""
        numberings = self._numberings

        def kept(value: Sized) -> Numbered:
            ends = value if isinstance(value, Ends) else self.ends
            return Numbered(value, numberings, ends.highest)

        def extended(was: Inherited) -> Numbered | None:
            older: Numbered = was.value
            value = extend(older, was) if older.fits(numberings) else None
            return None if value is None else kept(value)

        found = self.rows.part(
            name,
            lambda: kept(make()),
            extend=extended,
            restore=lambda piece, _: numbered_from(piece),
        )
        if not found.fits(numberings):
            found = kept(make())
            self.rows.replace_part(name, found)
        return found.value

    def _sized(self, name: str, is_reversed: bool, value: Any) -> Any:  # Any: of either kind
        """A piece for exactly the nodes there are; kept, if it had to grow."""
        size = self._starts(is_reversed).size
        if value.size >= size:
            return value.sized(size)
        held: Numbered | None = self.rows.parts.peek(name)
        grown = larger(value, size)
        if held is not None and held.value is value:
            self.rows.parts.keep(name, Numbered(grown, held.numberings, held.highest))
        return grown

    def _change(self, was: Inherited, is_reversed: bool) -> _Change | None:
        """What changed since a piece was made; None if it is not known any more."""
        difference = self.rows.since(was)
        added, added_ends, edges = self._directed(difference.added, is_reversed)
        removed, removed_ends, _ = self._directed(difference.ended, is_reversed)
        if len(removed) and int(removed.min()) < 0:
            # The ends were read again, when these edges were gone already.
            return None
        return _Change(
            packed(added, added_ends), edges, packed(removed, removed_ends), difference.ended
        )

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
