"""How many nodes and edges there are: what the cost of an order is estimated from."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.optimizer.pattern_graph import Link, Variable
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import Compare, Expr, Member
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.type_sets import is_type_set

# What is left of a type by a condition whose share is not counted.
_EQUAL_SHARE: Final = 0.01
_OTHER_SHARE: Final = 0.3
_BLOCK_SHARE: Final = 0.5
TEST_SHARE: Final = 0.3


Degrees: TypeAlias = npt.NDArray[np.int32]
# What distinguishes traversals over different edges.
_Steps: TypeAlias = tuple[tuple[EdgeStep, ...], bool, int]


class Statistics:
    """Counts of one snapshot; those of a topology are exact, also where there are conditions."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._found: dict[str, float] = {}
        self._degrees: dict[_Steps, Degrees | None] = {}
        self._affinities: dict[tuple[_Steps, _Steps], float] = {}

    def count_nodes(self, type_name: str) -> int:
        """How many nodes of a type there are, and at least one."""
        return max(self._context.source.get_nodes(type_name).count, 1)

    def count_edges(self, link: Link) -> int:
        """How many edges a traversal is about."""
        source = self._context.source
        return sum(source.get_edges(step.edge_type).count for step in link.expand.steps)

    def estimate_matches(self, variable: Variable) -> float:
        """How many nodes satisfy what is about a variable alone."""
        known = self._found.get(variable.name)
        if known is None:
            # At least one: a plan outlives the parameters that found nothing.
            known = max(
                self._estimate_satisfying(variable) * _BLOCK_SHARE ** len(variable.blocks), 1.0
            )
            self._found[variable.name] = known
        return known

    def estimate_share(self, variable: Variable) -> float:
        """The part of a type that satisfies what is about a variable alone."""
        return min(self.estimate_matches(variable) / self.count_nodes(variable.type_name), 1.0)

    def estimate_degree(self, link: Link) -> float:
        """To how many nodes a traversal leads from one, on average."""
        expand = link.expand
        each = self.count_edges(link) / self.count_nodes(expand.source_type)
        if expand.is_undirected:
            each *= 2
        if expand.edge_variable is not None:
            return each
        most = self.count_nodes(expand.target_type)
        return estimate_nodes_within(each, expand.minimum, expand.maximum, most)

    def estimate_affinity(self, one: Link, other: Link) -> float:
        """How many times more nodes one traversal leads to from where another one leads to.

        Both start at the same variable. A hub is reached as often as it has edges, and all of them
        leave from it again: mean degrees miss that by orders of magnitude.
        """
        key = _steps_of(one), _steps_of(other)
        known = self._affinities.get(key)
        if known is None:
            known = self._compute_affinity(one, other)
            self._affinities[key] = self._affinities[key[1], key[0]] = known
        return known

    def _compute_affinity(self, one: Link, other: Link) -> float:
        degrees, others = self._degrees_of(one), self._degrees_of(other)
        if degrees is None or others is None:
            return 1.0
        ways = degrees.sum(dtype=np.float64) * others.sum(dtype=np.float64)
        if not ways:
            return 1.0
        both = np.einsum("i,i->", degrees, others, dtype=np.float64)
        # At least one: a plan outlives the edges it was chosen for.
        return float(self.count_nodes(one.expand.source_type) * max(both, 1.0) / ways)

    def _degrees_of(self, link: Link) -> Degrees | None:
        """How many nodes one hop leads to from each node; None where only means are known."""
        key = _steps_of(link)
        if key not in self._degrees:
            self._degrees[key] = self._sum_degrees(link)
        return self._degrees[key]

    def _sum_degrees(self, link: Link) -> Degrees | None:
        source, expand = self._context.source, link.expand
        if not isinstance(source, TopologySource) or expand.maximum > 1:
            return None
        ways = [(step.edge_type, step.is_reversed) for step in expand.steps]
        if expand.is_undirected:
            ways += [(edge_type, not is_reversed) for edge_type, is_reversed in ways]
        first, *rest = (
            source.get_edges(name).get_adjacency(is_back).degrees for name, is_back in ways
        )
        return sum(rest, first)

    def is_functional(self, link: Link) -> bool:
        """Whether a plain traversal leads from every node to exactly one."""
        source = self._context.source
        step = link.step
        if not isinstance(source, TopologySource):
            return False
        return source.get_edges(step.edge_type).get_adjacency(step.is_reversed).is_functional

    def _estimate_satisfying(self, variable: Variable) -> float:
        context = self._context
        nodes = context.source.get_nodes(variable.type_name)
        if not variable.conditions:
            return nodes.count
        if isinstance(context.source, TopologySource):
            return len(nodes.filter_nodes(variable.conditions, context.params))
        if not is_type_set(variable.type_name):
            shape = context.view.get_shape(TypeKey(TypeKind.NODE, variable.type_name))
            ids = find_candidate_ids(variable.conditions, shape, context.params)
            if ids is not None:
                return len(ids)
        found = float(nodes.count)
        for condition in variable.conditions:
            found *= _EQUAL_SHARE if _is_equality(condition) else _OTHER_SHARE
        return found


def estimate_nodes_within(degree: float, minimum: int, maximum: int, most: int) -> float:
    """How many nodes lie within some hops at a mean degree, and at most so many.

    The series has a closed form: neither its time nor its largest term follows the bound.
    """
    hops = maximum - minimum + 1
    if hops <= 0 or degree <= 0:
        return 0.0 if minimum else 1.0
    if degree == 1:
        return min(float(hops), most)
    growth = math.log(degree)
    # The last term alone is as much.
    if maximum * growth >= math.log(most):
        return most
    first = math.exp(minimum * growth)
    return min(first * math.expm1(hops * growth) / (degree - 1), most)


def _steps_of(link: Link) -> _Steps:
    return link.expand.steps, link.expand.is_undirected, link.expand.maximum


def _is_equality(condition: Expr) -> bool:
    return isinstance(condition, Member) or (
        isinstance(condition, Compare) and condition.op is CompareOp.EQ
    )
