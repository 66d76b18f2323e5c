"""Expressions that a schema has about its entities: `@check` of a condition, and defaults.

The schema keeps the text of such an expression. Here it is read and typed by the rules of a
mutation: a condition, as in `where`, is a Bool over the properties and fields of one entity; a
default is a value of its property, as in `set`, made of literals, `now()` and other properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, assert_never

from omnigraph.errors import CompileError, StoredSchemaError
from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import Mode, lex
from omnigraph.lang.source_text import Source, Span
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query import ast as query_ast
from omnigraph.query import typed_tree
from omnigraph.query.check.check_assignments import check_assignments
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafExpr, check_expression
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.check.check_own_fields import CONDITION, check_own_leaf
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.schema import ast
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.schema.property_types import PropertyType
from omnigraph.schema.schema_compiler import CompiledSchema, compile_schema
from omnigraph.schema.schema_printer import members_of

# A process works with few schemas, each with few conditions.
_CONDITIONS_MAX = 1_024
_DEFAULT: Final = "a default"


def compile_whole_schema(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> CompiledSchema:
    """Read and check a schema with the expressions in it."""
    compiled = compile_schema(text, name=name, mode=mode)
    if compiled.catalog is None:
        return compiled
    collector = Collector(compiled.source, compiled.diagnostics)
    for type_, expression in _iter_expressions(compiled.schema, compiled.catalog):
        _check_condition(type_, expression, collector)
    for type_, name, default in _iter_defaults(compiled.schema, compiled.catalog):
        _check_default(type_, name, default, collector)
    catalog = None if collector.has_errors else compiled.catalog
    return replace(compiled, catalog=catalog, diagnostics=collector.list_diagnostics())


def load_whole_catalog(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> Catalog:
    """The catalog of a schema text; raises `CompileError` when it has errors."""
    compiled = compile_whole_schema(text, name=name, mode=mode)
    if compiled.catalog is None:
        raise CompileError(compiled.diagnostics)
    return compiled.catalog


def compile_condition(text: str, type_: NodeType | EdgeType) -> typed_tree.Expr:
    """The typed form of a condition of a type in force."""
    return _compile(text, _Subject.from_type(type_))


def compile_default(name: str, type_: NodeType | EdgeType) -> typed_tree.Assign:
    """What a property of a type in force is assigned where an entity is given no value of it."""
    default = type_.properties[name].default
    assert default is not None, "the caller asks for a property that has one"
    return _compile_default(default.text, name, _Subject.from_type(type_))


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a condition is about: a type with its properties, and its ends if it is an edge."""

    name: str
    ends: tuple[str, str] | None
    properties: tuple[tuple[str, PropertyType], ...]

    @classmethod
    def from_type(cls, type_: NodeType | EdgeType) -> _Subject:
        """A type as expressions see it."""
        properties = tuple((name, found.type) for name, found in sorted(type_.properties.items()))
        ends = (type_.source, type_.target) if isinstance(type_, EdgeType) else None
        return cls(type_.name, ends, properties)

    def build_type(self) -> NodeType | EdgeType:
        """The type without its rules."""
        properties = {name: Property(name, kind) for name, kind in self.properties}
        if self.ends is None:
            return NodeType(self.name, properties)
        return EdgeType(self.name, *self.ends, properties)


@lru_cache(_CONDITIONS_MAX)
def _compile(text: str, subject: _Subject) -> typed_tree.Expr:
    collector = Collector(Source("schema.pg", text))
    expression = ast.ExpressionText(text, (), span=Span(0, len(text)))
    found = _check_condition(subject.build_type(), expression, collector)
    if found is None or collector.has_errors:
        raise _build_unreadable_error(subject, f"a condition that cannot be read: {text}")
    return found


@lru_cache(_CONDITIONS_MAX)
def _compile_default(text: str, name: str, subject: _Subject) -> typed_tree.Assign:
    collector = Collector(Source("schema.pg", text))
    expression = ast.ExpressionText(text, (), span=Span(0, len(text)))
    found = _check_default(subject.build_type(), name, expression, collector)
    if found is None or collector.has_errors:
        raise _build_unreadable_error(subject, f"a default that cannot be read: {text}")
    return found


