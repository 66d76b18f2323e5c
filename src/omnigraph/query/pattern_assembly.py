"""Puts the parts of a pattern in an order in which everything is bound before it is used.

Used to lower a pattern and to order it again from another root. A group of connected variables
starts with a scan of the first of its nodes as listed; the others are reached by traversals, which
are turned around where only their target is bound. A traversal between bound ends comes as soon as
both are, and so does every test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from omnigraph.query.logical_plan import (
    CompareBlock,
    Exists,
    Expand,
    Filter,
    Operator,
    Scan,
    Unit,
)
from omnigraph.query.tree_walk import used_variables_of
from omnigraph.query.typed_tree import Expr

Test = Filter | Exists | CompareBlock

# The input of a part that has not been put in its place.
NO_INPUT = Unit()


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node variable to be scanned or reached, and what it must satisfy."""

    variable: str
    type_name: str
    conditions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternParts:
    """What a pattern is made of; `nodes` are listed in the order in which they may be roots."""

    nodes: tuple[PatternNode, ...]
    traversals: tuple[Expand, ...] = ()
    tests: tuple[Test, ...] = ()


def assemble_pattern(leaf: Operator, parts: PatternParts) -> Operator:
    """The operators that match the parts; variables of none of them come with the leaf."""
    assembly = _Assembly(leaf, parts)
    assembly.bind(*_list_outer_variables(parts))
    assembly.add_traversals()
    for node in parts.nodes:
        if node.variable not in assembly.bound:
            assembly.add_scan(node)
            assembly.add_traversals()
    return assembly.operator


def _list_outer_variables(parts: PatternParts) -> list[str]:
    own = {node.variable for node in parts.nodes}
    own.update(each.edge_variable for each in parts.traversals if each.edge_variable is not None)
    used = {end for each in parts.traversals for end in (each.source, each.target)}
    used.update(*map(used_variables_of, parts.tests))
    return sorted(used - own)


class _Assembly:
    """A plan being put together."""

    def __init__(self, leaf: Operator, parts: PatternParts) -> None:
        self.operator: Operator = leaf
        self.bound: set[str] = set()
        self._parts = parts
        self._conditions = {node.variable: node.conditions for node in parts.nodes}
        # Traversals that touch a bound variable; those with two bound ends sort first.
        self._reachable: list[tuple[bool, int]] = []
        self._traversed: set[int] = set()
        self._traversals_of: dict[str, list[int]] = defaultdict(list)
        for index, traversal in enumerate(parts.traversals):
            for end in {traversal.source, traversal.target}:
                self._traversals_of[end].append(index)
        # The variables each test still waits for.
        self._missing = [set(used_variables_of(test)) for test in parts.tests]
        self._tests_of: dict[str, list[int]] = defaultdict(list)
        for index, missing in enumerate(self._missing):
            for variable in missing:
                self._tests_of[variable].append(index)
        self._add_tests(index for index, missing in enumerate(self._missing) if not missing)

    def bind(self, *variables: str) -> None:
        """Note that variables are bound, and place the tests that only waited for them."""
        self.bound.update(variables)
        ready = []
        for variable in variables:
            for index in self._traversals_of[variable]:
                heappush(self._reachable, (not self._is_closing(index), index))
            for index in self._tests_of[variable]:
                self._missing[index].discard(variable)
                if not self._missing[index]:
                    ready.append(index)
        self._add_tests(ready)

    def add_scan(self, node: PatternNode) -> None:
        """Bind a variable to every node of its type."""
        self.operator = Scan(self.operator, node.variable, node.type_name, node.conditions)
        self.bind(node.variable)

    def add_traversals(self) -> None:
        """Place every traversal that can be reached from a bound variable."""
        while self._reachable:
            _, index = heappop(self._reachable)
            if index not in self._traversed:
                self._traversed.add(index)
                self._add_expand(self._parts.traversals[index])

    def _add_expand(self, traversal: Expand) -> None:
        if traversal.source not in self.bound:
            traversal = reverse_traversal(traversal)
        target_is_bound = traversal.target in self.bound
        conditions = () if target_is_bound else self._conditions.get(traversal.target, ())
        self.operator = replace(
            traversal,
            input=self.operator,
            target_is_bound=target_is_bound,
            conditions=conditions,
        )
        binds = (None if target_is_bound else traversal.target, traversal.edge_variable)
        self.bind(*(variable for variable in binds if variable is not None))

    def _is_closing(self, index: int) -> bool:
        traversal = self._parts.traversals[index]
        return traversal.source in self.bound and traversal.target in self.bound

    def _add_tests(self, ready: Iterable[int]) -> None:
        tests = self._parts.tests
        # Filters first: they cost less than blocks.
        for index in sorted(ready, key=lambda at: (not isinstance(tests[at], Filter), at)):
            self.operator = replace(tests[index], input=self.operator)


def reverse_traversal(traversal: Expand) -> Expand:
    """The same traversal from its other end."""
    steps = traversal.steps
    if not traversal.is_undirected:
        steps = tuple(replace(step, is_reversed=not step.is_reversed) for step in steps)
    return replace(
        traversal,
        source=traversal.target,
        source_type=traversal.target_type,
        steps=steps,
        target=traversal.source,
        target_type=traversal.source_type,
    )
