"""Conditions that a schema has about its entities: `@check` of an expression.

The schema keeps the text of such an expression. Here it is read and typed by the rules of a
mutation's `where`: it is a Bool over the properties and fields of one entity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from omnigraph.errors import CompileError, StoredSchemaError
from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import Mode, lex
from omnigraph.lang.source_text import Source, Span
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query import typed_tree
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

# A process works with few schemas, each with few conditions.
_CONDITIONS_MAX = 1_024


def compile_whole_schema(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> CompiledSchema:
    """Read and check a schema with the conditions in it."""
    compiled = compile_schema(text, name=name, mode=mode)
    if compiled.catalog is None:
        return compiled
    collector = Collector(compiled.source, compiled.diagnostics)
    for type_, expression in _iter_expressions(compiled.schema, compiled.catalog):
        _check_condition(type_, expression, collector)
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
    properties = tuple((name, found.type) for name, found in sorted(type_.properties.items()))
    ends = (type_.source, type_.target) if isinstance(type_, EdgeType) else None
    return _compile(text, _Subject(type_.name, ends, properties))


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a condition is about: a type with its properties, and its ends if it is an edge."""

    name: str
    ends: tuple[str, str] | None
    properties: tuple[tuple[str, PropertyType], ...]

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
        raise StoredSchemaError(
            f"the stored schema has a condition of {subject.name} that cannot be read: {text}",
            hint="open the graph with a newer version of the program",
        )
    return found


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
    cursor = QueryCursor(lex(collector.source), collector, mode=Mode.LENIENT)
    while cursor.token.start < expression.span.start:
        cursor.advance()
    try:
        tree = parse_expr(cursor)
        if cursor.token.start < expression.span.end:
            cursor.fail("an operator or the end of the condition")
    except ParseFailure:
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
