"""One read under way: where it reads, what its variables are, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch, BoundEdges, find_bound_rows
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.search import FieldRef, search_nodes
from omnigraph.execution.sorted_arrays import find_distinct
from omnigraph.execution.sources.graph_source import DenseIds, Entities, Nodes, RowIndices, Source
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.execution.sources.topology.topology_filter import compare_property
from omnigraph.execution.sources.type_set_source import SetNodes
from omnigraph.query.ast import CompareOp
from omnigraph.query.tree_walk import iter_subexpressions, variables_of
from omnigraph.query.typed_tree import (
    GUARDED,
    Compare,
    Expr,
    GuardTest,
    Prefix,
    PropertyValue,
    Substring,
    SystemName,
    SystemValue,
    TextMatch,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import NUMPY_COMPARISONS, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import Params, evaluate
from omnigraph.rows.row_filter import Mask, compute_mask, evaluate_truth
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.rows.view import View
from omnigraph.schema.type_sets import is_type_set

# From a text and a dimension to a vector.
Embedder: TypeAlias = Callable[[str, int], Sequence[float]]

# From so many rows on, finding distinct nodes costs less than testing some of them again.
_DISTINCT_MIN = 4_096
# Rows whose texts are in memory at a time: one array of them has 32-bit offsets.
_TEXT_ROWS = 2**15
# A comparison that is tested by numbers has two nodes.
_SIDES = 2
_Field: TypeAlias = PropertyValue | SystemValue


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """What every operator of a read is given; the instant of the request is in `params`."""

    view: View
    source: Source
    params: Params
    budget: Budget
    embed: Embedder | None = None
    # The types of the variables of the plan and its blocks.
    nodes_of: Mapping[str, str] = field(default_factory=dict)
    edges_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Those that a row may lack, which it then has the number -1 for.
    nullable: frozenset[str] = frozenset()

    def rows_of(self, batch: Batch) -> BatchRows:
        """Rows as expressions see them."""
        return BatchRows(self, batch)

    def evaluate_mask(self, batch: Batch, conditions: Iterable[Expr]) -> Mask:
        """Which rows satisfy all conditions."""
        return compute_mask(conditions, BatchRows(self, batch), self.params)


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch, whose values are fetched when an expression asks for them."""

    context: ExecutionContext
    batch: Batch

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.batch.num_rows

    def get_property(self, variable: str, name: str) -> pa.Array:
        """The values of a property; that of a bound selection is united over its members."""
        if (known := self._take_bound(variable)) is not None:
            rows, places = known
            return flatten_chunks(rows.get_property(variable, name)).take(places)
        numbers = self.batch.nodes.get(variable)
        if numbers is not None:
            nodes = self.context.source.get_nodes(self.context.nodes_of[variable])
            return nodes.fetch_values(name, numbers)
        return self._fetch_edge_values(variable, lambda _, edges, at: edges.fetch_values(name, at))

    def get_system_field(self, variable: str, name: SystemName) -> pa.Array:
        """The values of a system field."""
        if (known := self._take_bound(variable)) is not None:
            rows, places = known
            return flatten_chunks(rows.get_system_field(variable, name)).take(places)
        numbers = self.batch.nodes.get(variable)
        if numbers is not None:
            nodes = self.context.source.get_nodes(self.context.nodes_of[variable])
            if name is SystemName.TYPE:
                return self._fetch_types(variable, nodes, numbers)
            return nodes.fetch_ids(numbers)
        match name:
            case SystemName.ID:
                return self._fetch_edge_values(variable, lambda _, edges, at: edges.fetch_ids(at))
            case SystemName.TYPE:
                bound = self.batch.edges[variable]
                if not bound.types:
                    return pa.array([], pa.utf8())
                return pa.array(bound.types, pa.utf8()).take(pa.array(bound.type_indices))
            case SystemName.SRC:
                return self._fetch_edge_values(variable, self._fetch_source_ids)
            case SystemName.DST:
                return self._fetch_edge_values(variable, self._fetch_target_ids)

    def _fetch_types(self, variable: str, nodes: Nodes, numbers: DenseIds) -> pa.Array:
        """The names of the types of nodes."""
        if isinstance(nodes, SetNodes):
            return nodes.fetch_types(numbers)
        return pa.array([self.context.nodes_of[variable]] * min(len(numbers), 1), pa.utf8()).take(
            pa.array(np.zeros(len(numbers), np.int64))
        )

    def get_column(self, name: str) -> pa.Array:
        """The values of a variable that is bound to values."""
        return self.batch.values[name]

    def search_texts(self, match: TextMatch, params: Params) -> pa.Array | None:
        """Where texts satisfy a predicate, by the index of their field; None without one."""
        if (known := self._take_bound(match.variable)) is not None:
            rows, places = known
            found = rows.search_texts(match, params)
            return None if found is None else found.take(places)
        numbers = self.batch.nodes.get(match.variable)
        if numbers is None:
            return None
        type_name = self.context.nodes_of[match.variable]
        asked = FieldRef(self.context.view, type_name, match.property)
        nodes = self.context.source.get_nodes(type_name)
        return search_nodes(asked, match, params, nodes, numbers)

    def _take_bound(self, variable: str) -> tuple[BatchRows, pa.Array] | None:
        """The rows that have a variable, and for each row its place among them, or null."""
        if variable not in self.context.nullable:
            return None
        is_bound = find_bound_rows(self.batch, variable)
        if is_bound.all():
            return None
        numbers = self.batch.nodes.get(variable)
        places = np.flatnonzero(is_bound)
        own = Batch(len(places), {} if numbers is None else {variable: numbers.take(places)})
        if numbers is None:
            own = replace(own, edges={variable: self.batch.edges[variable].take(places)})
        at = np.cumsum(is_bound) - 1
        return BatchRows(self.context, own), pa.array(at, mask=~is_bound)

    def take(self, places: RowIndices) -> BatchRows:
        """Some of the rows."""
        return BatchRows(self.context, self.batch.take(places))

    def evaluate_directly(self, condition: Expr, params: Params) -> Mask | None:
        """Where a condition about nodes is true, if there is a faster way than values by row."""
        self.context.budget.check_interrupts()
        if isinstance(condition, GuardTest):
            return self._test_guards(condition)
        names = variables_of(condition)
        if names & self.context.nullable:
            return self._evaluate_parts(condition, params)
        if names and names <= self.batch.nodes.keys():
            found = None
            if len(names) == 1:
                (name,) = names
                found = self._evaluate_nodes(name, condition, params)
            elif isinstance(condition, Compare) and len(names) == _SIDES:
                found = self._compare_nodes(condition)
            if found is not None:
                return found
        return self._evaluate_parts(condition, params)

    def _test_guards(self, test: GuardTest) -> Mask:
        """Which nodes of several types are seen, each by the guard of its own type."""
        numbers = self.batch.nodes[test.variable]
        nodes = self.context.source.get_nodes(self.context.nodes_of[test.variable])
        assert isinstance(nodes, SetNodes)
        seen = np.ones(len(numbers), np.bool_)
        for guard in test.guards:
            places, own = nodes.numbering.select(guard.type_name, numbers)
            inside = replace(
                self.context, nodes_of={GUARDED: guard.type_name}, nullable=frozenset()
            )
            mask = inside.evaluate_mask(Batch(len(own), {GUARDED: own}), [guard.condition])
            seen[slice(None) if places is None else places] = mask
        return seen

    def _evaluate_nodes(self, variable: str, condition: Expr, params: Params) -> Mask | None:
        numbers, type_name = self.batch.nodes[variable], self.context.nodes_of[variable]
        nodes = self.context.source.get_nodes(type_name)
        found = None
        if isinstance(nodes, DenseEntities):
            found = compare_property(nodes, condition, params, numbers)
        if found is not None or self.num_rows < _DISTINCT_MIN:
            return found
        # The rows of large batches repeat their nodes many times.
        distinct, places = find_distinct(numbers)
        rows = BatchRows(self.context, Batch(len(distinct), {variable: distinct}))
        found = rows._evaluate_parts(condition, params)
        return (evaluate_truth(condition, rows, params) if found is None else found).take(places)

    def _evaluate_parts(self, condition: Expr, params: Params) -> Mask | None:
        """Where a condition about letters is true, so many rows at a time; None if all at once."""
        if self.num_rows <= _TEXT_ROWS or not any(
            isinstance(part, Substring | Prefix) for part in iter_subexpressions(condition)
        ):
            return None
        starts = range(0, self.num_rows, _TEXT_ROWS)
        parts = (np.arange(at, min(at + _TEXT_ROWS, self.num_rows)) for at in starts)
        return np.concatenate(
            [evaluate_truth(condition, self.take(each), params) for each in parts]
        )

    def _compare_nodes(self, condition: Compare) -> Mask | None:
        """A comparison of two nodes by their numbers, or by codes of their texts."""
        left, right, op = condition.left, condition.right, condition.op
        if not isinstance(left, _Field) or not isinstance(right, _Field):
            return None
        nodes = self.batch.nodes
        if self._can_compare_ids(left, right) and op in (CompareOp.EQ, CompareOp.NE):
            return NUMPY_COMPARISONS[op](nodes[left.variable], nodes[right.variable])
        is_text = all(arrow_type_of(each.type) == pa.utf8() for each in (left, right))
        if not is_text or self.num_rows < _DISTINCT_MIN:
            return None
        return self._compare_texts(left, right, op)

    def _can_compare_ids(self, left: _Field, right: _Field) -> bool:
        """Whether two nodes are the same exactly if their fields are equal."""
        type_name = self.context.nodes_of[left.variable]
        if type_name != self.context.nodes_of[right.variable] or is_type_set(type_name):
            return False
        match left, right:
            case SystemValue(), SystemValue():
                return True
            case PropertyValue(property=name, type=kind), PropertyValue(property=other):
                node = self.context.view.catalog.nodes.get(type_name)
                is_key = node is not None and node.key == (name,)
                # Two zeros are equal, but not the same key.
                return is_key and name == other and not pa.types.is_floating(arrow_type_of(kind))
            case _:
                return False

    def _compare_texts(self, left: _Field, right: _Field, op: CompareOp) -> Mask:
        """Texts as integers: each distinct one is fetched once, and none is copied to a row."""
        parts: list[pa.Array] = []
        places: list[RowIndices] = []
        for field_ in (left, right):
            nodes, at = find_distinct(self.batch.nodes[field_.variable])
            rows = BatchRows(self.context, Batch(len(nodes), {field_.variable: nodes}))
            places.append(at + sum(map(len, parts)))
            parts.append(flatten_chunks(evaluate(field_, rows, self.context.params)))
        texts = pa.concat_arrays(parts)
        if op in (CompareOp.EQ, CompareOp.NE):
            codes = to_numpy(texts.dictionary_encode().indices)
        else:
            codes = compute_order_codes(texts)
        found: Mask = NUMPY_COMPARISONS[op](*(codes.take(at) for at in places))
        if texts.null_count:
            is_known = to_numpy(texts.is_valid())
            found &= is_known.take(places[0]) & is_known.take(places[1])
        return found

    def _fetch_source_ids(self, type_name: str, _: Entities, at: DenseIds) -> pa.Array:
        source, edge_type = self.context.source, self.context.view.catalog.edges[type_name]
        return source.get_nodes(edge_type.source).fetch_ids(
            source.get_edges(type_name).fetch_sources(at)
        )

    def _fetch_target_ids(self, type_name: str, _: Entities, at: DenseIds) -> pa.Array:
        source, edge_type = self.context.source, self.context.view.catalog.edges[type_name]
        return source.get_nodes(edge_type.target).fetch_ids(
            source.get_edges(type_name).fetch_targets(at)
        )

    def _fetch_edge_values(
        self, variable: str, values: Callable[[str, Entities, DenseIds], pa.Array]
    ) -> pa.Array:
        bound = self.batch.edges[variable]
        source = self.context.source
        if len(bound.types) == 1:
            return values(bound.types[0], source.get_edges(bound.types[0]), bound.dense_ids)
        if not bound.types:
            # A selection that fits no edge has no rows, and so no values to know the type of.
            return pa.nulls(0)
        return _merge_type_values(bound, lambda name, at: values(name, source.get_edges(name), at))


def _merge_type_values(bound: BoundEdges, values: Callable[[str, DenseIds], pa.Array]) -> pa.Array:
    """The values of each member's edges, put back in the order of the rows."""
    places = [np.flatnonzero(bound.type_indices == member) for member in range(len(bound.types))]
    parts = [
        flatten_chunks(values(name, bound.dense_ids.take(at)))
        for name, at in zip(bound.types, places, strict=True)
    ]
    order = np.empty(len(bound.type_indices), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(order))
