"""Tests of the type of a variable: `$v is Type`."""

from __future__ import annotations

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import make_list_type
from omnigraph.query.check.check_operators import truth_type_of
from omnigraph.query.check.check_type_sets import list_node_types
from omnigraph.query.check.variable_scope import EdgeVariable, Scope, find_entity, read_field
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import Scalar


def check_type_test(
    context: CheckContext, scope: Scope, test: ast.TypeTest
) -> typed_tree.Expr | None:
    """Whether a node or an edge is of one of some types; null exactly where the variable is."""
    bound = find_entity(context, scope, test.variable, "T102")
    if bound is None:
        return None
    is_edge = isinstance(bound, EdgeVariable)
    found = [_find_types(context, name, is_edge=is_edge) for name in test.types]
    own = read_field(bound, typed_tree.SystemName.TYPE)
    if own is None or not all(found):
        return None
    names = tuple(dict.fromkeys(name for each in found for name in each))
    listed = typed_tree.Constant(names, make_list_type(Scalar.STRING))
    is_one = typed_tree.Member(own, listed, truth_type_of(own))
    return typed_tree.Negation(is_one, is_one.type) if test.is_negated else is_one


def _find_types(context: CheckContext, name: Name, *, is_edge: bool) -> tuple[str, ...]:
    """The types of a name; none if it is reported."""
    catalog = context.catalog
    if is_edge:
        found: tuple[str, ...] = (name.text,) if name.text in catalog.edges else ()
    else:
        found = list_node_types(catalog, name.text)
    if not found:
        kind, known = ("edge", catalog.edges) if is_edge else ("node", catalog.nodes)
        hint = context.suggest_similar(name.text, known)
        context.report_error("T1", name.span, f"unknown {kind} type '{name.text}'", hint=hint)
    return found
