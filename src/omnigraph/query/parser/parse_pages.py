"""What asks for a page of a result: `after $cursor`, and `total`."""

from __future__ import annotations

from omnigraph.lang.lexer import TokenKind
from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.query.ast import Variable
from omnigraph.query.parser.parse_literals import parse_variable
from omnigraph.query.parser.query_cursor import QueryCursor


def parse_after(cursor: QueryCursor) -> tuple[Variable | None, Span]:
    """Read `after $cursor`, if it stands here."""
    if not cursor.is_at("after"):
        return None, NO_SPAN
    word = cursor.advance()
    cursor.require_lenient(word.span, "'after'")
    if cursor.token.kind is not TokenKind.VARIABLE:
        hint = "it takes the cursor of the page before: after $cursor"
        cursor.fail("a parameter after 'after'", hint=hint)
    return parse_variable(cursor), cursor.build_span(word.start)


def parse_total(cursor: QueryCursor) -> Span:
    """Read `total`, if it stands here."""
    if not cursor.is_at("total"):
        return NO_SPAN
    word = cursor.advance()
    cursor.require_lenient(word.span, "'total'")
    return word.span
