"""The pattern of a plan as a graph: variables, the traversals between them, and tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from omnigraph.execution.optimizer.plan_split import iter_operators
from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import (
    LEAVES,
    CompareBlock,
    Exists,
    Expand,
    Filter,
    Leaf,
    Operator,
    Scan,
)
from omnigraph.query.pattern_assembly import NO_INPUT, Test, reverse_traversal
from omnigraph.query.tree_walk import chain_of, used_variables_of
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import Compare, Expr, PropertyValue, SystemName, SystemValue
from omnigraph.rows.evaluator import is_constant
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import Scalar

Block: TypeAlias = Exists | CompareBlock


@dataclass(frozen=True, slots=True)
class Variable:
    """A node variable, with the conditions and the blocks that are about it alone."""

    name: str
    type_name: str
    conditions: tuple[Expr, ...] = ()
    blocks: tuple[Block, ...] = ()

    # What the id must be, if a condition says so, and the conditions beside this one.
    required_id: Expr | None = None
    other_conditions: tuple[Expr, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether every node of the type will do."""
        return not self.conditions and not self.blocks


@dataclass(frozen=True, slots=True)
class Link:
    """A traversal between two variables, in one of its two directions."""

    index: int
    expand: Expand

    @property
    def source(self) -> str:
        """The variable it starts from."""
        return self.expand.source

    @property
    def target(self) -> str:
        """The variable it leads to."""
        return self.expand.target

    @property
    def step(self) -> EdgeStep:
        """The only edge type of it, and its direction."""
        (step,) = self.expand.steps
        return step

    @property
    def is_plain(self) -> bool:
        """Whether it is one hop over the distinct pairs of one edge type."""
        expand = self.expand
        return (
            len(expand.steps) == 1
            and expand.minimum == expand.maximum == 1
            and expand.edge_variable is None
            and not (expand.is_undirected or expand.is_selection)
        )

    def orient_from(self, variable: str) -> Link:
        """The same traversal, starting at one of its ends."""
        return self if variable == self.source else Link(self.index, reverse_traversal(self.expand))


@dataclass(frozen=True)
class PatternGraph:
    """What a chain of operators matches, without an order.

    `tests` are about several variables or about edges; `guards` are about no variable at all.
    `outer` are the variables that come with the leaf.
    """

    leaf: Leaf
    variables: Mapping[str, Variable]
    links: tuple[Link, ...]
    tests: tuple[Test, ...]
    guards: tuple[Test, ...]
    outer: frozenset[str]

    @cached_property
    def links_of(self) -> Mapping[str, tuple[Link, ...]]:
        """The traversals at each variable, starting there; one from a variable to itself once."""
        found: dict[str, list[Link]] = defaultdict(list)
        for link in self.links:
            for end in sorted({link.source, link.target}):
                found[end].append(link.orient_from(end))
        return {name: tuple(found[name]) for name in (*self.variables, *self.outer)}

    @cached_property
    def is_selecting(self) -> bool:
        """Whether a traversal counts its work, which depends on the order as it was written."""
        blocks = [*self.tests, *self.guards]
        blocks += (block for each in self.variables.values() for block in each.blocks)
        return any(link.expand.is_selection for link in self.links) or any(
            isinstance(operator, Expand) and operator.is_selection
            for test in blocks
            if isinstance(test, Block)
            for operator in iter_operators(test.block)
        )

    @cached_property
    def entangled(self) -> frozenset[str]:
        """The variables that a test or a traversal that is not plain ties to others."""
        names = {name for test in self.tests for name in used_variables_of(test)}
        for link in self.links:
            if not link.is_plain or link.source == link.target:
                names |= {link.source, link.target}
        return frozenset(names & self.variables.keys())

    def find_components(self, names: Iterable[str]) -> list[frozenset[str]]:
        """The variables in groups that traversals connect, in order."""
        found: list[frozenset[str]] = []
        seen: set[str] = set()
        for name in names:
            if name not in seen:
                found.append(self._find_connected(name))
                seen |= found[-1]
        return found

    def _find_connected(self, name: str) -> frozenset[str]:
        reached, waiting = {name}, [name]
        while waiting:
            for link in self.links_of[waiting.pop()]:
                if link.target not in reached:
                    reached.add(link.target)
                    waiting.append(link.target)
        return frozenset(reached)

    def find_core(self, needed: Collection[str]) -> frozenset[str]:
        """The variables that stay when leaves that are not needed are stripped, repeatedly."""
        kept = set(self.variables) | self.outer
        degrees = {name: len(self.links_of[name]) for name in kept}
        leaves = [name for name in kept if degrees[name] <= 1 and name not in needed]
        while leaves:
            leaf = leaves.pop()
            kept.discard(leaf)
            for link in self.links_of[leaf]:
                if link.target in kept:
                    degrees[link.target] -= 1
                    if degrees[link.target] == 1 and link.target not in needed:
                        leaves.append(link.target)
        return frozenset(kept)


