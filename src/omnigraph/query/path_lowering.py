"""Paths of a pattern, and which of them bind the node that they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import Expand, Filter, PathExpand
from omnigraph.query.pattern_assembly import NO_INPUT, PatternParts
from omnigraph.query.pattern_stages import Step
from omnigraph.query.tree_walk import iter_subexpressions, used_variables_of, variables_of
from omnigraph.query.typed_reads import Clause, PathMatch
from omnigraph.query.typed_tree import (
    I64,
    BoundValue,
    Compare,
    Expr,
    Member,
    path_length_of,
    path_rank_of,
)


def list_path_values(path: PathMatch) -> tuple[str, ...]:
    """The variables that a path binds to values."""
    name = path.variable
    return name, path_length_of(name), path_rank_of(name)


def list_path_ranks(clauses: Iterable[Clause]) -> list[BoundValue]:
    """What orders several paths between the same ends."""
    paths = [each.variable for each in clauses if isinstance(each, PathMatch) and each.is_all]
    return [BoundValue(path_rank_of(name), I64) for name in sorted(paths)]


def lower_path(path: PathMatch, resolve_name: Callable[[str], str]) -> PathExpand:
    """A path between nodes that are bound, in the names of the plan."""
    variable, length, rank = map(resolve_name, list_path_values(path))
    return PathExpand(
        NO_INPUT,
        variable,
        length,
        rank,
        source=resolve_name(path.source),
        source_type=path.source_type,
        target=resolve_name(path.target),
        target_type=path.target_type,
        steps=path.steps,
        type=path.type,
        selector=path.selector,
        minimum=path.minimum,
        maximum=path.maximum,
    )


def release_targets(
    parts: PatternParts, steps: Sequence[Step]
) -> tuple[PatternParts, tuple[Step, ...]]:
    """Leave nodes that nothing else narrows down to the paths that lead to them."""
    nodes = {each.variable: each for each in parts.nodes}
    used: set[str] = set()
    released: list[Step] = []
    for step in steps:
        if isinstance(step, PathExpand) and _is_open(step, parts, used):
            released.append(replace(step, target_is_bound=False))
            del nodes[step.target]
        else:
            released.append(step)
        used |= used_variables_of(step)
    return replace(parts, nodes=tuple(nodes.values())), tuple(released)


def _is_open(path: PathExpand, parts: PatternParts, used: set[str]) -> bool:
    """Whether nothing but a path says which node is at its end."""
    connected = _find_connected(path.target, parts.traversals)
    is_first = not connected & (used | {path.source})
    return is_first and not any(_is_narrowed(name, parts) for name in connected)


def _find_connected(start: str, traversals: Iterable[Expand]) -> frozenset[str]:
    """The variables that traversals connect with one."""
    found, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        for each in traversals:
            if name in (each.source, each.target):
                more = {each.source, each.target} - found
                found |= more
                waiting += more
    return frozenset(found)


def _is_narrowed(name: str, parts: PatternParts) -> bool:
    """Whether a node is matched by its properties, or comes from around the pattern."""
    if all(each.variable != name for each in parts.nodes):
        return True
    if any(each.conditions for each in parts.nodes if each.variable == name):
        return True
    conditions = (each.condition for each in parts.tests if isinstance(each, Filter))
    return any(_is_equality(each) for each in conditions if name in variables_of(each))


def _is_equality(condition: Expr) -> bool:
    return any(
        isinstance(part, Member) or (isinstance(part, Compare) and part.op is CompareOp.EQ)
        for part in iter_subexpressions(condition)
    )
