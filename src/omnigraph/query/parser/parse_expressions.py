"""Expressions: `or`, `and`, `not`, comparisons, and the operands between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from omnigraph.lang.lexer import Token, TokenKind
from omnigraph.lang.source_text import Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.ast import (
    AggregateCall,
    AggregateFunction,
    And,
    Bm25,
    BooleanLiteral,
    CompareOp,
    Comparison,
    DateLiteral,
    DateTimeLiteral,
    Expr,
    FloatLiteral,
    Identifier,
    IntegerLiteral,
    ListLiteral,
    Membership,
    Nearest,
    Not,
    Now,
    NullTest,
    Or,
    PropertyAccess,
    Rrf,
    StringLiteral,
    SystemAccess,
    SystemField,
    TextFunction,
    TextOp,
    TextPredicate,
    TextTest,
    Variable,
)
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor
from omnigraph.query.query_dialect_hints import VALUE_HINTS
from omnigraph.schema.ast import Name

AGGREGATES = {function.value: function for function in AggregateFunction}
BLOCK_WORDS = frozenset({"exists", *AGGREGATES})
COMPARE_OPS = {op.value: op for op in CompareOp}

_TEXT_OPS = {op.value: op for op in TextOp}
_INFIX_WORDS = frozenset({"in", "is", *_TEXT_OPS})
_OPERATORS = frozenset({"and", "or", *COMPARE_OPS, *_INFIX_WORDS})
# Bound once: to look a member up in its enum takes Python longer than to compare it.
_WORD, _VARIABLE, _PUNCTUATION = TokenKind.WORD, TokenKind.VARIABLE, TokenKind.PUNCTUATION
_STRING, _INTEGER = TokenKind.STRING, TokenKind.INTEGER
_LITERAL_KINDS = (_STRING, _INTEGER, TokenKind.FLOAT)
_OPERAND_MARKS = frozenset("([@")
_VALUE = "a value"


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


def expect_expr(cursor: QueryCursor, what: str) -> None:
    """Fail, saying what was expected, where no expression can start."""
    token = cursor.token
    is_mark = token.kind is _PUNCTUATION and token.text not in _OPERAND_MARKS
    if is_mark or token.kind is TokenKind.UNKNOWN:
        _fail_value(cursor, what)


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
    left = _parse_operand(cursor)
    token = cursor.token
    if token.kind is _PUNCTUATION:
        op = COMPARE_OPS.get(token.text)
        if op is None:
            return left
        cursor.at += 1
        right = _parse_operand(cursor)
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
        items = _parse_operand(cursor)
        return Membership(left, items, cursor.build_span(start))
    if word == "is":
        is_negated = cursor.accept("not")
        cursor.expect("null", what="'null'" if is_negated else "'null' or 'not null'")
        return NullTest(left, is_negated, cursor.build_span(start))
    right = _parse_operand(cursor)
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


# ---- operands ----


def _parse_operand(cursor: QueryCursor) -> Expr:
    cursor.collector.poll()
    token = cursor.token
    kind = token.kind
    if kind is _VARIABLE:
        return _parse_access(cursor)
    if kind is _WORD:
        return _parse_word(cursor)
    if kind is _PUNCTUATION and token.text == "(":
        cursor.advance()
        with cursor.enter_nesting():
            inner = parse_expr(cursor)
        cursor.expect(")")
        return inner
    if kind is _PUNCTUATION and token.text == "@":
        cursor.advance()
        name = cursor.expect_adjacent_ident("a system field")
        return SystemField(name.text, cursor.build_span(token.start))
    return _parse_literal(cursor, token, expected=_VALUE)


def parse_variable(cursor: QueryCursor, what: str = "a variable") -> Variable:
    """Read `$name`."""
    token = cursor.token
    if token.kind is not _VARIABLE:
        cursor.fail(what)
    cursor.advance()
    return Variable(token.text[1:], token.span)


def _parse_access(cursor: QueryCursor) -> Variable | PropertyAccess | SystemAccess:
    variable = parse_variable(cursor)
    if not cursor.accept("."):
        return variable
    if cursor.accept("@"):
        at = cursor.previous.start
        field = cursor.expect_adjacent_ident("a system field").text
        name = Name(field, cursor.build_span(at))
        return SystemAccess(variable, name, cursor.build_span(variable.span.start))
    name = cursor.expect_ident("a property name after '.'")
    return PropertyAccess(variable, name, cursor.build_span(variable.span.start))


def _parse_word(cursor: QueryCursor) -> Expr:
    token = cursor.token
    word = token.text
    if cursor.is_mark_at(1, "("):
        call = _CALLS.get(word)
        if call is not None:
            return call(cursor)
        if word not in RESERVED and cursor.peek().start == token.end:
            hint = cursor.find_dialect_hint() or suggest_similar(word, _CALLS)
            cursor.refuse(token.span, f"there is no function '{word}'", hint=hint)
    if word in ("true", "false"):
        cursor.advance()
        return BooleanLiteral(word == "true", token.span)
    if word in RESERVED:
        return _parse_reserved(cursor)
    if word in BLOCK_WORDS and cursor.is_mark_at(1, "{"):
        cursor.refuse(
            token.span,
            f"'{word} {{ }}' is a clause of its own and cannot stand inside an expression",
            hint=_suggest_block(cursor),
        )
    if word[0].isupper():
        cursor.expect_ident(_VALUE)
    cursor.at += 1
    return Identifier(word, token.span)


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


def _parse_reserved(cursor: QueryCursor) -> Identifier:
    token = cursor.token
    if not _is_reserved_property(cursor):
        hints = {
            "null": "test for null with 'is null' or 'is not null'",
            "not": "put the negated condition in parentheses",
        }
        cursor.refuse(
            token.span,
            f"'{token.text}' is a reserved word and cannot be a value",
            hint=hints.get(token.text),
        )
    cursor.report_reserved(token.span, token.text, role="a property name in 'where'")
    cursor.advance()
    return Identifier(token.text, token.span)


# ---- literals ----


def _parse_literal(cursor: QueryCursor, token: Token, *, expected: str) -> Expr:
    if token.kind is _STRING:
        cursor.at += 1
        return StringLiteral(cursor.unescape(token), token.span)
    if token.kind is _INTEGER:
        return IntegerLiteral(cursor.expect_integer(expected), token.span)
    if token.kind is TokenKind.FLOAT:
        cursor.advance()
        return FloatLiteral(token.text, token.span)
    if not cursor.is_at("["):
        _fail_value(cursor, expected)
    return _parse_list(cursor)


def _fail_value(cursor: QueryCursor, expected: str) -> NoReturn:
    cursor.fail(expected, hint=cursor.find_dialect_hint(VALUE_HINTS))


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
    if token.kind is _WORD:
        if token.text in ("true", "false"):
            cursor.advance()
            return BooleanLiteral(token.text == "true", token.span)
        if token.text in ("date", "datetime") and cursor.is_mark_at(1, "("):
            return _CALLS[token.text](cursor)
    return _parse_literal(cursor, token, expected="a literal or a parameter in the list")


# ---- calls ----


def _parse_nearest(cursor: QueryCursor) -> Nearest:
    word = _open_call(cursor)
    access = _parse_access(cursor)
    if isinstance(access, Variable):
        cursor.refuse(access.span, "'nearest' ranks by a property: write nearest($v.property, …)")
    _expect_next_argument(cursor, word)
    query = _parse_argument(cursor)
    return Nearest(access, query, _close_call(cursor, word))


def _parse_aggregate(cursor: QueryCursor) -> AggregateCall:
    word = _open_call(cursor)
    argument = _parse_argument(cursor)
    return AggregateCall(AGGREGATES[word.text], argument, _close_call(cursor, word))


def _parse_bm25(cursor: QueryCursor) -> Bm25:
    word = _open_call(cursor)
    target, query = _parse_two_arguments(cursor, word)
    return Bm25(target, query, _close_call(cursor, word))


def _parse_rrf(cursor: QueryCursor) -> Rrf:
    word = _open_call(cursor)
    first = _parse_arm(cursor)
    _expect_next_argument(cursor, word)
    second = _parse_arm(cursor)
    k = _parse_argument(cursor) if cursor.accept(",") else None
    return Rrf(first, second, k, _close_call(cursor, word))


def _parse_arm(cursor: QueryCursor) -> Nearest | Bm25:
    if not (cursor.is_at("nearest", "bm25") and cursor.is_mark_at(1, "(")):
        cursor.fail("nearest(…) or bm25(…) as an arm of 'rrf'")
    return _parse_nearest(cursor) if cursor.is_at("nearest") else _parse_bm25(cursor)


def _parse_text_predicate(cursor: QueryCursor) -> TextPredicate:
    word = _open_call(cursor)
    function = TextFunction(word.text)
    target, query = _parse_two_arguments(cursor, word)
    has_edits = function is TextFunction.FUZZY and cursor.accept(",")
    edits = _parse_argument(cursor) if has_edits else None
    return TextPredicate(function, target, query, edits, _close_call(cursor, word))


def _parse_text_call(cursor: QueryCursor) -> TextTest:
    word = _open_call(cursor)
    left, right = _parse_two_arguments(cursor, word)
    return TextTest(_TEXT_OPS[word.text], left, right, True, _close_call(cursor, word))


def _parse_now(cursor: QueryCursor) -> Now:
    word = _open_call(cursor)
    return Now(_close_call(cursor, word))


def _parse_date(cursor: QueryCursor) -> DateLiteral:
    word = _open_call(cursor)
    text, _ = cursor.expect_string("a string in date(…)")
    return DateLiteral(text, _close_call(cursor, word))


def _parse_datetime(cursor: QueryCursor) -> DateTimeLiteral:
    word = _open_call(cursor)
    text, _ = cursor.expect_string("a string in datetime(…)")
    return DateTimeLiteral(text, _close_call(cursor, word))


def _open_call(cursor: QueryCursor) -> Token:
    word = cursor.advance()
    cursor.expect("(")
    return word


def _parse_two_arguments(cursor: QueryCursor, word: Token) -> tuple[Expr, Expr]:
    first = _parse_argument(cursor)
    _expect_next_argument(cursor, word)
    return first, _parse_argument(cursor)


def _parse_argument(cursor: QueryCursor) -> Expr:
    with cursor.enter_nesting():
        return parse_expr(cursor)


def _expect_next_argument(cursor: QueryCursor, word: Token) -> None:
    cursor.expect(",", what=f"',' and the second argument of '{word.text}'")


def _close_call(cursor: QueryCursor, word: Token) -> Span:
    cursor.expect(")", what=f"')' to close '{word.text}('")
    return cursor.build_span(word.start)


_CALLS: dict[str, Callable[[QueryCursor], Expr]] = {
    **dict.fromkeys(AGGREGATES, _parse_aggregate),
    **dict.fromkeys(_TEXT_OPS, _parse_text_call),
    **dict.fromkeys(map(str, TextFunction), _parse_text_predicate),
    "bm25": _parse_bm25,
    "date": _parse_date,
    "datetime": _parse_datetime,
    "nearest": _parse_nearest,
    "now": _parse_now,
    "rrf": _parse_rrf,
}
