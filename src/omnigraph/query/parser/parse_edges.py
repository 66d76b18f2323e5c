"""The names of edges, and how many of them are walked."""

from __future__ import annotations

from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.query.ast import HOPS_MAX, EdgeName, HopBounds
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor


def parse_edge_name(cursor: QueryCursor) -> EdgeName:
    """Read the name of an edge, which may stand in quotes."""
    token = cursor.token
    if token.kind is TokenKind.STRING:
        text, span = cursor.expect_string("an edge name")
        return EdgeName(text, True, span)
    if token.text in RESERVED:
        _check_reserved_edge(cursor)
    name = cursor.expect_ident("an edge name")
    return EdgeName(name.text, False, name.span)


def _check_reserved_edge(cursor: QueryCursor) -> None:
    token = cursor.token
    hint = f'write "{token.text}" in quotes'
    if token.text == "not" or cursor.mode is Mode.STRICT:
        cursor.refuse(
            token.span,
            f"'{token.text}' is a reserved word and cannot be a bare edge name",
            hint=hint,
        )
    message = f"'{token.text}' is a reserved word; the edge of that name should be quoted"
    cursor.collector.report_warning("L310", token.span, message, hint=hint)


def parse_bounds(cursor: QueryCursor) -> HopBounds:
    """Read `{m,n}` or `{m,}`."""
    opening = cursor.expect("{")
    minimum = cursor.expect_integer("the smallest number of hops", maximum=HOPS_MAX)
    if not cursor.accept(","):
        hint = f"write {{{minimum},{minimum}}}" if cursor.is_at("}") else None
        cursor.fail("',' and the largest number of hops", hint=hint)
    maximum = None
    if not cursor.is_at("}"):
        maximum = cursor.expect_integer("the largest number of hops or '}'", maximum=HOPS_MAX)
    cursor.expect("}", what="'}' after the hop bounds")
    return HopBounds(minimum, maximum, cursor.build_span(opening.start))
