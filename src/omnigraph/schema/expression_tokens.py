"""An expression inside a schema: its tokens as one text, and the names in it.

The words of expressions belong to the query language, which is built on this one: here an
expression is a text in parentheses or after a sign, spelled in one way, with the names that it may
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from omnigraph.lang.lexer import Token, TokenKind
from omnigraph.lang.source_text import Span
from omnigraph.lang.token_cursor import Cursor
from omnigraph.schema.ast import ExpressionText

# Words of expressions that are names nowhere else, and those that are where a type has them.
EXPRESSION_WORDS: Final = frozenset(
    {"and", "or", "not", "is", "null", "in", "true", "false", "case", "else", "contains"}
    | {"starts_with", "ends_with", "matches", "search", "from", "to"}
)
_OPERATORS: Final = frozenset({"and", "or", "not", "in", "is"})
_OPENERS: Final = {"(": ")", "[": "]", "{": "}"}
_NO_BLANK_BEFORE: Final = frozenset({")", "]", ",", ":", "."})
_NO_BLANK_AFTER: Final = frozenset({"(", "[", ".", "@"})
# After these a minus is a sign.
_BEFORE_OPERANDS: Final = frozenset(
    {"(", "[", "{", ",", ":", "+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">="} | _OPERATORS
)


def parse_expression_text(cursor: Cursor) -> ExpressionText:
    """Read everything up to the parenthesis that closes the one before."""
    return _parse_tokens(cursor, lambda: cursor.is_at(")"), "an expression and ')'")


def parse_default_text(cursor: Cursor) -> ExpressionText:
    """Read everything up to what may stand after the default of a property."""

    def is_at_end() -> bool:
        after = cursor.peek().text
        is_member = cursor.token.kind is TokenKind.WORD and after == ":"
        is_rule = cursor.is_at("merge") and cursor.peek().kind is TokenKind.WORD
        return is_member or is_rule or cursor.is_at_end or cursor.is_at("}", "@", ",", ";", "=")

    return _parse_tokens(cursor, is_at_end, "an expression")


def _parse_tokens(cursor: Cursor, is_at_end: Callable[[], bool], wanted: str) -> ExpressionText:
    tokens: list[Token] = []
    closers: list[str] = []
    while closers or not is_at_end():
        token = cursor.token
        if cursor.is_at_end or (not closers and token.text in ")]}"):
            cursor.fail(wanted)
        if token.text in _OPENERS and token.kind is TokenKind.PUNCTUATION:
            closers.append(_OPENERS[token.text])
        elif closers and token.text == closers[-1] and token.kind is TokenKind.PUNCTUATION:
            closers.pop()
        tokens.append(cursor.advance())
    if not tokens:
        cursor.fail("an expression")
    span = Span(tokens[0].start, tokens[-1].end)
    names = tuple(_iter_names(tokens, before_colons=False))
    labels = tuple(_iter_names(tokens, before_colons=True))
    return ExpressionText("".join(_spell_tokens(tokens)), names, labels, span)


def _spell_tokens(tokens: Sequence[Token]) -> Iterator[str]:
    """The tokens with a blank wherever the formatter of queries has one."""
    is_signed = False
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        if before is not None and not is_signed and _has_blank(before, token):
            yield " "
        is_operand_next = before is None or before.text in _BEFORE_OPERANDS
        is_signed = token.text == "-" and is_operand_next
        yield token.text


def _has_blank(before: Token, token: Token) -> bool:
    return not _is_call(before, token) and not (
        before.text in _NO_BLANK_AFTER or token.text in _NO_BLANK_BEFORE
    )


def _is_call(word: Token, token: Token) -> bool:
    """Whether a word and a parenthesis are a call: nothing is between them."""
    is_name = word.kind is TokenKind.WORD and word.text not in _OPERATORS
    return is_name and token.text == "(" and word.end == token.start


def _iter_names(tokens: Sequence[Token], *, before_colons: bool) -> Iterator[str]:
    """The words that may be properties, each once: those before colons, or all others."""
    seen: set[str] = set()
    for number, token in enumerate(tokens):
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        before = tokens[number - 1].text if number else ""
        is_name = token.kind is TokenKind.WORD and token.text[0].islower()
        is_other = before in ("@", ".") or (after is not None and _is_call(token, after))
        mark = "" if after is None else after.text
        if is_name and not is_other and mark != "{" and (mark == ":") is before_colons:
            if token.text not in seen:
                yield token.text
            seen.add(token.text)
