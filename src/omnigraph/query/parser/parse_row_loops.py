"""Statements of mutations that are done for each record of a parameter."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.lexer import TokenKind
from omnigraph.query.ast import Mutation, RowsWrite, WriteVerb
from omnigraph.query.parser.parse_literals import parse_variable
from omnigraph.query.parser.query_cursor import QueryCursor

MUTATION_WORDS = frozenset({*WriteVerb, "update", "delete"})


def is_at_row_loop(cursor: QueryCursor) -> bool:
    """Whether `for $row in $rows { … }` starts here."""
    return cursor.is_at("for") and cursor.peek().kind is TokenKind.VARIABLE


def parse_row_loop(
    cursor: QueryCursor, parse_mutation: Callable[[QueryCursor], Mutation]
) -> RowsWrite:
    """Read `for $row in $rows { … }`."""
    word = cursor.advance()
    cursor.require_lenient(word.span, "'for'")
    variable = parse_variable(cursor)
    cursor.expect("in", what="'in' and a parameter with records")
    source = parse_variable(cursor, "a parameter with records")

    def parse_statement(cursor: QueryCursor) -> Mutation:
        if not cursor.is_at(*MUTATION_WORDS):
            cursor.fail("'upsert', 'update', 'delete' or another statement, or '}'")
        return parse_mutation(cursor)

    owner = f"'for ${variable.name} in ${source.name}'"
    opening, errors_before = cursor.token, cursor.error_count
    statements = cursor.parse_members(owner, parse_statement)
    if not statements and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), "'for' needs at least one statement")
    return RowsWrite(variable, source, statements, cursor.build_span(word.start))
