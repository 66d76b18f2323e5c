"""The graph that paths walk: nodes of several types in one number space.

A state is an integer: a place (of a pair of ends, or of a start), the type of a node, and the node.
States of one place follow each other when they are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.node_guard import build_node_guard
from omnigraph.execution.operators.traversal_hops import PAIR_BYTES, DirectedEdges
from omnigraph.execution.sorted_arrays import is_among, sort_distinct_pairs, split_by_counts
from omnigraph.execution.sources.graph_source import (
    DenseIds,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)
from omnigraph.query.logical_plan import PathExpand
from omnigraph.query.typed_tree import PathPart
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.path_columns import select_path_part, split_lists

# A place, a type and a node in 64 bits.
States: TypeAlias = npt.NDArray[np.int64]

_NODE_BITS: Final = 32
_NODE_MASK: Final = np.int64(2**_NODE_BITS - 1)
# Neighbours between two looks at the budget: about 20 milliseconds.
_NEIGHBOURS_AT_ONCE: Final = 2**18


class Walked(NamedTuple):
    """Edges from states: the place of the state in those given, the state there, and the edge."""

    parents: RowIndices
    states: States
    types: npt.NDArray[np.int16]
    edges: DenseIds

    def take(self, at: RowIndices) -> Walked:
        """Some of the edges, in the order of the places."""
        return Walked(
            self.parents.take(at), self.states.take(at), self.types.take(at), self.edges.take(at)
        )


# Which of some edges to keep.
Keep: TypeAlias = Callable[[Walked], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Way:
    """Edges of one type in one direction, with the places of the types among the sorted ones."""

    edge_type: int
    source: int
    target: int
    ahead: DirectedEdges
    back: DirectedEdges


class PathWalks:
    """The steps of a path from states, along its direction or against it."""

    def __init__(self, op: PathExpand, context: ExecutionContext) -> None:
        self.budget = context.budget
        self.node_types = op.type.node_types
        self.edge_types = op.type.edge_types
        self._guards = [build_node_guard(context, name, op.guards) for name in self.node_types]
        self._edges = [context.source.get_edges(name) for name in self.edge_types]
        self._ways = [
            _Way(
                member := self.edge_types.index(step.edge_type),
                self.node_types.index(step.source_type),
                self.node_types.index(step.target_type),
                DirectedEdges(member, self._edges[member], step.is_reversed, step.is_return),
                DirectedEdges(member, self._edges[member], not step.is_reversed, step.is_return),
            )
            for step in op.steps
        ]

    # ---- states ----

    def make_states(self, places: RowIndices, type_name: str, nodes: DenseIds) -> States:
        """Nodes of one type as states."""
        return self._pack(places, self.node_types.index(type_name), nodes)

    def _pack(self, places: RowIndices, code: int, nodes: DenseIds) -> States:
        states: States = (places * len(self.node_types) + code) << _NODE_BITS
        states |= nodes
        return states

    def places_of(self, states: States) -> RowIndices:
        """The places of states."""
        places: RowIndices = (states >> _NODE_BITS) // len(self.node_types)
        return places

    def move_states(self, states: States, places: RowIndices) -> States:
        """The same nodes at other places."""
        count = len(self.node_types)
        moved: States = states + (((places - self.places_of(states)) * count) << _NODE_BITS)
        return moved

    def nodes_of(self, states: States) -> npt.NDArray[np.int64]:
        """The type and the number of each node in one integer."""
        nodes: States = states % (len(self.node_types) << _NODE_BITS)
        return nodes

    def numbers_of(self, states: States) -> DenseIds:
        """The number of each node in its type."""
        numbers: DenseIds = (states & _NODE_MASK).astype(np.int32)
        return numbers

    def are_of_type(self, states: States, type_name: str) -> npt.NDArray[np.bool_]:
        """Which states are nodes of a type."""
        are_of: npt.NDArray[np.bool_] = self._codes_of(states) == self.node_types.index(type_name)
        return are_of

    def _codes_of(self, states: States) -> npt.NDArray[np.int64]:
        codes: States = (states >> _NODE_BITS) % len(self.node_types)
        return codes

    # ---- steps ----

    def expand_states(self, states: States, *, is_backwards: bool = False) -> States:
        """The distinct states next to some, ascending."""
        parts: list[States] = []
        for at, way, edges in self._iter_parts(states, is_backwards):
            nodes = self.numbers_of(states.take(at))
            found = edges.edges.expand_neighbours(nodes, is_reversed=edges.is_reversed)
            other = way.source if is_backwards else way.target
            if (guard := self._guards[other]) is not None:
                seen = guard.evaluate_mask(found.ends)
                found = Neighbours(found.start_indices[seen], found.ends[seen])
            self._spend(len(found.ends), sum(map(len, parts)))
            places = self.places_of(states.take(at)).take(found.start_indices)
            parts.append(sort_distinct_pairs(self._pack(places, other, found.ends)))
        if not parts:
            return np.zeros(0, np.int64)
        return parts[0] if len(parts) == 1 else sort_distinct_pairs(np.concatenate(parts))

    def expand_unseen(self, states: States, seen: States, *, is_backwards: bool = False) -> States:
        """The states next to some that are not among those seen, which are ascending."""
        found = self.expand_states(states, is_backwards=is_backwards)
        return found[~is_among(found, seen)]

    def expand_edges(self, states: States, keep: Keep) -> Walked:
        """The edges ahead of each state that are to be kept; a loop once."""
        parts: list[Walked] = []
        held = 0
        for at, way, edges in self._iter_parts(states, is_backwards=False):
            nodes = self.numbers_of(states.take(at))
            found = edges.edges.expand_edges(nodes, is_reversed=edges.is_reversed)
            if (guard := self._guards[way.target]) is not None:
                seen = guard.evaluate_mask(found.ends)
                found = NeighbourEdges(
                    found.start_indices[seen], found.ends[seen], found.edges[seen]
                )
            self._spend(len(found.ends), held)
            parents = at.take(found.start_indices)
            if edges.is_return:
                is_new = found.ends != self.numbers_of(states.take(parents))
                parents = parents[is_new]
                found = type(found)(*(each[is_new] for each in found))
            places = self.places_of(states.take(parents))
            ahead = self._pack(places, way.target, found.ends)
            types = np.full(len(parents), way.edge_type, np.int16)
            walked = Walked(parents, ahead, types, found.edges)
            # Edges are left out a part at a time, so that most of them are never held.
            parts.append(walked.take(np.flatnonzero(keep(walked))))
            held += len(parts[-1].edges)
        if not parts:
            nothing = np.zeros(0, np.int64)
            return Walked(nothing, nothing, np.zeros(0, np.int16), np.zeros(0, np.int32))
        return Walked(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def choose_edges(self, walked: Walked, *, is_all: bool) -> Walked:
        """Edges by the state they leave from, then by type and id; or the first of each."""
        order = self._rank_edges(walked)
        if not is_all:
            parents = walked.parents.take(order)
            order = order[np.append(True, parents[1:] != parents[:-1])[: len(order)]]
        return walked.take(order)

    def _rank_edges(self, walked: Walked) -> RowIndices:
        ranks = np.zeros(len(walked.edges), np.int64)
        for code, edges in enumerate(self._edges):
            at = np.flatnonzero(walked.types == code)
            ranks[at] = edges.rank_ids(walked.edges.take(at))
        order: RowIndices = np.lexsort((ranks, walked.types, walked.parents))
        return order

    def list_edge_ranks(self, lists: pa.ListArray) -> tuple[RowIndices, RowIndices]:
        """The edges of paths as integers that compare by type and id, and how many each has."""
        items, lengths = split_lists(flatten_chunks(select_path_part(lists, PathPart.EDGES)))
        types, edges = items >> _NODE_BITS, self.numbers_of(items)
        ranks = np.zeros(len(items), np.int64)
        for code, known in enumerate(self._edges):
            at = np.flatnonzero(types == code)
            ranks[at] = known.rank_ids(edges.take(at))
        return (types << _NODE_BITS) | ranks, lengths

    def _iter_parts(
        self, states: States, is_backwards: bool
    ) -> Iterator[tuple[RowIndices, _Way, DirectedEdges]]:
        """States of one type with a way from it, so many that not too much is found at once."""
        codes = self._codes_of(states)
        for way in self._ways:
            code = way.target if is_backwards else way.source
            edges = way.back if is_backwards else way.ahead
            at = np.flatnonzero(codes == code)
            counts = edges.count_neighbours(self.numbers_of(states.take(at)))
            for first, last in split_by_counts(counts, len(at), _NEIGHBOURS_AT_ONCE):
                self.budget.check_interrupts()
                yield at[first:last], way, edges

    def _spend(self, edges: int, held: int) -> None:
        self.budget.require_memory(PAIR_BYTES * (edges + held))
        self.budget.spend_path_work(edges)
