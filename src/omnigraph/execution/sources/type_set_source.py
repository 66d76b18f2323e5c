"""Nodes of several types by one number: what a variable has that is bound to a set of types.

The number of a node is made of its number in its own type and of the place of that type in the set,
so that a source may go on giving numbers. Edges are those of the source below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import ResourceLimitError
from omnigraph.execution.sorted_arrays import NO_DENSE_IDS, NO_ROW_INDICES
from omnigraph.execution.sources.graph_source import (
    DenseIds,
    Edges,
    NeighbourEdges,
    Neighbours,
    Nodes,
    RowIndices,
    Source,
)
from omnigraph.query.tree_walk import map_children
from omnigraph.query.typed_tree import (
    BOOL,
    STRING,
    Constant,
    Expr,
    GuardTest,
    PropertyValue,
    SystemName,
    SystemValue,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.evaluator import Params, evaluate_constant, is_constant
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.type_sets import is_type_set, list_member_types

_NUMBERS_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TypeNumbering:
    """The numbers of the nodes of a set of types, or of one type by itself."""

    types: tuple[str, ...]

    def select(self, type_name: str, numbers: DenseIds) -> tuple[RowIndices | None, DenseIds]:
        """The places of the nodes of a type, None for all, and their numbers in that type."""
        if type_name not in self.types:
            return NO_ROW_INDICES, NO_DENSE_IDS
        if len(self.types) == 1:
            return None, numbers
        own, places = np.divmod(numbers, len(self.types))
        found = np.flatnonzero(places == self.types.index(type_name))
        return found, own.take(found)

    def encode(self, type_name: str, numbers: DenseIds) -> DenseIds:
        """The numbers of nodes of a type in the set."""
        count = len(self.types)
        if count == 1:
            return numbers
        if int(numbers.max(initial=0)) > _NUMBERS_MAX // count - 1:
            most = _NUMBERS_MAX // count
            hint = "bind fewer types"
            actual = int(numbers.max())
            raise ResourceLimitError("type_set_nodes", limit=most, actual=actual, hint=hint)
        found: DenseIds = (numbers * count + self.types.index(type_name)).astype(np.int32)
        return found


def numbering_of(type_name: str) -> TypeNumbering:
    """The numbering of a type, or of a set of them."""
    return TypeNumbering(list_member_types(type_name))


class TypeSetSource:
    """A source that also knows sets of node types."""

    def __init__(self, base: Source, catalog: Catalog) -> None:
        self.base = base
        self._catalog = catalog
        self._sets: dict[str, SetNodes] = {}

    def get_nodes(self, type_name: str) -> Nodes:
        """The nodes of a type, or of a set."""
        if not is_type_set(type_name):
            return self.base.get_nodes(type_name)
        found = self._sets.get(type_name)
        if found is None:
            types = [self._catalog.nodes[each] for each in list_member_types(type_name)]
            members = tuple(self.base.get_nodes(each.name) for each in types)
            made = SetNodes(self._catalog.nodes[type_name], tuple(types), members)
            found = self._sets.setdefault(type_name, made)
        return found

    def get_edges(self, type_name: str) -> Edges:
        """The edges of a type."""
        return self.base.get_edges(type_name)


@dataclass(frozen=True, slots=True)
class SetNodes:
    """The nodes of several types; `whole` has the properties of all of them."""

    whole: NodeType
    types: tuple[NodeType, ...]
    members: tuple[Nodes, ...]

    @property
    def numbering(self) -> TypeNumbering:
        """The numbers of their nodes."""
        return TypeNumbering(tuple(each.name for each in self.types))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(each.count for each in self.members)

    def fetch_types(self, at: DenseIds) -> pa.Array:
        """The names of their types."""
        places = np.mod(at, len(self.members))
        return pa.array(self.numbering.types, pa.utf8()).take(pa.array(places))

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids, of which two types may have the same."""
        return self._merge(at, pa.utf8(), lambda place, own: self.members[place].fetch_ids(own))

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their types do, and then as their ids do; within one call."""
        codes = compute_order_codes(self.fetch_ids(at)).astype(np.int64)
        first = np.mod(at, len(self.members)).astype(np.int64)
        ranks: npt.NDArray[np.int64] = first * (int(codes.max(initial=0)) + 1) + codes
        return ranks

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property; null where a type lacks it."""
        kind = arrow_type_of(self.whole.properties[name].type)

        def fetch(place: int, own: DenseIds) -> pa.Array:
            if name not in self.types[place].properties:
                return pa.nulls(len(own), kind)
            return flatten_chunks(self.members[place].fetch_values(name, own)).cast(kind)

        return self._merge(at, kind, fetch)

    def list_all(self) -> DenseIds:
        """Every node, ascending."""
        return self._join(each.list_all() for each in self.members)

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending."""
        return self._join(
            self._filter_member(place, conditions, params) for place in range(len(self.members))
        )

    def find(self, ids: pa.Array) -> NoReturn:
        """An id alone does not say which node it is."""
        raise AssertionError(f"{len(ids)} ids of {self.whole.name}")

    def fetch_row_ids(self, _: DenseIds) -> NoReturn:
        """A search reads one type."""
        raise AssertionError(f"{self.whole.name} has no rows")

    def find_by_row_ids(self, _: npt.NDArray[np.uint64]) -> NoReturn:
        """A search reads one type."""
        raise AssertionError(f"{self.whole.name} has no rows")

    def _filter_member(self, place: int, conditions: Sequence[Expr], params: Params) -> DenseIds:
        own_type = self.types[place]

        def specialize(expr: Expr) -> Expr:
            """What an expression is for a node of this type."""
            match expr:
                case SystemValue(name=SystemName.TYPE):
                    return Constant(own_type.name, STRING)
                case GuardTest(guards=guards):
                    own = (each.condition for each in guards if each.type_name == own_type.name)
                    return next(own, Constant(True, BOOL))
                case PropertyValue(property=name, type=kind) if name not in own_type.properties:
                    return Constant(None, kind)
                case _:
                    return map_children(expr, specialize)

        kept: list[Expr] = []
        for each in map(specialize, conditions):
            if not is_constant(each):
                kept.append(each)
            elif evaluate_constant(each, params) is not True:
                return NO_DENSE_IDS
        return self.members[place].filter_nodes(kept, params)

    def _join(self, parts: Iterable[DenseIds]) -> DenseIds:
        pairs = zip(self.numbering.types, parts, strict=True)
        together = np.concatenate([self.numbering.encode(name, each) for name, each in pairs])
        together.sort()
        return together

    def _merge(
        self, at: DenseIds, kind: pa.DataType, fetch: Callable[[int, DenseIds], pa.Array]
    ) -> pa.Array:
        """What each type has for its nodes, in the order in which they were asked for."""
        selected = [self.numbering.select(name, at) for name in self.numbering.types]
        parts = [
            flatten_chunks(fetch(place, own)).cast(kind) for place, (_, own) in enumerate(selected)
        ]
        places = np.concatenate(
            [np.empty(0, np.int64) if one is None else one for one, _ in selected]
        )
        order = np.empty(len(at), np.int64)
        order[places] = np.arange(len(at))
        return pa.concat_arrays(parts).take(pa.array(order))


def connect_ends(
    source: Source, edge_type: EdgeType, *, from_type: str, to_type: str
) -> Edges | SetEdges:
    """Edges as a traversal walks them between nodes of types or sets."""
    edges = source.get_edges(edge_type.name)
    if not is_type_set(from_type) and not is_type_set(to_type):
        return edges
    sizes = tuple(source.get_nodes(each).count for each in (from_type, to_type))
    return SetEdges(edges, edge_type, numbering_of(from_type), numbering_of(to_type), max(sizes))


@dataclass(frozen=True, slots=True)
class SetEdges:
    """Edges of one type between nodes that are numbered as those of sets."""

    edges: Edges
    edge_type: EdgeType
    start: TypeNumbering
    end: TypeNumbering
    nodes: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.edges.count

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        return self.edges.fetch_ids(at)

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do."""
        return self.edges.rank_ids(at)

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property."""
        return self.edges.fetch_values(name, at)

    def fetch_sources(self, at: DenseIds) -> DenseIds:
        """The nodes that edges come from, by the numbers of their type."""
        return self.edges.fetch_sources(at)

    def fetch_targets(self, at: DenseIds) -> DenseIds:
        """The nodes that edges lead to, by the numbers of their type."""
        return self.edges.fetch_targets(at)

    def expand_neighbours(self, nodes: DenseIds, *, is_reversed: bool) -> Neighbours:
        """The distinct nodes next to each given node, ordered by place, then by end."""
        places, own, reached = self._select(nodes, is_reversed=is_reversed)
        if not len(own):
            return Neighbours(NO_ROW_INDICES, NO_DENSE_IDS)
        found = self.edges.expand_neighbours(own, is_reversed=is_reversed)
        ends = self.end.encode(reached, found.ends)
        return Neighbours(_take_places(places, found.start_indices), ends)

    def expand_edges(self, nodes: DenseIds, *, is_reversed: bool) -> NeighbourEdges:
        """Every edge at each given node, ordered by place, then by end, then by edge."""
        places, own, reached = self._select(nodes, is_reversed=is_reversed)
        if not len(own):
            return NeighbourEdges(NO_ROW_INDICES, NO_DENSE_IDS, NO_DENSE_IDS)
        found = self.edges.expand_edges(own, is_reversed=is_reversed)
        ends = self.end.encode(reached, found.ends)
        return NeighbourEdges(_take_places(places, found.start_indices), ends, found.edges)

    def _select(
        self, nodes: DenseIds, *, is_reversed: bool
    ) -> tuple[RowIndices | None, DenseIds, str]:
        """The places and the numbers of nodes that edges leave, and the type that they lead to."""
        ends = (self.edge_type.source, self.edge_type.target)
        left, reached = ends[::-1] if is_reversed else ends
        if reached not in self.end.types:
            return NO_ROW_INDICES, NO_DENSE_IDS, reached
        return *self.start.select(left, nodes), reached


def _take_places(places: RowIndices | None, found: RowIndices) -> RowIndices:
    return found if places is None else places.take(found)
