"""Expressions: `or`, `and`, `not`, comparisons, and the operands between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NoReturn

from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.lang.source_text import Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.ast import (
    AggregateCall,
    And,
    Arithmetic,
    ArithmeticOp,
    BlockValue,
    BooleanLiteral,
    Case,
    Clause,
    CompareOp,
    Comparison,
    Expr,
    FunctionCall,
    Identifier,
    Membership,
    Minus,
    Not,
    Now,
    NullLiteral,
    Or,
    SystemField,
    TextFunction,
    TextOp,
    TextTest,
)
from omnigraph.query.function_signatures import FUNCTION_NAMES
from omnigraph.query.parser.parse_aggregates import (
    AGGREGATES,
    BLOCK_AGGREGATES,
    parse_aggregate,
)
from omnigraph.query.parser.parse_literals import (
    VALUE,
    close_call,
    open_call,
    parse_access,
    parse_literal,
    parse_time,
    read_sign,
    refuse_arrow,
)
from omnigraph.query.parser.parse_searches import (
    PLAIN_PREDICATES,
    is_at_option,
    parse_bm25,
    parse_nearest,
    parse_options,
    parse_rrf,
    parse_text_predicate,
    parse_two_arguments,
)
from omnigraph.query.parser.parse_type_sets import parse_is
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor

BLOCK_WORDS = frozenset({"exists", *BLOCK_AGGREGATES})
COMPARE_OPS = {op.value: op for op in CompareOp}

_TEXT_OPS = {op.value: op for op in TextOp}
_INFIX_WORDS = frozenset({"in", "is", *_TEXT_OPS})
_SUMS = {op.value: op for op in (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT)}
_PRODUCTS = {op.value: op for op in ArithmeticOp if op.value not in _SUMS}
ARITHMETIC = frozenset({*_SUMS, *_PRODUCTS})
_OPERATORS = frozenset({"and", "or", *COMPARE_OPS, *_INFIX_WORDS, *ARITHMETIC})
# Bound once: to look a member up in its enum takes Python longer than to compare it.
_WORD, _VARIABLE, _PUNCTUATION = TokenKind.WORD, TokenKind.VARIABLE, TokenKind.PUNCTUATION
_STRING, _INTEGER = TokenKind.STRING, TokenKind.INTEGER
_LITERAL_KINDS = (_STRING, _INTEGER, TokenKind.FLOAT)
# How many operators of one expression may follow each other without parentheses.
_CHAIN_MAX = 128
_NULL_HINT = "test for null with 'is null' or 'is not null'"


def parse_expr(cursor: QueryCursor) -> Expr:
    """Read an expression: `and` groups joined by `or`."""
    token = cursor.token
    if token.kind in _LITERAL_KINDS and cursor.peek().text not in _OPERATORS:
        # Most values are written so, and need not go through every level of the grammar.
        return _parse_operand(cursor)
    first = _parse_and(cursor)
    if not _is_at_operator(cursor, "or"):
        return first
    operands = [first]
    while _is_at_operator(cursor, "or"):
        cursor.advance()
        operands.append(_parse_and(cursor))
    return Or(tuple(operands), cursor.build_span(token.start))


def _parse_and(cursor: QueryCursor) -> Expr:
    start = cursor.token.start
    first = _parse_not(cursor)
    if not _is_at_operator(cursor, "and"):
        return first
    operands = [first]
    while _is_at_operator(cursor, "and"):
        cursor.advance()
        operands.append(_parse_not(cursor))
    return And(tuple(operands), cursor.build_span(start))


def _parse_not(cursor: QueryCursor) -> Expr:
    if cursor.token.text != "not" or _is_reserved_property(cursor):
        return _parse_comparison(cursor)
    token = cursor.advance()
    if cursor.is_at("{"):
        cursor.refuse(
            token.span,
            "'not { }' is a clause of its own and cannot stand inside an expression",
            hint="write it on its own line, or negate a condition with 'not ( … )'",
        )
    with cursor.enter_nesting():
        operand = _parse_not(cursor)
    return Not(operand, cursor.build_span(token.start))


def _parse_comparison(cursor: QueryCursor) -> Expr:
    start = cursor.token.start
    left = _parse_sum(cursor)
    token = cursor.token
    if token.kind is _PUNCTUATION:
        op = COMPARE_OPS.get(token.text)
        if op is None:
            return left
        cursor.at += 1
        right = _parse_sum(cursor)
        for side in (left, right):
            if isinstance(side, NullLiteral):
                _refuse_null(cursor, side.span)
        found: Expr = Comparison(op, left, right, cursor.build_span(start))
    elif _is_at_infix_word(cursor):
        found = _parse_word_operator(cursor, left, start)
    else:
        return left
    after = cursor.token
    if after.text in _OPERATORS and (after.text in COMPARE_OPS or _is_at_infix_word(cursor)):
        cursor.refuse(
            after.span,
            "comparisons do not chain",
            hint="join two comparisons with 'and', or put one of them in parentheses",
        )
    return found


def _parse_word_operator(cursor: QueryCursor, left: Expr, start: int) -> Expr:
    word = cursor.advance().text
    if word == "in":
        items = _parse_sum(cursor)
        return Membership(left, items, cursor.build_span(start))
    if word == "is":
        return parse_is(cursor, left, start)
    right = _parse_sum(cursor)
    return TextTest(_TEXT_OPS[word], left, right, False, cursor.build_span(start))


def _is_at_operator(cursor: QueryCursor, word: str) -> bool:
    # Before a colon the word is the key of the next assignment.
    return cursor.token.text == word and not cursor.is_mark_at(1, ":")


def _is_at_infix_word(cursor: QueryCursor) -> bool:
    token = cursor.token
    if token.text not in _INFIX_WORDS or token.kind is not _WORD:
        return False
    if cursor.is_mark_at(1, ":"):
        return False
    # `contains(a, b)` is a call that starts the next clause; `contains (a)` is the operator.
    is_call = token.text in _TEXT_OPS and cursor.is_mark_at(1, "(")
    return not (is_call and cursor.has_comma_inside(cursor.at + 1))


# ---- arithmetic ----


def _parse_sum(cursor: QueryCursor) -> Expr:
    start = cursor.token.start
    found = _parse_operand(cursor)
    if cursor.token.text not in ARITHMETIC:
        # Most operands stand alone.
        return found
    found = _parse_product(cursor, found, start)
    while (op := _SUMS.get(cursor.token.text)) is not None:
        refuse_arrow(cursor)
        cursor.require_lenient(cursor.advance().span, "arithmetic")
        right_start = cursor.token.start
        right = _parse_product(cursor, _parse_operand(cursor), right_start)
        found = Arithmetic(op, found, right, cursor.build_span(start))
    _refuse_long_chain(cursor, found)
    return found


def _parse_product(cursor: QueryCursor, first: Expr, start: int) -> Expr:
    found = first
    while (op := _PRODUCTS.get(cursor.token.text)) is not None:
        cursor.require_lenient(cursor.advance().span, "arithmetic")
        found = Arithmetic(op, found, _parse_operand(cursor), cursor.build_span(start))
    if found is not first:
        _refuse_long_chain(cursor, found)
    return found


def _refuse_long_chain(cursor: QueryCursor, found: Expr) -> None:
    """Refuse operators in a row that are too many: each of them nests what is before it."""
    span, length = found.span, 0
    while isinstance(found, Arithmetic):
        found, length = found.left, length + 1
    if length > _CHAIN_MAX:
        cursor.refuse(
            span,
            f"more than {_CHAIN_MAX} arithmetic operators in a row",
            hint="put parts in parentheses, such as (a + b) + (c + d)",
        )


def _parse_minus(cursor: QueryCursor) -> Minus:
    token = read_sign(cursor)
    operand = _parse_operand(cursor)
    return Minus(operand, cursor.build_span(token.start))


# ---- operands ----


def _parse_operand(cursor: QueryCursor) -> Expr:
    cursor.collector.poll()
    token = cursor.token
    kind = token.kind
    if kind is _VARIABLE:
        return parse_access(cursor)
    if kind is _WORD:
        return _parse_word(cursor)
    if kind is _PUNCTUATION and token.text == "(":
        cursor.advance()
        with cursor.enter_nesting():
            inner = parse_expr(cursor)
        cursor.expect(")")
        return inner
    if kind is _PUNCTUATION and token.text == "-":
        return _parse_minus(cursor)
    if kind is _PUNCTUATION and token.text == "@":
        cursor.advance()
        name = cursor.expect_adjacent_ident("a system field")
        return SystemField(name.text, cursor.build_span(token.start))
    return parse_literal(cursor, token, expected=VALUE)


def _parse_word(cursor: QueryCursor) -> Expr:
    token = cursor.token
    word = token.text
    if cursor.is_mark_at(1, "("):
        call = _CALLS.get(word)
        if call is not None:
            return call(cursor)
        is_name = word not in RESERVED and not word[0].isupper()
        if is_name and cursor.peek().start == token.end:
            return _NAMED_CALLS.get(word, _parse_function)(cursor)
    if word in ("true", "false"):
        cursor.advance()
        return BooleanLiteral(word == "true", token.span)
    if word == "case" and cursor.is_mark_at(1, "{"):
        return _parse_case(cursor)
    if word in RESERVED:
        return _parse_reserved(cursor)
    if word in BLOCK_WORDS and cursor.is_mark_at(1, "{"):
        return _parse_block_value(cursor)
    if word[0].isupper():
        cursor.expect_ident(VALUE)
    cursor.at += 1
    return Identifier(word, token.span)


def _parse_block_value(cursor: QueryCursor) -> BlockValue:
    """`exists { … }` or `count { … }` as a value."""
    token = cursor.token
    if cursor.mode is Mode.STRICT:
        cursor.refuse(
            token.span,
            f"'{token.text} {{ }}' is a clause of its own and cannot stand inside an expression",
            hint=_suggest_block(cursor),
        )
    cursor.advance()
    function = AGGREGATES.get(token.text)
    clauses = _read_block(cursor, token.text)
    return BlockValue(function, None, clauses, cursor.build_span(token.start))


def _read_block(cursor: QueryCursor, word: str) -> tuple[Clause, ...]:
    """The clauses of a block inside an expression, where nothing around it matters."""
    depth, is_in_where = cursor.argument_depth, cursor.is_in_where
    cursor.argument_depth, cursor.is_in_where = 0, False
    try:
        return cursor.read_block(cursor, f"'{word}'")
    finally:
        cursor.argument_depth, cursor.is_in_where = depth, is_in_where


def _suggest_block(cursor: QueryCursor) -> str:
    word, before = cursor.token.text, cursor.previous.text
    if word == "exists" and before == "not":
        return "write 'not { … }'"
    if word in AGGREGATES and before in COMPARE_OPS:
        return f"put the block on the left of the comparison: {word} {{ … }} > 2"
    return "write it as a clause of its own"


def _is_reserved_property(cursor: QueryCursor) -> bool:
    is_compared = cursor.is_mark_at(1, *COMPARE_OPS)
    return cursor.is_in_where and is_compared and cursor.token.text in RESERVED


def _parse_reserved(cursor: QueryCursor) -> Identifier | NullLiteral:
    token = cursor.token
    if token.text == "null" and cursor.argument_depth:
        cursor.advance()
        return NullLiteral(token.span)
    if not _is_reserved_property(cursor):
        if token.text == "null":
            _refuse_null(cursor, token.span)
        cursor.refuse(
            token.span,
            f"'{token.text}' is a reserved word and cannot be a value",
            hint="put the negated condition in parentheses" if token.text == "not" else None,
        )
    cursor.report_reserved(token.span, token.text, role="a property name in 'where'")
    cursor.advance()
    return Identifier(token.text, token.span)


def _refuse_null(cursor: QueryCursor, span: Span) -> NoReturn:
    cursor.refuse(span, "'null' is a reserved word and cannot be a value", hint=_NULL_HINT)


# ---- calls ----


def _parse_aggregate(cursor: QueryCursor) -> AggregateCall | BlockValue:
    call = parse_aggregate(cursor, parse_expr)
    if cursor.mode is Mode.STRICT or not cursor.is_at("{"):
        return call
    clauses = _read_block(cursor, str(call.function))
    return BlockValue(call.function, call, clauses, cursor.build_span(call.span.start))


def _parse_text_call(cursor: QueryCursor) -> TextTest:
    word = open_call(cursor)
    left, right = parse_two_arguments(cursor, word, parse_expr)
    return TextTest(_TEXT_OPS[word.text], left, right, True, close_call(cursor, word))


def _parse_now(cursor: QueryCursor) -> Now:
    word = open_call(cursor)
    return Now(close_call(cursor, word))


def _parse_time(cursor: QueryCursor) -> Expr:
    is_literal = cursor.peek(2).kind is _STRING and cursor.is_mark_at(3, ")")
    return parse_time(cursor) if is_literal else _parse_function(cursor)


def _parse_function(cursor: QueryCursor) -> FunctionCall:
    """`name(a, b)`; an unknown name is reported, and its arguments are read all the same."""
    token = cursor.token
    if token.text not in FUNCTION_NAMES:
        known = (*_CALLS, *FUNCTION_NAMES, *_NAMED_CALLS)
        hint = cursor.find_dialect_hint() or suggest_similar(token.text, known)
        message = f"there is no function '{token.text}'"
        cursor.report(token.span, message, hint=hint, code="T111")
    cursor.require_lenient(token.span, f"the function '{token.text}'")
    word = open_call(cursor)
    arguments: list[Expr] = []
    with cursor.enter_arguments():
        while not (cursor.is_at(")") or is_at_option(cursor)):
            arguments.append(parse_expr(cursor))
            if not cursor.accept(","):
                break
    options = parse_options(cursor, parse_expr)
    return FunctionCall(word.text, tuple(arguments), options, close_call(cursor, word))


def _parse_case(cursor: QueryCursor) -> Case:
    word = cursor.advance()
    cursor.require_lenient(word.span, "'case'")
    cursor.expect("{")
    branches: list[tuple[Expr, Expr]] = []
    otherwise = None
    with cursor.enter_arguments():
        while not cursor.is_at("}") and otherwise is None:
            if cursor.is_at("else") and cursor.is_mark_at(1, ":"):
                cursor.advance()
                cursor.advance()
                otherwise = parse_expr(cursor)
            else:
                condition = parse_expr(cursor)
                cursor.expect(":", what="':' and the value of this condition")
                branches.append((condition, parse_expr(cursor)))
            if not cursor.accept(","):
                break
    closing = "'}' after the last branch of 'case'" if otherwise else "',' or '}' in 'case'"
    cursor.expect("}", what=closing)
    span = cursor.build_span(word.start)
    if not branches:
        cursor.refuse(span, "'case' needs a condition", hint="write case { $a.n > 1: 2, else: 0 }")
    return Case(tuple(branches), otherwise, span)


_CALLS: dict[str, Callable[[QueryCursor], Expr]] = {
    **dict.fromkeys(BLOCK_AGGREGATES, _parse_aggregate),
    **dict.fromkeys(_TEXT_OPS, _parse_text_call),
    **dict.fromkeys(PLAIN_PREDICATES, partial(parse_text_predicate, read=parse_expr)),
    "bm25": partial(parse_bm25, read=parse_expr),
    "date": _parse_time,
    "datetime": _parse_time,
    "nearest": partial(parse_nearest, read=parse_expr),
    "now": _parse_now,
    "rrf": partial(parse_rrf, read=parse_expr),
}
_NAMED_CALLS: dict[str, Callable[[QueryCursor], Expr]] = {
    **dict.fromkeys(AGGREGATES, _parse_aggregate),
    **dict.fromkeys(map(str, TextFunction), partial(parse_text_predicate, read=parse_expr)),
}
