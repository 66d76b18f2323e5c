"""Which parts of a pattern are matched before, and which after, each of its lateral blocks.

A part that uses a variable of a lateral block comes after it. Nodes that only traversals from such
a variable lead to come after it too, unless an earlier block uses them: to scan them before would
make each row a row with each of them. What binds values is a stage of its own as a block is: so the
order of the scans and traversals before it is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.query.logical_plan import (
    BlockColumn,
    Expand,
    Extend,
    Lateral,
    Operator,
    PathExpand,
    TableFunction,
    Unnest,
)
from omnigraph.query.pattern_assembly import PatternParts, assemble_pattern
from omnigraph.query.tree_walk import bound_variables_of, used_variables_of

Step = Lateral | Unnest | TableFunction | Extend | BlockColumn | PathExpand
# The number of steps that are before a part.
_Stage = int


def assemble_stages(leaf: Operator, parts: PatternParts, steps: Sequence[Step]) -> Operator:
    """The operators that match the parts, and the steps in their order."""
    if not steps:
        return assemble_pattern(leaf, parts)
    operator = leaf
    for stage, own in enumerate(_split_parts(parts, steps)):
        if stage:
            operator = replace(steps[stage - 1], input=operator)
        operator = assemble_pattern(operator, own)
    return operator


def _split_parts(parts: PatternParts, steps: Sequence[Step]) -> Iterator[PatternParts]:
    """What is matched before the first step, and after each of them."""
    stages = _find_stages(parts, steps)
    for stage in range(len(steps) + 1):
        yield PatternParts(
            tuple(each for each in parts.nodes if stages[each.variable] == stage),
            tuple(each for each in parts.traversals if _stage_of(_ends_of(each), stages) == stage),
            tuple(
                each for each in parts.tests if _stage_of(used_variables_of(each), stages) == stage
            ),
        )


def _find_stages(parts: PatternParts, steps: Sequence[Step]) -> Mapping[str, _Stage]:
    """When each variable is bound; those that come with the leaf are bound at the start."""
    introduced = {
        name: stage for stage, step in enumerate(steps, 1) for name in bound_variables_of(step)
    }
    own = [each.variable for each in parts.nodes]
    stages = dict(introduced)
    # The first step that uses each variable.
    first_uses: dict[str, _Stage] = {}
    for stage, step in enumerate(steps, 1):
        for name in used_variables_of(step):
            first_uses.setdefault(name, stage)
    for group in _find_groups(own, parts.traversals):
        stage = _find_group_stage(group, parts, introduced)
        if any(first_uses.get(name, len(steps) + 1) <= stage for name in group.variables):
            stage = 0
        stages.update(dict.fromkeys(group.variables, stage))
    edges = {each.edge_variable: each for each in parts.traversals if each.edge_variable}
    return stages | {name: _stage_of(_ends_of(each), stages) for name, each in edges.items()}


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes that traversals connect, and the edges at them."""

    nodes: frozenset[str]
    variables: frozenset[str]


def _find_groups(own: Sequence[str], traversals: Sequence[Expand]) -> Iterator[_Group]:
    known = frozenset(own)
    neighbours: dict[str, set[str]] = {name: set() for name in own}
    edges: dict[str, set[str]] = {name: set() for name in own}
    for each in traversals:
        for name, other in ((each.source, each.target), (each.target, each.source)):
            if name in known:
                neighbours[name] |= {other} & known
                edges[name] |= {each.edge_variable} - {None}  # type: ignore[arg-type]
    seen: set[str] = set()
    for name in own:
        if name in seen:
            continue
        reached, waiting = {name}, [name]
        while waiting:
            more = neighbours[waiting.pop()] - reached
            reached |= more
            waiting += more
        seen |= reached
        yield _Group(frozenset(reached), frozenset(reached.union(*(edges[at] for at in reached))))


def _find_group_stage(
    group: _Group, parts: PatternParts, introduced: Mapping[str, _Stage]
) -> _Stage:
    """The first step with a variable that a traversal, or else a test, ties to the group."""
    others = [
        other
        for each in parts.traversals
        for name, other in ((each.source, each.target), (each.target, each.source))
        if name in group.nodes and other not in group.nodes
    ]
    if not others:
        tested = [used for each in parts.tests if (used := used_variables_of(each)) & group.nodes]
        others = [name for used in tested for name in used if name in introduced]
    return min((introduced.get(other, 0) for other in others), default=0)


def _ends_of(traversal: Expand) -> frozenset[str]:
    return frozenset({traversal.source, traversal.target})


def _stage_of(variables: Iterable[str], stages: Mapping[str, _Stage]) -> _Stage:
    return max((stages.get(name, 0) for name in variables), default=0)
