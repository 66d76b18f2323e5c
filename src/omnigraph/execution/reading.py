"""One read under way: where it reads, what its variables are, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import arrow_type
from omnigraph.execution.exact import COMPARED, flat, numpy_of
from omnigraph.execution.expressions import Params, evaluate
from omnigraph.execution.numbers import distinct
from omnigraph.execution.order import ordered_codes
from omnigraph.execution.pushdown import conjuncts
from omnigraph.execution.search import searched
from omnigraph.execution.source import Entities, Numbers, Places, Source
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import (
    Compare,
    Expr,
    Prefix,
    PropertyValue,
    Substring,
    SystemName,
    SystemValue,
    TextMatch,
)
from omnigraph.query.walk import chain_of, subexpressions, variables_of

# From a text and a dimension to a vector.
Embedder: TypeAlias = Callable[[str, int], Sequence[float]]
Mask: TypeAlias = npt.NDArray[np.bool_]

# From so many rows on, telling nodes apart costs less than testing some of them again.
_DISTINCT_MIN = 4_096
# Rows whose texts are searched between two looks at the budget: each may take a microsecond.
_TEXT_ROWS = 2**15
_Field: TypeAlias = PropertyValue | SystemValue


@dataclass(frozen=True, slots=True)
class Reading:
    """What every operator of a read is given; the instant of the request is in `params`."""

    view: View
    source: Source
    params: Params
    budget: Budget
    embed: Embedder | None = None
    # The type of each node variable, and the types of each edge variable, of the plan and its
    # blocks; no two variables of a plan have the same name.
    nodes_of: Mapping[str, str] = field(default_factory=dict)
    edges_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def about(self, root: plans.Operator) -> Reading:
        """The same reading with the variables of a plan."""
        nodes: dict[str, str] = {}
        edges: dict[str, tuple[str, ...]] = {}
        for operator in _operators(root):
            match operator:
                case plans.Scan(variable=variable, type_name=type_name):
                    nodes[variable] = type_name
                case plans.Expand():
                    nodes[operator.source] = operator.source_type
                    nodes[operator.target] = operator.target_type
                    if operator.edge_variable is not None:
                        types = tuple(step.edge_type for step in operator.steps)
                        edges[operator.edge_variable] = types
                case _:
                    pass
        return replace(self, nodes_of=nodes, edges_of=edges)

    def rows(self, batch: Batch) -> BatchRows:
        """Rows as expressions see them."""
        return BatchRows(self, batch)

    def mask(self, batch: Batch, conditions: Iterable[Expr]) -> Mask:
        """Which rows satisfy all conditions."""
        mask = np.ones(batch.num_rows, np.bool_)
        if batch.num_rows:
            for condition in conjuncts(conditions):
                mask &= self._tested(batch, condition)
        return mask

    def _tested(self, batch: Batch, condition: Expr) -> Mask:
        if isinstance(condition, TextMatch):
            known = searched(condition, batch.nodes[condition.variable], self)
            if known is not None:
                return known
        names = variables_of(condition)
        if names and names <= batch.nodes.keys():
            if len(names) == 2:
                found = self._compared(batch, condition)
                if found is not None:
                    return found
            elif len(names) == 1 and batch.num_rows >= _DISTINCT_MIN:
                # The rows of large batches repeat their nodes many times.
                (name,) = names
                nodes, places = distinct(batch.nodes[name])
                return self._evaluated(Batch(len(nodes), {name: nodes}), condition).take(places)
        return self._evaluated(batch, condition)

    def _compared(self, batch: Batch, condition: Expr) -> Mask | None:
        """A comparison of two nodes, if there is a faster way than by the values at each row."""
        if not isinstance(condition, Compare):
            return None
        left, right, op = condition.left, condition.right, condition.op
        if not isinstance(left, _Field) or not isinstance(right, _Field):
            return None
        if self._identifies(left, right) and op in (CompareOp.EQ, CompareOp.NE):
            numbers = batch.nodes[left.variable], batch.nodes[right.variable]
            return np.equal(*numbers) if op is CompareOp.EQ else np.not_equal(*numbers)
        is_text = all(arrow_type(each.type) == pa.utf8() for each in (left, right))
        if not is_text or batch.num_rows < _DISTINCT_MIN:
            return None
        return self._compared_texts(batch, left, right, op)

    def _identifies(self, left: _Field, right: _Field) -> bool:
        """Whether two nodes are the same exactly if their fields are equal."""
        type_name = self.nodes_of[left.variable]
        if type_name != self.nodes_of[right.variable]:
            return False
        match left, right:
            case SystemValue(), SystemValue():
                return True
            case PropertyValue(property=name, type=kind), PropertyValue(property=other):
                is_key = self.view.catalog.nodes[type_name].key == (name,)
                # Two zeros are equal, but not the same key.
                return is_key and name == other and not pa.types.is_floating(arrow_type(kind))
            case _:
                return False

    def _compared_texts(self, batch: Batch, left: _Field, right: _Field, op: CompareOp) -> Mask:
        """Texts as integers: each distinct one is fetched once, and none is copied to a row."""
        parts: list[pa.Array] = []
        places: list[Places] = []
        for field_ in (left, right):
            nodes, at = distinct(batch.nodes[field_.variable])
            rows = self.rows(Batch(len(nodes), {field_.variable: nodes}))
            places.append(at + sum(map(len, parts)))
            parts.append(flat(evaluate(field_, rows, self.params)))
        texts = pa.concat_arrays(parts)
        if op in (CompareOp.EQ, CompareOp.NE):
            codes = numpy_of(texts.dictionary_encode().indices)
        else:
            codes = ordered_codes(texts)
        found: Mask = COMPARED[op](*(codes.take(at) for at in places))
        if texts.null_count:
            is_known = numpy_of(texts.is_valid())
            found &= is_known.take(places[0]) & is_known.take(places[1])
        return found

    def _evaluated(self, batch: Batch, condition: Expr) -> Mask:
        if batch.num_rows > _TEXT_ROWS and any(
            isinstance(part, Substring | Prefix) for part in subexpressions(condition)
        ):
            starts = range(0, batch.num_rows, _TEXT_ROWS)
            parts = (np.arange(at, min(at + _TEXT_ROWS, batch.num_rows)) for at in starts)
            return np.concatenate([self._evaluated(batch.take(each), condition) for each in parts])
        self.budget.check()
        found = evaluate(condition, self.rows(batch), self.params)
        if isinstance(found, pa.Scalar):
            return np.full(batch.num_rows, found.as_py() is True)
        mask: Mask = numpy_of(found)
        return mask


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch, whose values are fetched when an expression asks for them."""

    reading: Reading
    batch: Batch

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.batch.num_rows

    def property(self, variable: str, name: str) -> pa.Array:
        """The values of a property; that of a bound selection is united over its members."""
        numbers = self.batch.nodes.get(variable)
        if numbers is not None:
            nodes = self.reading.source.nodes(self.reading.nodes_of[variable])
            return nodes.values(name, numbers)
        return self._of_edges(variable, lambda _, edges, at: edges.values(name, at))

    def system(self, variable: str, name: SystemName) -> pa.Array:
        """The values of a system field."""
        numbers = self.batch.nodes.get(variable)
        if numbers is not None:
            return self.reading.source.nodes(self.reading.nodes_of[variable]).ids(numbers)
        match name:
            case SystemName.ID:
                return self._of_edges(variable, lambda _, edges, at: edges.ids(at))
            case SystemName.TYPE:
                bound = self.batch.edges[variable]
                if not bound.types:
                    return pa.array([], pa.utf8())
                return pa.array(bound.types, pa.utf8()).take(pa.array(bound.members))
            case SystemName.SRC:
                return self._of_edges(variable, self._sources)
            case SystemName.DST:
                return self._of_edges(variable, self._targets)

    def _sources(self, type_name: str, _: Entities, at: Numbers) -> pa.Array:
        source, edge_type = self.reading.source, self.reading.view.catalog.edges[type_name]
        return source.nodes(edge_type.source).ids(source.edges(type_name).sources(at))

    def _targets(self, type_name: str, _: Entities, at: Numbers) -> pa.Array:
        source, edge_type = self.reading.source, self.reading.view.catalog.edges[type_name]
        return source.nodes(edge_type.target).ids(source.edges(type_name).targets(at))

    def _of_edges(
        self, variable: str, values: Callable[[str, Entities, Numbers], pa.Array]
    ) -> pa.Array:
        bound = self.batch.edges[variable]
        source = self.reading.source
        if len(bound.types) == 1:
            return values(bound.types[0], source.edges(bound.types[0]), bound.numbers)
        if not bound.types:
            # A selection that fits no edge has no rows, and so no values to know the type of.
            return pa.nulls(0)
        return _united(bound, lambda name, at: values(name, source.edges(name), at))


def _united(bound: BoundEdges, values: Callable[[str, Numbers], pa.Array]) -> pa.Array:
    """The values of each member's edges, put back in the order of the rows."""
    places = [np.flatnonzero(bound.members == member) for member in range(len(bound.types))]
    parts = [
        flat(values(name, bound.numbers.take(at)))
        for name, at in zip(bound.types, places, strict=True)
    ]
    order = np.empty(len(bound.members), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(order))


def _operators(root: plans.Operator) -> Iterator[plans.Operator]:
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, plans.Exists | plans.CompareBlock):
            yield from _operators(operator.block)
