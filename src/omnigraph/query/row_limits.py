"""Conditions of a policy on the nodes of a type, from their texts to guards of plans.

A condition is a Bool over `$it`, the node, `$actor`, who asks, and `$groups`, the groups of that
actor. It reads one node by itself: no block, search or aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.lexer import Mode, lex
from omnigraph.lang.source_text import Source, Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafExpr, check_expression
from omnigraph.query.check.check_literals import make_list_type
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.query.rewrites.fold_constants import fold_conditions
from omnigraph.query.typed_tree import GUARDED, STRING, TypeGuard
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.property_types import Scalar

ACTOR: Final = "actor"
GROUPS: Final = "groups"
_ID: Final = (GUARDED, "id")
_POSITION: Final = "a condition of a policy"
_VARIABLES_HINT: Final = f"there are ${GUARDED}, ${ACTOR} and ${GROUPS}"


class RowLimits(NamedTuple):
    """What an actor may see of types: their nodes that satisfy one of some conditions.

    A tuple, because compiled queries are looked up by it.
    """

    actor: str
    groups: tuple[str, ...]
    conditions: tuple[tuple[str, tuple[str, ...]], ...]


def compile_guards(limits: RowLimits, catalog: Catalog) -> tuple[TypeGuard, ...]:
    """The guards of limits for a schema, by name of the type; types that it lacks have none.

    Raises `CompileError` if a condition does not fit the schema.
    """
    found: list[TypeGuard] = []
    for name, texts in sorted(limits.conditions):
        if name not in catalog.nodes and name not in catalog.edges:
            continue
        compiled = tuple(compile_row_condition(each, name, catalog, limits) for each in texts)
        either = compiled[0] if len(compiled) == 1 else typed_tree.AnyOf(compiled)
        # A condition that always holds is none.
        found += (TypeGuard(name, condition) for condition in fold_conditions([either]))
    return tuple(found)


def compile_row_condition(
    text: str, type_name: str, catalog: Catalog, limits: RowLimits | None = None
) -> typed_tree.Expr:
    """The typed form of a condition, with the actor and groups of limits in it."""
    collector = Collector(Source("policy", text))
    tree = _parse_condition(text, collector)
    node = None if tree is None else _find_type(type_name, catalog, collector)
    value = None
    if tree is not None and node is not None:
        context = CheckContext(catalog, collector, Mode.LENIENT)
        leaf = _ConditionLeaf(context, node, limits or RowLimits("", (), ()))
        span = Span(0, len(text))
        value = check_expression(context, tree, leaf.check)
        value = check_boolean(context, (value, span), _POSITION)
    if value is None or collector.has_errors:
        raise CompileError(collector.list_diagnostics())
    return value


def find_grammar_problem(text: str) -> Diagnostic | None:
    """What is wrong with a condition, whatever the schema is."""
    collector = Collector(Source("policy", text))
    _parse_condition(text, collector)
    return next(iter(collector.list_diagnostics()), None)


def _parse_condition(text: str, collector: Collector) -> ast.Expr | None:
    cursor = QueryCursor(lex(collector.source), collector, mode=Mode.LENIENT)
    try:
        tree = parse_expr(cursor)
        if cursor.token.start < len(text):
            cursor.fail("an operator or the end of the condition")
    except ParseFailure:
        return None
    return None if collector.has_errors else tree


def _find_type(type_name: str, catalog: Catalog, collector: Collector) -> NodeType | None:
    node = catalog.nodes.get(type_name)
    if node is None:
        message = f"unknown node type '{type_name}'"
        hint = suggest_similar(type_name, catalog.nodes)
        if type_name in catalog.edges:
            message = f"{type_name} is an edge type, which has no condition"
            hint = "an edge is seen where both of its nodes are: write `all`"
        collector.report_error("T1", Span(0, 0), message, hint=hint)
    return node


@dataclass(frozen=True, slots=True)
class _ConditionLeaf:
    """What stands in a condition beside operators, functions and literals."""

    context: CheckContext
    node: NodeType
    limits: RowLimits

    def check(self, leaf: LeafExpr) -> typed_tree.Expr | None:
        """A property or the id of the node, the actor, or its groups."""
        context = self.context
        match leaf:
            case ast.PropertyAccess(variable) if variable.name == GUARDED:
                return self._check_property(leaf)
            case ast.SystemAccess(variable, field) if (variable.name, field.text) == _ID:
                return typed_tree.SystemValue(GUARDED, typed_tree.SystemName.ID)
            case ast.Variable(name) if name == ACTOR:
                return typed_tree.Constant(self.limits.actor, STRING)
            case ast.Variable(name) if name == GROUPS:
                return typed_tree.Constant(self.limits.groups, make_list_type(Scalar.STRING))
            case ast.Variable(name, span):
                context.report_error(
                    "T6", span, f"{_POSITION} cannot use '${name}' here", hint=_VARIABLES_HINT
                )
            case ast.PropertyAccess(variable) | ast.SystemAccess(variable):
                context.report_error(
                    "T6",
                    leaf.span,
                    f"{_POSITION} reads the properties and '@id' of ${GUARDED} alone",
                    hint=_VARIABLES_HINT,
                )
            case _:
                context.report_error(
                    "T44", leaf.span, f"{_POSITION} has no such name, search or aggregate"
                )
        return None

    def _check_property(self, access: ast.PropertyAccess) -> typed_tree.Expr | None:
        name, node = access.property, self.node
        found = node.properties.get(name.text)
        if found is None:
            self.context.report_error(
                "T6",
                name.span,
                f"{node.name} has no property '{name.text}'",
                hint=self.context.suggest_similar(name.text, node.properties),
            )
            return None
        if found.type.is_blob:
            message = f"'{name.text}' is a Blob; it cannot be tested"
            self.context.report_error("T11", name.span, message)
            return None
        return typed_tree.PropertyValue(GUARDED, name.text, found.type)
