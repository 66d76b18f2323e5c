"""The edges of one type, whole in memory: neighbours in both directions, and every edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from omnigraph.execution.sources.graph_source import DenseIds, NeighbourEdges, Neighbours
from omnigraph.execution.sources.topology.adjacency_lists import (
    Adjacency,
    EdgeLists,
    Pairs,
    PlainAdjacency,
    build_adjacency,
    build_edge_lists,
    pack_pairs,
)
from omnigraph.execution.sources.topology.cache_files import CacheBlock
from omnigraph.execution.sources.topology.changed_adjacency import (
    ChangedAdjacency,
    ChangedEdgeLists,
    change_adjacency,
    change_edge_lists,
    extend_nodes,
)
from omnigraph.execution.sources.topology.edge_endpoints import (
    EdgeEndpoints,
    endpoints_of,
    extend_endpoints,
    read_endpoints,
)
from omnigraph.execution.sources.topology.entity_numbering import Numberings, decode_numbering
from omnigraph.execution.sources.topology.memory_cache import Sized
from omnigraph.execution.sources.topology.text_arrays import ChainedIndex
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.execution.sources.topology.topology_nodes import DenseNodes
from omnigraph.execution.sources.topology.topology_rows import InheritedEntry

# More changes than this share of the edges, but never fewer than some, are put into place.
CHANGES_SHARE_MAX: Final = 0.01
CHANGES_MIN: Final = 1_024
_Value = TypeVar("_Value", bound=Sized)


@dataclass(frozen=True, slots=True)
class _EdgeChange:
    """The edges that were added and removed since a piece was made, in one direction."""

    added: Pairs
    added_edges: DenseIds
    removed: Pairs
    removed_edges: DenseIds

    @property
    def is_any(self) -> bool:
        """Whether there are any."""
        return bool(len(self.added) or len(self.removed))


def are_many_changes(changes: int, edges: int) -> bool:
    """Whether changes are better put into place."""
    return changes > max(CHANGES_MIN, CHANGES_SHARE_MAX * edges)


@dataclass(frozen=True)
class DenseEdges(DenseEntities):
    """Edges by number; `is_reversed` walks them from target to source."""

    source_nodes: DenseNodes
    target_nodes: DenseNodes

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        """The distinct nodes next to each given node, ordered by place, then by end."""
        return self.get_adjacency(is_reversed).expand_neighbours(nodes)

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""
        return self.get_edge_lists(is_reversed).expand_edges(nodes)

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        """The nodes that edges come from."""
        return self.endpoints.sources.take(at)

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        """The nodes that edges lead to."""
        return self.endpoints.targets.take(at)

    def get_adjacency(self, is_reversed: bool) -> Adjacency:
        """The distinct neighbours of every node."""
        name = "in" if is_reversed else "out"
        return self._get_cached(name, lambda: self._make_adjacency(name, is_reversed))

    def get_edge_lists(self, is_reversed: bool) -> EdgeLists | ChangedEdgeLists:
        """The edges at every node."""
        name = "in.edges" if is_reversed else "out.edges"
        return self._get_cached(name, lambda: self._make_edge_lists(name, is_reversed))

    @property
    def endpoints(self) -> EdgeEndpoints:
        """The nodes at both ends of each edge."""

        def indexes() -> tuple[ChainedIndex, ChainedIndex]:
            return self.source_nodes.id_index, self.target_nodes.id_index

        def extend(older: NumberedEntry, was: InheritedEntry) -> EdgeEndpoints:
            ends: EdgeEndpoints = older.value
            if self.size == was.size:
                return ends
            return extend_endpoints(ends, self.rows, *indexes(), was=was)

        found: EdgeEndpoints = self._get_numbered(
            "ends", lambda: read_endpoints(self.rows, *indexes()), extend
        )
        return found

    # ---- pieces ----

    def _make_adjacency(self, name: str, is_reversed: bool) -> Adjacency:
        def make() -> PlainAdjacency:
            starts, ends, _ = self._fetch_directed(self.list_all(), is_reversed)
            return build_adjacency(starts, ends, self._get_start_nodes(is_reversed).size)

        def extend(older: NumberedEntry, was: InheritedEntry) -> Adjacency | None:
            change = self._find_change(was, is_reversed)
            if change is None:
                return None
            size = max(self._get_start_nodes(is_reversed).size, older.value.size)
            if not change.is_any and size == older.value.size:
                value: Adjacency = older.value
                return value
            found = change_adjacency(older.value, change.removed, change.added, size=size)
            is_large = are_many_changes(len(found.pairs), len(found.base.ends))
            return found.merge_changes() if is_large else found

        found: Adjacency = self._fit_size(name, is_reversed, self._get_numbered(name, make, extend))
        return found

    def _make_edge_lists(self, name: str, is_reversed: bool) -> EdgeLists | ChangedEdgeLists:
        def make() -> EdgeLists:
            starts, ends, at = self._fetch_directed(self.list_all(), is_reversed)
            return build_edge_lists(starts, ends, at, size=self._get_start_nodes(is_reversed).size)

        def extend(
            older: NumberedEntry, was: InheritedEntry
        ) -> EdgeLists | ChangedEdgeLists | None:
            change = self._find_change(was, is_reversed)
            if change is None:
                return None
            size = max(self._get_start_nodes(is_reversed).size, older.value.size)
            if not change.is_any and size == older.value.size:
                value: EdgeLists | ChangedEdgeLists = older.value
                return value
            found = change_edge_lists(
                older.value, change.removed_edges, change.added, change.added_edges, size=size
            )
            is_large = are_many_changes(len(found.pairs) + len(found.gone), len(found.base.ends))
            return found.merge_changes() if is_large else found

        found: EdgeLists | ChangedEdgeLists = self._fit_size(
            name, is_reversed, self._get_numbered(name, make, extend)
        )
        return found

    def _get_numbered(
        self,
        name: str,
        make: Callable[[], _Value],
        extend: Callable[[NumberedEntry, InheritedEntry], _Value | None],
    ) -> Any:  # Any: a name has pieces of one kind
        """A piece that holds numbers of these very nodes."""
        numberings = self._numberings

        def kept(value: Sized) -> NumberedEntry:
            ends = value if isinstance(value, EdgeEndpoints) else self.endpoints
            return NumberedEntry(value, numberings, ends.highest)

        def extended(was: InheritedEntry) -> NumberedEntry | None:
            older: NumberedEntry = was.value
            value = extend(older, was) if older.fits(numberings) else None
            return None if value is None else kept(value)

        found = self.rows.get_or_make(
            name,
            lambda: kept(make()),
            extend=extended,
            restore=lambda piece, _: decode_numbered(piece),
        )
        if not found.fits(numberings):
            found = kept(make())
            self.rows.replace_entry(name, found)
        return found.value

    def _fit_size(self, name: str, is_reversed: bool, value: Any) -> Any:  # Any: of either kind
        """A piece for exactly the nodes there are; kept, if it had to grow."""
        size = self._get_start_nodes(is_reversed).size
        if value.size >= size:
            return value.with_size(size)
        held: NumberedEntry | None = self.rows.parts.peek(name)
        grown = extend_nodes(value, size)
        if held is not None and held.value is value:
            self.rows.parts.keep(name, NumberedEntry(grown, held.numberings, held.highest))
        return grown

    def _find_change(self, was: InheritedEntry, is_reversed: bool) -> _EdgeChange | None:
        """What changed since a piece was made; None if it is not known any more."""
        difference = self.rows.find_difference(was)
        added, added_ends, edges = self._fetch_directed(difference.added, is_reversed)
        removed, removed_ends, _ = self._fetch_directed(difference.ended, is_reversed)
        if len(removed) and int(removed.min()) < 0:
            # The ends were read again, when these edges were gone already.
            return None
        return _EdgeChange(
            pack_pairs(added, added_ends),
            edges,
            pack_pairs(removed, removed_ends),
            difference.ended,
        )

    def _fetch_directed(
        self, at: DenseIds, is_reversed: bool
    ) -> tuple[DenseIds, DenseIds, DenseIds]:
        """Where some edges start and end, and those edges."""
        ends = self.endpoints
        starts, stops = ends.sources, ends.targets
        if is_reversed:
            starts, stops = stops, starts
        if len(at) == len(starts):
            return starts, stops, at
        return starts.take(at), stops.take(at), at

    def _get_start_nodes(self, is_reversed: bool) -> DenseNodes:
        return self.target_nodes if is_reversed else self.source_nodes

    @property
    def _numberings(self) -> Numberings:
        return self.source_nodes.rows.numbering, self.target_nodes.rows.numbering


@dataclass(frozen=True, slots=True)
class NumberedEntry:
    """A piece that holds numbers of nodes: who gave them out, and the highest of them."""

    value: Any  # Any: ends, an adjacency or edge lists
    numberings: Numberings
    highest: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.value.nbytes)

    def fits(self, numberings: Numberings) -> bool:
        """Whether the numbers mean the same nodes in other numberings."""
        return self.numberings == numberings or all(
            ours.count_agreed(theirs) > highest
            for ours, theirs, highest in zip(self.numberings, numberings, self.highest, strict=True)
        )

    def to_block(self) -> CacheBlock | None:
        """The same as arrays, with all changes in place."""
        sources, targets = (list(each.segments) for each in self.numberings)
        notes = {"sources": sources, "targets": targets, "highest": list(self.highest)}
        value = self.value
        if isinstance(value, ChangedAdjacency | ChangedEdgeLists):
            value = value.merge_changes()
        match value:
            case EdgeEndpoints() as ends:
                return CacheBlock({"sources": ends.sources, "targets": ends.targets}, notes)
            case PlainAdjacency() as found:
                arrays = {"offsets": found.offsets, "ends": found.ends, "repeats": found.repeats}
                return CacheBlock(arrays, notes)
            case EdgeLists() as lists:
                arrays = {"offsets": lists.offsets, "ends": lists.ends, "edges": lists.edges}
                return CacheBlock(arrays, notes)
            case _:
                return None


def decode_numbered(piece: CacheBlock) -> NumberedEntry:
    """The ends, the adjacency or the edge lists in a piece."""
    arrays, notes = piece.arrays, piece.metadata
    numberings = (decode_numbering(notes["sources"]), decode_numbering(notes["targets"]))
    first, second = notes["highest"]
    highest = (int(first), int(second))
    value: EdgeEndpoints | EdgeLists | PlainAdjacency
    if "sources" in arrays:
        value = endpoints_of(arrays["sources"], arrays["targets"], highest)
    elif "edges" in arrays:
        value = EdgeLists(arrays["offsets"], arrays["ends"], arrays["edges"])
    else:
        value = PlainAdjacency(arrays["offsets"], arrays["ends"], arrays["repeats"])
    return NumberedEntry(value, numberings, highest)
