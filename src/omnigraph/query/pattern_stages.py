"""Which parts of a pattern are matched before, and which after, each of its lateral blocks.

A part that uses a variable of a lateral block comes after it. Nodes that only traversals from such
a variable lead to come after it too, unless an earlier block uses them: to scan them before would
make each row a row with each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.query.logical_plan import Expand, Lateral, Operator
from omnigraph.query.pattern_assembly import PatternParts, assemble_pattern
from omnigraph.query.tree_walk import bound_variables_of, used_variables_of

# The number of lateral blocks that are before a part.
_Stage = int


def assemble_stages(leaf: Operator, parts: PatternParts, laterals: Sequence[Lateral]) -> Operator:
    """The operators that match the parts, and the lateral blocks in the order in which they are."""
    if not laterals:
        return assemble_pattern(leaf, parts)
    operator = leaf
    for stage, own in enumerate(_split_parts(parts, laterals)):
        if stage:
            operator = replace(laterals[stage - 1], input=operator)
        operator = assemble_pattern(operator, own)
    return operator


def _split_parts(parts: PatternParts, laterals: Sequence[Lateral]) -> Iterator[PatternParts]:
    """What is matched before the first block, and after each of them."""
    stages = _find_stages(parts, laterals)
    for stage in range(len(laterals) + 1):
        yield PatternParts(
            tuple(each for each in parts.nodes if stages[each.variable] == stage),
            tuple(each for each in parts.traversals if _stage_of(_ends_of(each), stages) == stage),
            tuple(
                each for each in parts.tests if _stage_of(used_variables_of(each), stages) == stage
            ),
        )


def _find_stages(parts: PatternParts, laterals: Sequence[Lateral]) -> Mapping[str, _Stage]:
    """When each variable is bound; those that come with the leaf are bound at the start."""
    introduced = {
        name: stage
        for stage, lateral in enumerate(laterals, 1)
        for name in bound_variables_of(lateral)
    }
    own = [each.variable for each in parts.nodes]
    stages = dict(introduced)
    for group in _find_groups(own, parts.traversals):
        stage = _find_group_stage(group, parts, introduced)
        used = frozenset().union(*map(used_variables_of, laterals[:stage]))
        if used & group.variables:
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
    """The first block with a variable that a traversal, or else a test, ties to the group."""
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
