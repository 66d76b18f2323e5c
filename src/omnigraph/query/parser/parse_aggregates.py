"""Aggregates, and the order keys and limits of a query, a block or one of them."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.query.ast import (
    AggregateCall,
    AggregateFunction,
    AllRows,
    Direction,
    Expr,
    Identifier,
    Nearest,
    OrderKey,
    Variable,
)
from omnigraph.query.parser.parse_literals import (
    close_call,
    expect_expr,
    open_call,
    parse_variable,
)
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor

# How an expression is read; aggregates stand inside expressions.
ReadExpr = Callable[[QueryCursor], Expr]

AGGREGATES = {function.value: function for function in AggregateFunction}
# The aggregates of the reference language, which may also stand before a block.
BLOCK_AGGREGATES = ("count", "sum", "avg", "min", "max")
LIMIT_MAX = 2**64 - 1

_DIRECTIONS = {direction.value: direction for direction in Direction}
# After these, `distinct` is a word that begins nothing.
_ENDS = frozenset({")", ",", ".", "=", "!=", "<", "<=", ">", ">=", "+", "*", "/", "%"})


def parse_aggregate(cursor: QueryCursor, read: ReadExpr) -> AggregateCall:
    """Read `count(e)`, `collect(distinct e order { k } limit 3)` and the like."""
    if cursor.token.text not in BLOCK_AGGREGATES:
        cursor.require_lenient(cursor.token.span, f"the aggregate '{cursor.token.text}'")
    word = open_call(cursor)
    function = AGGREGATES[word.text]
    is_distinct = cursor.is_at("distinct") and not cursor.is_mark_at(1, *_ENDS)
    if is_distinct:
        cursor.require_lenient(cursor.advance().span, "'distinct'")
    second = None
    order: tuple[OrderKey, ...] = ()
    with cursor.enter_nesting():
        argument = _parse_all_rows(cursor, function) or read(cursor)
        if cursor.is_at(",") and function.value not in BLOCK_AGGREGATES:
            cursor.advance()
            second = read(cursor)
        if cursor.is_at("order") and cursor.is_mark_at(1, "{"):
            cursor.require_lenient(cursor.advance().span, "the order of an aggregate")
            order = parse_order(cursor, read)
    limit = None
    if cursor.is_at("limit"):
        cursor.require_lenient(cursor.advance().span, "the limit of an aggregate")
        limit = cursor.expect_integer("an integer after 'limit'", maximum=LIMIT_MAX)
    span = close_call(cursor, word)
    return AggregateCall(function, argument, second, is_distinct, order, limit, span)


def _parse_all_rows(cursor: QueryCursor, function: AggregateFunction) -> AllRows | None:
    if function is not AggregateFunction.COUNT or not cursor.is_at("*"):
        return None
    cursor.require_lenient(cursor.token.span, "count(*)")
    return AllRows(cursor.advance().span)


def parse_having(cursor: QueryCursor, read: ReadExpr) -> tuple[tuple[Expr, ...], Span]:
    """Read `having { condition; … }`, if it comes next, and where it stands."""
    if not (cursor.is_at("having") and cursor.is_mark_at(1, "{")):
        return (), NO_SPAN
    word = cursor.advance()
    cursor.require_lenient(word.span, "'having'")
    opening, errors_before = cursor.token, cursor.error_count
    conditions = cursor.parse_members("'having'", lambda at: _parse_condition(at, read))
    if not conditions and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), "'having' needs at least one condition")
    return conditions, cursor.build_span(word.start)


def _parse_condition(cursor: QueryCursor, read: ReadExpr) -> Expr:
    expect_expr(cursor, "a condition or '}'")
    condition = read(cursor)
    cursor.accept(";")
    return condition


def parse_order(cursor: QueryCursor, read: ReadExpr) -> tuple[OrderKey, ...]:
    """Read `{ key, … }`, after the word `order`."""
    opening = cursor.token
    errors_before = cursor.error_count
    keys = cursor.parse_members("'order'", lambda at: _parse_order_key(at, read))
    if not keys and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), "'order' needs at least one key")
    return keys


def _parse_order_key(cursor: QueryCursor, read: ReadExpr) -> OrderKey:
    start = cursor.token.start
    expect_expr(cursor, "an order key or '}'")
    value = _parse_alias_reference(cursor) or read(cursor)
    direction = None
    if cursor.is_at(*_DIRECTIONS):
        token = cursor.advance()
        direction = _DIRECTIONS[token.text]
        if isinstance(value, Nearest):
            cursor.report(
                token.span,
                f"'nearest' takes no direction: remove '{token.text}'",
                hint="the nearest come first",
            )
    span = cursor.build_span(start)
    if not cursor.is_at("}"):
        cursor.expect(",", what="',' or '}' after the order key")
        if cursor.is_at("}"):
            cursor.fail("another order key after ','")
    return OrderKey(value, direction, span)


def _parse_alias_reference(cursor: QueryCursor) -> Expr | None:
    token = cursor.token
    after = cursor.peek().text
    if token.text not in RESERVED or after not in (",", "}", *_DIRECTIONS):
        return None
    cursor.report_reserved(token.span, token.text, role="an alias")
    cursor.advance()
    return Identifier(token.text, token.span)


def parse_count(cursor: QueryCursor, word: str) -> tuple[int | Variable | None, Span]:
    """`limit` or `offset`, and a number of rows."""
    if not cursor.is_at(word):
        return None, NO_SPAN
    start = cursor.token.start
    if word == "offset":
        cursor.require_lenient(cursor.token.span, "'offset'")
    cursor.advance()
    count = _parse_row_count(cursor, f"an integer after '{word}'")
    if word == "offset" and cursor.is_at("limit"):
        cursor.fail("what follows 'offset'", hint="limit comes first: limit 10 offset 5")
    return count, cursor.build_span(start)


def _parse_row_count(cursor: QueryCursor, what: str) -> int | Variable:
    if cursor.token.kind is TokenKind.VARIABLE and cursor.mode is Mode.LENIENT:
        return parse_variable(cursor)
    if cursor.token.kind is not TokenKind.INTEGER:
        is_variable = cursor.token.kind is TokenKind.VARIABLE
        hint = "in strict mode a limit is a written integer" if is_variable else None
        cursor.fail(what, hint=hint)
    return cursor.expect_integer(what, maximum=LIMIT_MAX)
