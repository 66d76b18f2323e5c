"""Traversals: their ends, their edge types with a direction each, their hop bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.lang.quoting import sanitize_text
from omnigraph.query import ast, typed_reads
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_set_traversals import select_joining
from omnigraph.query.check.variable_scope import (
    ANONYMOUS,
    EdgeVariable,
    NodeVariable,
    Scope,
    ValueVariable,
    check_new_name,
    check_reserved,
    refuse_edge,
    refuse_value,
)
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.type_sets import is_type_set

_ONE_HOP = (1, 1)


@dataclass(frozen=True, slots=True)
class CheckedTraversal:
    """A traversal clause after its check: its ends by name, and its typed form unless wrong."""

    source: str
    target: str
    typed: typed_reads.Traversal | None
    syntax: ast.Traversal


@dataclass(frozen=True, slots=True)
class TraversalEnd:
    """One end; without a type it is open, unless it is wrong and was reported."""

    variable: ast.Variable
    name: str
    type_name: str | None
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class _Selection:
    """The edge types of a traversal, and the node types they join in the order of writing."""

    steps: tuple[typed_reads.EdgeStep, ...]
    source_type: str
    target_type: str


def check_traversal(
    context: CheckContext, scope: Scope, traversal: ast.Traversal
) -> CheckedTraversal:
    """`$a edge $b` in all its forms; binds what no clause before has bound."""
    source = find_end(context, scope, traversal.source)
    target = find_end(context, scope, traversal.target)
    bounds = check_bounds(context, traversal.bounds)
    selection = _select_edges(context, scope, traversal, (source, target))
    if selection is not None and bounds is not None:
        bounds = _check_chain(context, traversal, selection, bounds)
    bind_end(context, scope, source, selection.source_type if selection else None)
    bind_end(context, scope, target, selection.target_type if selection else None)
    edge_types = tuple(step.edge_type for step in selection.steps) if selection else None
    edge_variable, is_usable = _bind_edge(context, scope, traversal, edge_types)
    checked = None
    if selection is not None and bounds is not None and is_usable:
        checked = typed_reads.Traversal(
            source=source.name,
            source_type=selection.source_type,
            steps=selection.steps,
            target=target.name,
            target_type=selection.target_type,
            is_undirected=traversal.is_undirected,
            edge_variable=edge_variable,
            is_selection=_is_selection(traversal),
            minimum=bounds[0],
            maximum=bounds[1],
        )
    return CheckedTraversal(source.name, target.name, checked, traversal)


# ---- ends ----


def find_end(context: CheckContext, scope: Scope, variable: ast.Variable) -> TraversalEnd:
    """The node variable at an end, bound or not; what cannot be one is reported."""
    if variable.name == ANONYMOUS:
        return TraversalEnd(variable, context.make_anonymous_name(), None)
    name = variable.name
    match scope.find(name):
        case NodeVariable(_, type_name):
            return TraversalEnd(variable, name, type_name, is_wrong=type_name is None)
        case EdgeVariable():
            refuse_edge(context, variable, "be the end of a traversal")
            return TraversalEnd(variable, name, None, is_wrong=True)
        case ValueVariable():
            refuse_value(context, variable, "no traversal leads from or to it")
            return TraversalEnd(variable, name, None, is_wrong=True)
        case _:
            type_name = scope.declared.get(name)
            is_wrong = name in scope.declared and type_name is None
            return TraversalEnd(variable, name, type_name, is_wrong)


def bind_end(context: CheckContext, scope: Scope, end: TraversalEnd, type_name: str | None) -> None:
    """Bind the variable of an end, unless a clause before has bound it."""
    if scope.peek(end.name) is not None:
        return
    if type_name is None:
        # A wrong traversal may have been meant as a filter over parameters.
        check_reserved(context, end.variable)
    else:
        check_new_name(context, end.variable)
    scope.bind(NodeVariable(end.name, end.type_name or type_name))


def _bind_edge(
    context: CheckContext,
    scope: Scope,
    traversal: ast.Traversal,
    edge_types: tuple[str, ...] | None,
) -> tuple[str | None, bool]:
    """The edge variable, if one is bound, and whether it is usable."""
    variable = traversal.edge_variable
    if variable is None or variable.name == ANONYMOUS:
        return None, True
    name = variable.name
    if name in (traversal.source.name, traversal.target.name):
        context.report_error("T23", variable.span, f"edge variable '${name}' is also an end")
        return None, False
    if scope.find(name) is not None:
        context.report_error("T23", variable.span, f"edge variable '${name}' is already bound")
        return None, False
    check_new_name(context, variable)
    scope.bind(EdgeVariable(name, edge_types))
    bounds = traversal.bounds
    if bounds is not None and (bounds.minimum, bounds.maximum) != _ONE_HOP:
        context.report_error(
            "T23", bounds.span, f"edge variable '${name}' needs a single hop, not hop bounds"
        )
        return None, False
    return name, True


# ---- edge types ----


def _select_edges(
    context: CheckContext,
    scope: Scope,
    traversal: ast.Traversal,
    ends: tuple[TraversalEnd, TraversalEnd],
) -> _Selection | None:
    is_wrong = any(end.is_wrong for end in ends)
    has_set = any(end.type_name is not None and is_type_set(end.type_name) for end in ends)
    match traversal.edges:
        case ast.AnyEdge():
            if is_wrong or not are_declared(context, scope, ends, "'*'"):
                return None
            if has_set:
                edge_types = list(context.catalog.edges.values())
                return _select_between_sets(context, traversal, edge_types, ends)
            return _select_any(context, traversal, traversal.edges, ends)
        case ast.NamedEdges(names):
            edges = [(name, find_edge(context, name)) for name in names]
            known = [(name, edge) for name, edge in edges if edge is not None]
            if is_wrong or len(known) < len(edges):
                return None
            if has_set:
                edge_types = [edge for _, edge in known]
                return _select_between_sets(context, traversal, edge_types, ends)
            return _select_named(context, traversal, known, ends)


def find_edge(context: CheckContext, name: ast.EdgeName | ast.EdgeMember) -> EdgeType | None:
    """The edge type of a name."""
    edge = context.catalog.find_edge(name.text)
    if edge is None:
        context.report_error(
            "T4",
            name.span,
            f"unknown edge type '{sanitize_text(name.text)}'",
            hint=_suggest_edge(context, name.text),
        )
    return edge


def _as_written(edge_type: str) -> str:
    # As queries write it; a capital letter is read too.
    return edge_type[:1].lower() + edge_type[1:]


def _suggest_edge(context: CheckContext, name: str) -> str | None:
    if name in set(ast.TextOp):
        return f"to compare values, put the filter in parentheses: '($a {name} $b)', or use 'in'"
    return context.suggest_similar(name, map(_as_written, context.catalog.edges))


def are_declared(
    context: CheckContext, scope: Scope, ends: tuple[TraversalEnd, TraversalEnd], what: str
) -> bool:
    """Whether bindings give both ends their types; reports it if not."""
    undeclared = [end for end in ends if not scope.is_declared(end.name)]
    for end in undeclared:
        shown = f"${end.variable.name}"
        context.report_error(
            "T105",
            end.variable.span,
            f"{what} needs both ends declared; '{shown}' is not",
            hint=f"add '{shown}: Type'" if shown != "$_" else "name it and declare its type",
        )
    return not undeclared


def _select_any(
    context: CheckContext,
    traversal: ast.Traversal,
    star: ast.AnyEdge,
    ends: tuple[TraversalEnd, TraversalEnd],
) -> _Selection | None:
    source_type, target_type = (end.type_name for end in ends)
    assert source_type is not None
    assert target_type is not None
    if traversal.is_undirected and source_type != target_type:
        _refuse_undirected(context, star, f"'*' joins {source_type} and {target_type} here")
        return None
    return _Selection(
        _list_joining_steps(context, source_type, target_type), source_type, target_type
    )


def _list_joining_steps(
    context: CheckContext, source_type: str, target_type: str
) -> tuple[typed_reads.EdgeStep, ...]:
    ends = (source_type, target_type)
    if ends not in context.joining_steps:
        edges = context.catalog.edges.values()
        steps = [_orient(edge, source_type, target_type) for edge in edges]
        context.joining_steps[ends] = tuple(step for step in steps if step is not None)
    return context.joining_steps[ends]


def _select_named(
    context: CheckContext,
    traversal: ast.Traversal,
    named: list[tuple[ast.EdgeName, EdgeType]],
    ends: tuple[TraversalEnd, TraversalEnd],
) -> _Selection | None:
    asymmetric = [(name, edge) for name, edge in named if not edge.is_symmetric]
    if traversal.is_undirected and asymmetric:
        name, edge = asymmetric[0]
        _refuse_undirected(context, name, f"{edge.name} joins {edge.source} and {edge.target}")
        return None
    source_type, target_type = (end.type_name for end in ends)
    steps: dict[str, typed_reads.EdgeStep] = {}
    for name, edge in named:
        step = _orient(edge, source_type, target_type)
        if step is None and not steps:
            _refuse_ends(context, edge, ends)
            return None
        if step is None:
            message = f"{edge.name} does not join {source_type} and {target_type}"
            context.report_error("T5", name.span, f"{message}, as the edges before it do")
            return None
        source_type, target_type = _joined_types_of(edge, step)
        if ends[0].name == ends[1].name and source_type != target_type:
            context.report_error(
                "T5", name.span, f"{edge.name} cannot lead from '${ends[0].name}' to itself"
            )
            return None
        steps[edge.name] = step
    assert source_type is not None
    assert target_type is not None
    return _Selection(tuple(steps.values()), source_type, target_type)


def _select_between_sets(
    context: CheckContext,
    traversal: ast.Traversal,
    edges: list[EdgeType],
    ends: tuple[TraversalEnd, TraversalEnd],
) -> _Selection | None:
    """Those of the edges that join a type of each end."""
    source, target = (end.type_name for end in ends)
    if traversal.is_undirected:
        edges = [edge for edge in edges if edge.is_symmetric]
    if traversal.is_undirected or traversal.bounds is not None:
        # What may be walked again may be of all types on the way.
        source, target = source or target, target or source
    found = select_joining(edges, source, target)
    if not found.steps:
        span = traversal.edges.span if isinstance(traversal.edges, ast.AnyEdge) else traversal.span
        shown = " and ".join(each for each in (source, target) if each is not None)
        context.report_error("T5", span, f"none of these edges joins {shown}")
        return None
    is_one = ends[0].name == ends[1].name or traversal.is_undirected
    if is_one and found.source_type != found.target_type:
        joined = f"the edges lead from {found.source_type} to {found.target_type}"
        context.report_error(
            "T22" if traversal.is_undirected else "T5", traversal.span, f"{joined}, not both ways"
        )
        return None
    return _Selection(found.steps, found.source_type, found.target_type)


def _orient(
    edge: EdgeType, source_type: str | None, target_type: str | None
) -> typed_reads.EdgeStep | None:
    """The direction in which an edge fits the known types; None when it fits in neither."""
    if source_type in (None, edge.source) and target_type in (None, edge.target):
        return typed_reads.EdgeStep(edge.name)
    if source_type in (None, edge.target) and target_type in (None, edge.source):
        return typed_reads.EdgeStep(edge.name, is_reversed=True)
    return None


def _joined_types_of(edge: EdgeType, step: typed_reads.EdgeStep) -> tuple[str, str]:
    return (edge.target, edge.source) if step.is_reversed else (edge.source, edge.target)


def _refuse_ends(
    context: CheckContext, edge: EdgeType, ends: tuple[TraversalEnd, TraversalEnd]
) -> None:
    source, target = ends
    is_source_wrong = source.type_name not in (None, edge.source, edge.target)
    wrong = source if is_source_wrong else target
    context.report_error(
        "T5",
        wrong.variable.span,
        f"'${wrong.variable.name}' is a {wrong.type_name}, "
        f"but {edge.name} leads from {edge.source} to {edge.target}",
    )


def _refuse_undirected(context: CheckContext, edge: ast.EdgeName | ast.AnyEdge, why: str) -> None:
    context.report_error(
        "T22",
        edge.span,
        f"an undirected traversal needs equal endpoint types; {why}",
        hint="drop the angle brackets: the direction follows from the types",
    )


# ---- bounds ----


def check_bounds(context: CheckContext, bounds: ast.HopBounds | None) -> tuple[int, int] | None:
    """The least and the greatest number of hops."""
    if bounds is None:
        return _ONE_HOP
    maximum = ast.HOPS_MAX if bounds.maximum is None else bounds.maximum
    if bounds.minimum < 1 and context.is_strict:
        problem = "the minimum must be at least 1"
    elif bounds.maximum is None and context.is_strict:
        problem = "unbounded hops are not supported; write a maximum"
    elif maximum < bounds.minimum:
        problem = "the maximum must be at least the minimum"
    else:
        return bounds.minimum, maximum
    context.report_error("T15", bounds.span, f"bad hop bounds: {problem}")
    return None


def _check_chain(
    context: CheckContext, traversal: ast.Traversal, selection: _Selection, bounds: tuple[int, int]
) -> tuple[int, int] | None:
    """The bounds that apply: hops between two different types cannot be chained."""
    if bounds == _ONE_HOP or selection.source_type == selection.target_type:
        return bounds
    assert traversal.bounds is not None
    span = traversal.bounds.span
    joined = f"{selection.source_type} and {selection.target_type}"
    is_open = traversal.bounds.maximum is None
    has_set = is_type_set(selection.source_type) or is_type_set(selection.target_type)
    if bounds[0] != 1 or is_open or has_set or _is_selection(traversal):
        context.report_error("T5", span, f"hops cannot be chained: the edge joins {joined}")
        return None
    context.report_deprecated(
        ("T5", "L312"),
        span,
        f"hops cannot be chained: the edge joins {joined}"
        + ("" if context.is_strict else ", so this is one hop"),
        hint="remove the bounds",
    )
    return _ONE_HOP


def _is_selection(traversal: ast.Traversal) -> bool:
    return isinstance(traversal.edges, ast.AnyEdge) or len(traversal.edges.names) > 1


def check_anchors(
    context: CheckContext, scope: Scope, walks: Mapping[int, CheckedTraversal]
) -> dict[int, typed_reads.Binding]:
    """The scans to add before clauses, by clause index: one for each group without an anchor.

    A group is anchored by a binding of its block or by a variable of an outer one. A group with a
    wrong traversal is taken as anchored, because what it was meant to touch is unknown.
    """
    groups = _UnionFind()
    for walk in walks.values():
        groups.join(walk.source, walk.target)
    anchored = {
        groups.find(name)
        for walk in walks.values()
        for name in (walk.source, walk.target)
        if walk.typed is None
        or name in scope.declared
        or name not in scope.own
        or name in scope.exported
    }
    scans: dict[int, typed_reads.Binding] = {}
    for index, walk in walks.items():
        group = groups.find(walk.source)
        if walk.typed is not None and group not in anchored:
            anchored.add(group)
            scans[index] = _build_scan(context, walk, walk.typed)
    return scans


def _build_scan(
    context: CheckContext, walk: CheckedTraversal, traversal: typed_reads.Traversal
) -> typed_reads.Binding:
    variable = walk.syntax.source
    context.report_deprecated(
        ("T104", "L314"),
        walk.syntax.source.span.join(walk.syntax.target.span),
        f"neither end is declared, so every {traversal.source_type} is scanned"
        if not context.is_strict
        else "the traversal touches no declared variable",
        hint="declare the type of an end"
        if variable.name == ANONYMOUS
        else f"add '${variable.name}: {traversal.source_type}'",
    )
    return typed_reads.Binding(walk.source, traversal.source_type)


class _UnionFind:
    """Names joined into groups, each known by one of its names."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def find(self, name: str) -> str:
        parents = self._parents
        parents.setdefault(name, name)
        while parents[name] != name:
            parents[name] = parents[parents[name]]
            name = parents[name]
        return name

    def join(self, left: str, right: str) -> None:
        self._parents[self.find(left)] = self.find(right)
