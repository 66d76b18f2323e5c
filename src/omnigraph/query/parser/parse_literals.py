"""Literals, variables and what stands in a list: everything that holds no expression."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.lang.lexer import Mode, Token, TokenKind
from omnigraph.lang.source_text import Span
from omnigraph.lang.token_cursor import INTEGER_MAX
from omnigraph.query.ast import (
    BooleanLiteral,
    DateLiteral,
    DateTimeLiteral,
    Expr,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Minus,
    PropertyAccess,
    StringLiteral,
    SystemAccess,
    Variable,
)
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.query.query_dialect_hints import VALUE_HINTS
from omnigraph.schema.ast import Name

# Bound once: to look a member up in its enum takes Python longer than to compare it.
_WORD, _VARIABLE, _PUNCTUATION = TokenKind.WORD, TokenKind.VARIABLE, TokenKind.PUNCTUATION
_STRING, _INTEGER = TokenKind.STRING, TokenKind.INTEGER
VALUE = "a value"
# The greatest U64; the reference has no literals beyond I64.
_INTEGER_MAX = 2**64 - 1
_ITEM = "a literal or a parameter in the list"
_OPERAND_MARKS = frozenset("([@-")


def expect_expr(cursor: QueryCursor, what: str) -> None:
    """Fail, saying what was expected, where no expression can start."""
    token = cursor.token
    is_mark = token.kind is _PUNCTUATION and token.text not in _OPERAND_MARKS
    if is_mark or token.kind is TokenKind.UNKNOWN:
        fail_value(cursor, what)


def parse_variable(cursor: QueryCursor, what: str = "a variable") -> Variable:
    """Read `$name`."""
    token = cursor.token
    if token.kind is not _VARIABLE:
        cursor.fail(what)
    cursor.advance()
    return Variable(token.text[1:], token.span)


def parse_access(cursor: QueryCursor) -> Variable | PropertyAccess | SystemAccess:
    """Read `$name`, `$name.property` or `$name.@field`."""
    variable = parse_variable(cursor)
    if not cursor.accept("."):
        return variable
    if cursor.accept("@"):
        at = cursor.previous.start
        field = cursor.expect_adjacent_ident("a system field").text
        name = Name(field, cursor.build_span(at))
        return SystemAccess(variable, name, cursor.build_span(variable.span.start))
    name = cursor.expect_ident("a property name after '.'")
    is_optional = cursor.is_at("?")
    if is_optional:
        cursor.require_lenient(cursor.advance().span, "'?' after a property")
    return PropertyAccess(variable, name, is_optional, cursor.build_span(variable.span.start))


def parse_literal(cursor: QueryCursor, token: Token, *, expected: str) -> Expr:
    """Read a number, a text or a list."""
    if token.kind is _STRING:
        cursor.at += 1
        return StringLiteral(cursor.unescape(token), token.span)
    if token.kind is _INTEGER:
        maximum = INTEGER_MAX if cursor.mode is Mode.STRICT else _INTEGER_MAX
        return IntegerLiteral(cursor.expect_integer(expected, maximum=maximum), token.span)
    if token.kind is TokenKind.FLOAT:
        cursor.advance()
        return FloatLiteral(token.text, token.span)
    if not cursor.is_at("["):
        fail_value(cursor, expected)
    return _parse_list(cursor)


def fail_value(cursor: QueryCursor, expected: str) -> NoReturn:
    """Record that a value was expected here, with the hint for what stands here instead."""
    cursor.fail(expected, hint=cursor.find_dialect_hint(VALUE_HINTS))


def read_sign(cursor: QueryCursor) -> Token:
    """Read the minus sign of a value."""
    refuse_arrow(cursor)
    token = cursor.advance()
    cursor.require_lenient(token.span, "a minus sign")
    return token


def refuse_arrow(cursor: QueryCursor) -> None:
    """`-[`, `--`: what other languages write between nodes, or before a comment."""
    is_arrow = cursor.is_at("-") and cursor.is_mark_at(1, "[", "-")
    if is_arrow and cursor.peek().start == cursor.token.end:
        fail_value(cursor, VALUE)


def _parse_list(cursor: QueryCursor) -> ListLiteral:
    start = cursor.advance().start
    items: list[Expr] = []
    with cursor.enter_nesting():
        if not cursor.is_at("]"):
            items.append(_parse_list_item(cursor))
            while cursor.accept(","):
                items.append(_parse_list_item(cursor))
    cursor.expect("]", what="',' or ']' in the list")
    return ListLiteral(tuple(items), cursor.build_span(start))


def _parse_list_item(cursor: QueryCursor) -> Expr:
    cursor.collector.poll()
    token = cursor.token
    if token.kind is _VARIABLE:
        variable = parse_variable(cursor)
        if cursor.is_at("."):
            cursor.refuse(token.span, "a list holds literals and parameters, no properties")
        return variable
    if token.text == "-" and token.kind is _PUNCTUATION:
        sign = read_sign(cursor)
        number = parse_literal(cursor, cursor.token, expected=_ITEM)
        return Minus(number, cursor.build_span(sign.start))
    if token.kind is _WORD:
        if token.text in ("true", "false"):
            cursor.advance()
            return BooleanLiteral(token.text == "true", token.span)
        if token.text in ("date", "datetime") and cursor.is_mark_at(1, "("):
            return parse_time(cursor)
    return parse_literal(cursor, token, expected=_ITEM)


# ---- calls that hold a text ----


def parse_time(cursor: QueryCursor) -> DateLiteral | DateTimeLiteral:
    """Read `date("…")` or `datetime("…")`."""
    word = open_call(cursor)
    text, _ = cursor.expect_string(f"a string in {word.text}(…)")
    literal = DateLiteral if word.text == "date" else DateTimeLiteral
    return literal(text, close_call(cursor, word))


def open_call(cursor: QueryCursor) -> Token:
    """Read the name of a call and its opening parenthesis."""
    word = cursor.advance()
    cursor.expect("(")
    return word


def close_call(cursor: QueryCursor, word: Token) -> Span:
    """Read the closing parenthesis of a call."""
    cursor.expect(")", what=f"')' to close '{word.text}('")
    return cursor.build_span(word.start)
