"""Calls of searches: text predicates, scores and ranks, and the options of calls."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.lexer import Token, TokenKind
from omnigraph.query.ast import (
    Bm25,
    Expr,
    NamedArgument,
    Nearest,
    Rrf,
    TextFunction,
    TextPredicate,
    Variable,
)
from omnigraph.query.parser.parse_aggregates import ReadExpr
from omnigraph.query.parser.parse_literals import close_call, open_call, parse_access
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.schema.ast import Name

# Those of the reference language, before whose parenthesis there may be a blank.
PLAIN_PREDICATES: Final = ("search", "match_text", "fuzzy")


def parse_text_predicate(cursor: QueryCursor, read: ReadExpr) -> TextPredicate:
    """Read `search(f, q)`, `fuzzy(f, q, edits)` and the like."""
    if cursor.token.text not in PLAIN_PREDICATES:
        cursor.require_lenient(cursor.token.span, f"the predicate '{cursor.token.text}'")
    word = open_call(cursor)
    function = TextFunction(word.text)
    target, query = parse_two_arguments(cursor, word, read)
    has_edits = function is TextFunction.FUZZY and cursor.accept(",")
    edits = _parse_argument(cursor, read) if has_edits else None
    return TextPredicate(function, target, query, edits, close_call(cursor, word))


def parse_nearest(cursor: QueryCursor, read: ReadExpr) -> Nearest:
    """Read `nearest($v.p, query, metric: m)`."""
    word = open_call(cursor)
    access = parse_access(cursor)
    if isinstance(access, Variable):
        cursor.refuse(access.span, "'nearest' ranks by a property: write nearest($v.property, …)")
    _expect_next_argument(cursor, word)
    query = _parse_argument(cursor, read)
    options: tuple[NamedArgument, ...] = ()
    if cursor.is_at(",") and cursor.is_mark_at(2, ":"):
        cursor.require_lenient(cursor.advance().span, "an option of 'nearest'")
        options = parse_options(cursor, read)
    return Nearest(access, query, options, close_call(cursor, word))


def parse_bm25(cursor: QueryCursor, read: ReadExpr) -> Bm25:
    """Read `bm25(field, query)`."""
    word = open_call(cursor)
    target, query = parse_two_arguments(cursor, word, read)
    return Bm25(target, query, close_call(cursor, word))


def parse_rrf(cursor: QueryCursor, read: ReadExpr) -> Rrf:
    """Read `rrf(first, second, …, k)`."""
    word = open_call(cursor)
    arms = [_parse_arm(cursor, read)]
    _expect_next_argument(cursor, word)
    arms.append(_parse_arm(cursor, read))
    k = None
    while k is None and cursor.accept(","):
        if _is_at_arm(cursor):
            cursor.require_lenient(cursor.token.span, "a third arm of 'rrf'")
            arms.append(_parse_arm(cursor, read))
        else:
            k = _parse_rank_constant(cursor, read)
    return Rrf(tuple(arms), k, close_call(cursor, word))


def _parse_rank_constant(cursor: QueryCursor, read: ReadExpr) -> Expr:
    """The `k` of `rrf`, with its name or without it."""
    if is_at_option(cursor):
        if not cursor.is_at("k"):
            cursor.fail("'k: …' or another arm of 'rrf'")
        cursor.require_lenient(cursor.advance().span, "an option of 'rrf'")
        cursor.advance()
    return _parse_argument(cursor, read)


def _is_at_arm(cursor: QueryCursor) -> bool:
    return cursor.is_at("nearest", "bm25") and cursor.is_mark_at(1, "(")


def _parse_arm(cursor: QueryCursor, read: ReadExpr) -> Nearest | Bm25:
    if not _is_at_arm(cursor):
        cursor.fail("nearest(…) or bm25(…) as an arm of 'rrf'")
    is_nearest = cursor.is_at("nearest")
    return parse_nearest(cursor, read) if is_nearest else parse_bm25(cursor, read)


def is_at_option(cursor: QueryCursor) -> bool:
    """Whether a name and a colon come next."""
    return cursor.token.kind is TokenKind.WORD and cursor.is_mark_at(1, ":")


def parse_options(cursor: QueryCursor, read: ReadExpr) -> tuple[NamedArgument, ...]:
    """Read `name: value` as often as it comes, with commas between."""
    options: list[NamedArgument] = []
    while is_at_option(cursor):
        token = cursor.advance()
        cursor.advance()
        with cursor.enter_arguments():
            value = read(cursor)
        span = cursor.build_span(token.start)
        options.append(NamedArgument(Name(token.text, token.span), value, span))
        if not cursor.accept(","):
            break
    return tuple(options)


def parse_two_arguments(cursor: QueryCursor, word: Token, read: ReadExpr) -> tuple[Expr, Expr]:
    """Read two arguments and the comma between them."""
    first = _parse_argument(cursor, read)
    _expect_next_argument(cursor, word)
    return first, _parse_argument(cursor, read)


def _parse_argument(cursor: QueryCursor, read: ReadExpr) -> Expr:
    with cursor.enter_nesting():
        return read(cursor)


def _expect_next_argument(cursor: QueryCursor, word: Token) -> None:
    cursor.expect(",", what=f"',' and the second argument of '{word.text}'")
