"""Pieces that hold numbers of nodes: who gave those out, and which edges they were made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.execution.topology.adjacency import EdgeLists, PlainAdjacency
from omnigraph.execution.topology.changed import ChangedAdjacency, ChangedEdgeLists
from omnigraph.execution.topology.ends import EdgeEndpoints, endpoints_of
from omnigraph.execution.topology.numbering import Numberings, decode_numbering
from omnigraph.execution.topology.piece import CacheBlock


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
