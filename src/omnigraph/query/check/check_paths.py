"""Paths: their ends, the edges that they walk, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.query import ast, typed_reads
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_traversals import (
    TraversalEnd,
    are_declared,
    bind_end,
    check_bounds,
    find_edge,
    find_end,
)
from omnigraph.query.check.check_values import bind_value
from omnigraph.query.check.variable_scope import Scope
from omnigraph.query.typed_reads import PathStep
from omnigraph.query.typed_tree import PathObject, PathValue
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.type_sets import is_type_set

_DIRECTIONS = {
    ast.EdgeWay.FORWARD: (False,),
    ast.EdgeWay.BACKWARD: (True,),
    ast.EdgeWay.BOTH: (False, True),
}

_DIRECTION_HINT = (
    "edges are walked as they are stored; '^edge' walks against that, and '<edge>' either way"
)


def check_path(
    context: CheckContext, scope: Scope, clause: ast.PathClause
) -> typed_reads.PathMatch | None:
    """`path $p = $a edges{m,n} $b`; binds the path."""
    source = find_end(context, scope, clause.source)
    target = find_end(context, scope, clause.target)
    steps = _select_steps(context, clause.edges)
    bounds = check_bounds(context, clause.bounds)
    if clause.selector is ast.PathSelector.ALL and bounds is not None:
        bounds = _require_maximum(context, clause, bounds)
    is_right = not (source.is_wrong or target.is_wrong)
    is_right = is_right and are_declared(context, scope, (source, target), "a path")
    is_right = is_right and _are_single(context, (source, target))
    for end in (source, target):
        bind_end(context, scope, end, end.type_name)
    walked: tuple[PathStep, ...] = ()
    if is_right and steps is not None:
        found = _find_steps_between(context, clause, steps, (source, target))
        is_right = found is not None
        walked = found or ()
    if not is_right or steps is None or bounds is None:
        bind_value(context, scope, clause.variable, None)
        return None
    assert source.type_name is not None
    assert target.type_name is not None
    type_ = _build_type(source.type_name, walked)
    value = PathValue(clause.variable.name, type_)
    if not bind_value(context, scope, clause.variable, value):
        return None
    return typed_reads.PathMatch(
        variable=clause.variable.name,
        source=source.name,
        source_type=source.type_name,
        target=target.name,
        target_type=target.type_name,
        steps=walked,
        type=type_,
        selector=clause.selector or ast.PathSelector.SHORTEST,
        minimum=bounds[0],
        maximum=bounds[1],
    )


def _are_single(context: CheckContext, ends: Iterable[TraversalEnd]) -> bool:
    """Whether the nodes at ends have one type each."""
    several = [each for each in ends if is_type_set(str(each.type_name))]
    for each in several:
        message = f"a path joins nodes of one type each, and '${each.name}' is of {each.type_name}"
        context.report_error("T118", each.variable.span, message, hint="bind one type")
    return not several


def _require_maximum(
    context: CheckContext, clause: ast.PathClause, bounds: tuple[int, int]
) -> tuple[int, int] | None:
    if clause.bounds is None or clause.bounds.maximum is not None:
        return bounds
    context.report_error(
        "T118",
        clause.bounds.span,
        "'all' paths need a maximum",
        hint="give one, as in {1,4}, or ask for 'all shortest'",
    )
    return None


def _build_type(source_type: str, steps: Sequence[PathStep]) -> PathObject:
    nodes = {source_type, *(step.target_type for step in steps)}
    edges = {step.edge_type for step in steps}
    return PathObject("Path", node_types=tuple(sorted(nodes)), edge_types=tuple(sorted(edges)))


# ---- edges ----


def _select_steps(context: CheckContext, edges: ast.EdgeSelection) -> tuple[PathStep, ...] | None:
    """The edges that a path may walk, wherever it stands; None if a name is wrong."""
    walks: list[tuple[EdgeType, ast.EdgeWay]] = []
    is_known = True
    for member in edges.members:
        if member.is_any:
            walks += ((each, member.way) for each in context.catalog.edges.values())
        elif (edge := find_edge(context, member)) is not None:
            walks.append((edge, member.way))
        else:
            is_known = False
    return _orient_all(walks) if is_known else None


def _orient_all(
    walks: Iterable[tuple[EdgeType, ast.EdgeWay]],
) -> tuple[PathStep, ...]:
    """The steps over edges, each edge type once for each direction."""
    wanted: dict[str, tuple[EdgeType, set[bool]]] = {}
    for edge, direction in walks:
        wanted.setdefault(edge.name, (edge, set()))[1].update(_DIRECTIONS[direction])
    return tuple(
        PathStep(
            edge.name,
            edge.target if is_reversed else edge.source,
            edge.source if is_reversed else edge.target,
            is_reversed,
            is_reversed and len(directions) > 1 and edge.is_symmetric,
        )
        for edge, directions in wanted.values()
        for is_reversed in sorted(directions)
    )


def _find_steps_between(
    context: CheckContext,
    clause: ast.PathClause,
    steps: Sequence[PathStep],
    ends: tuple[TraversalEnd, TraversalEnd],
) -> tuple[PathStep, ...] | None:
    """The steps that can be part of a path; None if no path can join the types of the ends."""
    source, target = (str(end.type_name) for end in ends)
    ahead = _close_types(source, [(each.source_type, each.target_type) for each in steps])
    back = _close_types(target, [(each.target_type, each.source_type) for each in steps])
    if target in ahead:
        return tuple(
            each for each in steps if each.source_type in ahead and each.target_type in back
        )
    is_directed = any(each.way is not ast.EdgeWay.BOTH for each in clause.edges.members)
    context.report_error(
        "T5",
        clause.edges.span,
        f"no path over these edges leads from {source} to {target}",
        hint=_DIRECTION_HINT if is_directed else None,
    )
    return None


def _close_types(start: str, pairs: Sequence[tuple[str, str]]) -> frozenset[str]:
    """The types that steps lead to from one, which is among them."""
    found, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        more = {other for one, other in pairs if one == name} - found
        found |= more
        waiting += more
    return frozenset(found)
