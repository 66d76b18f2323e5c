"""The clause `path $p = … $a edges $b`."""

from __future__ import annotations

from omnigraph.lang.lexer import TokenKind
from omnigraph.query.ast import PathClause, PathSelector
from omnigraph.query.parser.parse_edges import parse_bounds
from omnigraph.query.parser.parse_literals import parse_variable
from omnigraph.query.parser.parse_table_calls import parse_edge_selection
from omnigraph.query.parser.query_cursor import QueryCursor


def is_path(cursor: QueryCursor, ahead: int = 0) -> bool:
    """Whether `path $p =` stands here, or so many tokens ahead."""
    return (
        cursor.peek(ahead).text == "path"
        and cursor.peek(ahead + 1).kind is TokenKind.VARIABLE
        and cursor.is_mark_at(ahead + 2, "=")
    )


def parse_path(cursor: QueryCursor) -> PathClause:
    """Read a clause that begins with `path $p =`."""
    word = cursor.advance()
    cursor.require_lenient(word.span, "'path'")
    variable = parse_variable(cursor)
    cursor.expect("=")
    selector = _parse_selector(cursor)
    source = parse_variable(cursor, "the variable that the path starts from")
    edges = parse_edge_selection(cursor)
    bounds = parse_bounds(cursor) if cursor.is_at("{") else None
    target = parse_variable(cursor, "the variable that the path leads to")
    return PathClause(
        variable, selector, source, edges, bounds, target, cursor.build_span(word.start)
    )


def _parse_selector(cursor: QueryCursor) -> PathSelector | None:
    if cursor.accept("shortest"):
        return PathSelector.SHORTEST
    if cursor.accept("all"):
        is_shortest = cursor.accept("shortest")
        return PathSelector.ALL_SHORTEST if is_shortest else PathSelector.ALL
    return None