def build_pattern_graph(pattern: Operator, catalog: Catalog | None = None) -> PatternGraph:
    """The graph of a chain of scans, traversals and tests; a catalog says which keys are ids."""
    leaf, *operators = chain_of(pattern)
    assert isinstance(leaf, LEAVES)
    nodes: dict[str, tuple[str, tuple[Expr, ...]]] = {}
    links: list[Link] = []
    tests: list[Test] = []
    for operator in operators:
        match operator:
            case Scan():
                nodes[operator.variable] = operator.type_name, operator.conditions
            case Expand():
                links.append(Link(len(links), _detach_traversal(operator)))
                if not operator.target_is_bound:
                    nodes[operator.target] = operator.target_type, operator.conditions
            case Filter() | Exists() | CompareBlock():
                tests.append(operator)
            case _:
                raise AssertionError(f"{type(operator).__name__} is not part of a pattern")
    graph = _build_graph(leaf, nodes, links, tests)
    if catalog is None:
        return graph
    variables = {name: _with_id(each, catalog) for name, each in graph.variables.items()}
    return replace(graph, variables=variables)


def _detach_traversal(expand: Expand) -> Expand:
    """The traversal by itself: which end it binds, and what is read there, depends on the order."""
    return replace(
        expand,
        input=NO_INPUT,
        conditions=(),
        target_is_bound=False,
        properties=None,
        edge_properties=None,
    )


def _build_graph(
    leaf: Leaf,
    nodes: Mapping[str, tuple[str, tuple[Expr, ...]]],
    links: Iterable[Link],
    tests: Iterable[Test],
) -> PatternGraph:
    conditions: dict[str, list[Expr]] = defaultdict(list)
    blocks: dict[str, list[Block]] = defaultdict(list)
    others: list[Test] = []
    guards: list[Test] = []
    for test in tests:
        used = used_variables_of(test)
        name = min(used) if len(used) == 1 else None
        if not used:
            guards.append(test)
        elif name is None or name not in nodes:
            others.append(test)
        elif isinstance(test, Filter):
            conditions[name].append(test.condition)
        else:
            blocks[name].append(test)
    variables = {
        name: Variable(name, type_name, (*own, *conditions[name]), tuple(blocks[name]))
        for name, (type_name, own) in nodes.items()
    }
    links = tuple(links)
    outer = frozenset(_iter_used_variables(links, others)) - variables.keys()
    outer -= {link.expand.edge_variable for link in links}
    return PatternGraph(leaf, variables, links, tuple(others), tuple(guards), frozenset(outer))


def _with_id(variable: Variable, catalog: Catalog) -> Variable:
    """The variable with what its id must be: a constant that a condition compares it with."""
    node = catalog.nodes[variable.type_name]
    ids: list[Expr] = [SystemValue(variable.name, SystemName.ID)]
    if node.key is not None and len(node.key) == 1:
        (name,) = node.key
        # The id of a node with one text for a key is that text.
        if node.properties[name].type.scalar is Scalar.STRING:
            ids.append(PropertyValue(variable.name, name, node.properties[name].type))
    for place, condition in enumerate(variable.conditions):
        match condition:
            case Compare(CompareOp.EQ, left, right) if left in ids and is_constant(right):
                given = right
            case Compare(CompareOp.EQ, left, right) if right in ids and is_constant(left):
                given = left
            case _:
                continue
        others = variable.conditions[:place] + variable.conditions[place + 1 :]
        return replace(variable, required_id=given, other_conditions=others)
    return variable


def _iter_used_variables(links: Iterable[Link], tests: Iterable[Test]) -> Iterator[str]:
    for link in links:
        yield from (link.source, link.target)
    for test in tests:
        yield from used_variables_of(test)
