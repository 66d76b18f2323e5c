"""Mutations: `insert`, `update` and `delete`."""

from __future__ import annotations

from omnigraph.query.ast import Assignment, Delete, Expr, Insert, Mutation, Update
from omnigraph.query.parser.expressions import parse_expr
from omnigraph.query.parser.reader import QueryCursor

_SYSTEM_HINT = "system fields are never assigned; the ends of a new edge are 'from' and 'to'"
_NULL_HINT = "pass a parameter of a nullable type, such as $value: String?"
MUTATION_WORDS = frozenset({"insert", "update", "delete"})


def parse_mutation(cursor: QueryCursor) -> Mutation:
    """Read one mutation; the cursor is at its first word."""
    word = cursor.advance()
    type_name = cursor.expect_type_name(f"a type name after '{word.text}'")
    if word.text == "insert":
        assignments = _parse_assignments(cursor, f"'insert {type_name.text}'")
        return Insert(type_name, assignments, cursor.build_span(word.start))
    if word.text == "update":
        cursor.expect("set")
        assignments = _parse_assignments(cursor, f"'update {type_name.text} set'")
        condition = _parse_where(cursor)
        return Update(type_name, assignments, condition, cursor.build_span(word.start))
    condition = _parse_where(cursor)
    return Delete(type_name, condition, cursor.build_span(word.start))


def _parse_assignments(cursor: QueryCursor, owner: str) -> tuple[Assignment, ...]:
    opening = cursor.token
    errors_before = cursor.error_count
    assignments = cursor.parse_members(owner, _parse_assignment)
    if not assignments and cursor.error_count == errors_before:
        span = cursor.build_span(opening.start)
        cursor.report(span, f"{owner} assigns nothing", code="T10")
    return assignments


def _parse_assignment(cursor: QueryCursor) -> Assignment:
    if cursor.is_at("@"):
        cursor.fail("a property name or '}'", hint=_SYSTEM_HINT)
    name = cursor.expect_ident("a property name or '}'")
    cursor.expect(":")
    if cursor.is_at("null"):
        cursor.refuse(cursor.token.span, "there is no null literal", hint=_NULL_HINT)
    value = parse_expr(cursor)
    span = cursor.build_span(name.span.start)
    cursor.accept(",")
    return Assignment(name, value, span)


def _parse_where(cursor: QueryCursor) -> Expr:
    cursor.expect("where")
    cursor.is_in_where = True
    try:
        return parse_expr(cursor)
    finally:
        cursor.is_in_where = False