def _build_unreadable_error(subject: _Subject, problem: str) -> StoredSchemaError:
    return StoredSchemaError(
        f"{subject.name} of the stored schema has {problem}",
        hint="open the graph with a newer version of the program",
    )


def _iter_expressions(
    schema: ast.Schema, catalog: Catalog
) -> Iterator[tuple[NodeType | EdgeType, ast.ExpressionText]]:
    """Every condition with its type, in the order of the text."""
    for declaration in schema.declarations:
        if isinstance(declaration, ast.Interface):
            continue
        name = declaration.name.text
        is_node = isinstance(declaration, ast.Node)
        type_ = catalog.nodes[name] if is_node else catalog.edges[name]
        for member in declaration.members:
            for argument in member.arguments if isinstance(member, ast.Constraint) else ():
                if isinstance(argument, ast.ExpressionText):
                    yield type_, argument


def _check_condition(
    type_: NodeType | EdgeType, expression: ast.ExpressionText, collector: Collector
) -> typed_tree.Expr | None:
    """The typed form of an expression that stands in a text, or None after reporting why not."""
    context = CheckContext(Catalog(), collector, Mode.LENIENT)
    tree = _parse_expression(expression, collector, "the condition")
    if tree is None:
        return None

    def leaf(found: LeafExpr) -> typed_tree.Expr | None:
        return check_own_leaf(context, type_, found, CONDITION)

    value = check_expression(context, tree, leaf)
    value = check_boolean(context, (value, expression.span), CONDITION)
    if value is not None and any(
        isinstance(each, typed_tree.NowValue) for each in iter_subexpressions(value)
    ):
        message = f"{type_.name}: @check cannot read the time: it holds at any time, or never"
        collector.report_error("S016", expression.span, message)
        return None
    return value


def _iter_defaults(
    schema: ast.Schema, catalog: Catalog
) -> Iterator[tuple[NodeType | EdgeType, str, ast.ExpressionText]]:
    """Every default with its property and type; an interface is like a node type."""
    for declaration in schema.declarations:
        name = declaration.name.text
        type_: NodeType | EdgeType
        match declaration:
            case ast.Interface():
                type_ = NodeType(name, catalog.interfaces[name].properties)
            case ast.Node():
                type_ = catalog.nodes[name]
            case ast.Edge():
                type_ = catalog.edges[name]
            case _:
                assert_never(declaration)
        for member in members_of(declaration):
            if isinstance(member, ast.Property) and member.default is not None:
                yield type_, member.name.text, member.default


def _check_default(
    type_: NodeType | EdgeType, name: str, expression: ast.ExpressionText, collector: Collector
) -> typed_tree.Assign | None:
    """What a default assigns, or None after reporting why it cannot."""
    context = CheckContext(Catalog(), collector, Mode.LENIENT)
    tree = _parse_expression(expression, collector, "the default")
    if tree is None:
        return None

    def leaf(found: LeafExpr) -> typed_tree.Expr | None:
        if isinstance(found, query_ast.Identifier) and found.name in type_.properties:
            return check_own_leaf(context, type_, found, _DEFAULT)
        message = f"{type_.name}.{name}: {_DEFAULT} is made of values, now() and other properties"
        collector.report_error("T127", found.span, message)
        return None

    target = ast.Name(name, expression.span)
    assignment = query_ast.Assignment(target, tree, expression.span)
    return next(iter(check_assignments(context, [assignment], type_, leaf=leaf)), None)


def _parse_expression(
    expression: ast.ExpressionText, collector: Collector, what: str
) -> query_ast.Expr | None:
    """The tree of an expression that stands in a text."""
    cursor = QueryCursor(lex(collector.source), collector, mode=Mode.LENIENT)
    while cursor.token.start < expression.span.start:
        cursor.advance()
    try:
        tree = parse_expr(cursor)
        if cursor.token.start < expression.span.end:
            cursor.fail(f"an operator or the end of {what}")
    except ParseFailure:
        return None
    return tree
