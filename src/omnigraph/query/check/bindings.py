"""Node bindings and their property matches."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.query import ast, typed
from omnigraph.query.check.access import NODE_FIELDS, Owner, refuse_property
from omnigraph.query.check.comparisons import element_of, scalar_of, truth_type_of
from omnigraph.query.check.constants import (
    Target,
    check_constant,
    check_enum_member,
    code_of,
)
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.literals import are_compatible, coerce_literal
from omnigraph.query.check.scope import (
    ANONYMOUS,
    EdgeVariable,
    NodeVariable,
    Scope,
    check_new_name,
)
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import NodeType
from omnigraph.schema.types import ListType, Scalar, VectorType


def collect_declared_types(
    context: CheckContext, clauses: Iterable[ast.Clause]
) -> dict[str, str | None]:
    """The node type each binding of a block gives its variable; the first one counts."""
    declared: dict[str, str | None] = {}
    for clause in clauses:
        if isinstance(clause, ast.Binding) and clause.variable.name != ANONYMOUS:
            type_name = clause.type_name.text
            known = type_name if type_name in context.catalog.nodes else None
            declared.setdefault(clause.variable.name, known)
    return declared


def check_binding(
    context: CheckContext, scope: Scope, binding: ast.Binding
) -> typed.Binding | None:
    """`$v: Type { p: value }`; binds the variable unless a clause before has bound it."""
    node = context.catalog.nodes.get(binding.type_name.text)
    if node is None:
        _refuse_type(context, binding.type_name)
    name = _bind_variable(context, scope, binding, node)
    if node is None:
        for match in binding.matches:
            check_constant(context, match.value)
        return None
    # Matches of a variable that could not be bound are still checked against the written type.
    conditions = [_check_match(context, name or "", node, match) for match in binding.matches]
    known = tuple(condition for condition in conditions if condition is not None)
    if name is None or len(known) < len(conditions):
        return None
    return typed.Binding(name, node.name, known)


def _bind_variable(
    context: CheckContext, scope: Scope, binding: ast.Binding, node: NodeType | None
) -> str | None:
    """The name the binding constrains, or None when the variable already is something else."""
    type_name = node.name if node else None
    if binding.variable.name == ANONYMOUS:
        name = context.make_anonymous_name()
        scope.bind(NodeVariable(name, type_name))
        return name
    name = binding.variable.name
    match scope.find(name):
        case None:
            check_new_name(context, binding.variable)
            scope.bind(NodeVariable(name, type_name))
        case EdgeVariable():
            context.report_error(
                "T23", binding.variable.span, f"'${name}' is an edge variable, not a node"
            )
            return None
        case NodeVariable(_, bound_type):
            if bound_type is not None and type_name is not None and bound_type != type_name:
                context.report_error(
                    "T101",
                    binding.type_name.span,
                    f"variable '${name}' is already {bound_type}; it cannot also be {type_name}",
                )
                return None
    return name


def _refuse_type(context: CheckContext, name: Name) -> None:
    if name.text in context.catalog.interfaces:
        hint: str | None = "interfaces cannot be queried; name a node type that implements it"
    elif name.text in context.catalog.edges:
        hint = f"{name.text} is an edge type: write '$a {name.text[:1].lower()}{name.text[1:]} $b'"
    else:
        hint = context.suggest_similar(name.text, context.catalog.nodes)
    context.report_error("T1", name.span, f"unknown node type '{name.text}'", hint=hint)


def _check_match(
    context: CheckContext, variable: str, node: NodeType, match: ast.PropertyMatch
) -> typed.Expr | None:
    value = check_constant(context, match.value)
    found = node.properties.get(match.property.text)
    if found is None:
        owner = Owner(node.name, node.properties, NODE_FIELDS)
        refuse_property(context, "T2", match.property, owner)
        return None
    target = typed.PropertyValue(variable, found.name, found.type)
    if found.type.is_blob or isinstance(found.type.value, VectorType):
        context.report_error(
            "T3", match.property.span, f"'{found.name}' is {found.type}; it cannot be matched"
        )
        return None
    if value is None:
        return None
    if isinstance(found.type.value, ListType):
        return _check_element(context, target, found.type.value.element, (value, match))
    if not are_compatible(scalar_of(value), found.type.scalar):
        context.report_error(
            code_of(value),
            match.value.span,
            f"cannot match '{found.name}', which is {found.type}, with {value.type}",
        )
        return None
    if not check_enum_member(context, value, Target(found.name, found.type), match.value.span):
        return None
    fitted = coerce_literal(value, found.type.scalar)
    return typed.Compare(ast.CompareOp.EQ, target, fitted, truth_type_of(target, fitted))


def _check_element(
    context: CheckContext,
    target: typed.PropertyValue,
    element: Scalar,
    matched: tuple[typed.Expr, ast.PropertyMatch],
) -> typed.Expr | None:
    value, match = matched
    if not are_compatible(scalar_of(value), element):
        hint = "match one element of the list" if element_of(value) else None
        context.report_error(
            code_of(value),
            match.value.span,
            f"'{target.property}' is {target.type}; it can be matched with one {element}, "
            f"got {value.type}",
            hint=hint,
        )
        return None
    fitted = coerce_literal(value, element)
    return typed.Member(fitted, target, truth_type_of(fitted, target))
