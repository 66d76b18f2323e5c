"""The cursor of the schema parser: words, literals, look-ahead, and recovery after errors."""

from __future__ import annotations

import math

from omnigraph.lang.lexer import Token, TokenKind
from omnigraph.lang.source_text import Span
from omnigraph.lang.token_cursor import INTEGER_DIGITS_MAX, INTEGER_MAX, Cursor
from omnigraph.schema import ast
from omnigraph.schema.catalog import ConstraintKind, MergeRule

CONSTRAINT_NAMES = frozenset(map(str, ConstraintKind))
MERGE_RULES = tuple(map(str, MergeRule))
DECLARATIONS = ("interface", "node", "edge")
BOOLEANS = {"true": True, "false": False}
NUMBERS = (TokenKind.INTEGER, TokenKind.FLOAT)


class SchemaReader:
    """A cursor that knows the words of the schema language."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def _expect_type_name(self, what: str) -> ast.Name:
        token = self._cursor.expect_kind(TokenKind.WORD, what)
        if not token.text[0].isupper():
            self._cursor.report(
                token.span,
                f"expected {what}, found '{token.text}'",
                hint="type names start with an upper-case letter",
            )
        return ast.Name(token.text, token.span)

    def _expect_identifier(self, what: str) -> ast.Name:
        token = self._cursor.expect_kind(TokenKind.WORD, what)
        if token.text[0].isupper():
            self._cursor.report(
                token.span,
                f"'{token.text}' must start with a lower-case letter or '_'",
                hint="names that start with an upper-case letter are type names",
            )
        return ast.Name(token.text, token.span)

    def _parse_literal(self) -> ast.Literal:
        token = self._cursor.token
        match token.kind:
            case TokenKind.STRING:
                text = self._cursor.unescape(self._cursor.advance())
                return ast.Literal(text, text, token.span)
            case TokenKind.FLOAT:
                self._cursor.advance()
                return ast.Literal(float(token.text), token.text, token.span)
            case TokenKind.WORD if token.text in BOOLEANS:
                self._cursor.advance()
                return ast.Literal(BOOLEANS[token.text], token.text, token.span)
            case _:
                value = self._parse_integer("a string, a number, 'true' or 'false'")
                return ast.Literal(value, token.text, token.span)

    def _parse_integer(self, what: str) -> int:
        token = self._cursor.expect_kind(TokenKind.INTEGER, what)
        if len(token.text) > INTEGER_DIGITS_MAX:
            self._cursor.refuse(token.span, f"a number has at most {INTEGER_DIGITS_MAX} digits")
        return int(token.text)

    def _parse_number(self) -> int | float:
        start = self._cursor.token
        sign = -1 if self._cursor.accept("-") else 1
        token = self._cursor.token
        if token.kind is TokenKind.INTEGER:
            value = sign * self._parse_integer("a number")
            if -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
                return value
        elif token.kind is TokenKind.FLOAT:
            self._cursor.advance()
        else:
            self._cursor.fail("a number")
        number = sign * float(token.text)
        if math.isinf(number):
            self._cursor.refuse(self._build_span(start), "the number is too large")
        return number

    # ---- looking ahead and going on ----

    def _is_at_annotation(self, name: str) -> bool:
        return self._cursor.is_at("@") and self._cursor.peek().text == name

    def _is_at_constraint(self) -> bool:
        cursor = self._cursor
        if not cursor.is_at("@") or cursor.peek(2).text != "(":
            return False
        if cursor.peek().text == ConstraintKind.TOGETHER:
            # With one value it is an annotation that means nothing, as any other word.
            is_list = cursor.peek(3).kind is TokenKind.WORD and cursor.peek(4).text == ","
            return is_list and cursor.peek(6).text != "="
        return cursor.peek().text in CONSTRAINT_NAMES

    def _is_at_expression(self) -> bool:
        """Whether what a parenthesis encloses is not a property and a pattern, right or wrong."""
        cursor = self._cursor
        first, length = cursor.token, 2 if cursor.is_at("@") else 1
        if first.text in ("..", ")") or cursor.peek(length).text in (",", ".."):
            return False
        return first.kind is TokenKind.WORD or cursor.peek(length).text != ")"

    def _is_at_declaration(self) -> bool:
        """A declaration word and a name: no property starts so, whatever it is called."""
        if self._cursor.token.text not in DECLARATIONS:
            return False
        following = self._cursor.peek()
        if following.kind is not TokenKind.WORD:
            return False
        return following.text[0].isupper() or self._cursor.is_first_on_line

    def _skip_to_declaration(self, start: int) -> None:
        if self._cursor.at == start:
            self._cursor.advance()
        while not self._cursor.is_at_end and not self._is_at_declaration():
            self._cursor.advance()

    def _skip_to_member(self, start: int) -> None:
        """Read the failed member again from its start, to know which brackets are open."""
        cursor = self._cursor
        failed_at, cursor.at = cursor.at, start
        braces = parentheses = 0
        while not cursor.is_at_end:
            if cursor.at >= failed_at and cursor.at > start:
                if self._is_at_declaration() or (braces == 0 and cursor.is_at("}")):
                    return
                is_after = cursor.at > failed_at
                if braces == 0 and self._may_start_member(parentheses > 0, is_after=is_after):
                    return
            match cursor.advance().text:
                case "{":
                    braces += 1
                case "}":
                    braces -= 1
                case "(":
                    parentheses += 1
                case ")":
                    parentheses = max(0, parentheses - 1)

    def _may_start_member(self, is_inside: bool, *, is_after: bool) -> bool:
        """A name and a colon, a constraint, or any word that starts a later line."""
        token = self._cursor.token
        is_first = self._cursor.is_first_on_line
        if is_inside and not is_first:
            return False
        if self._is_at_constraint():
            return True
        if token.kind is not TokenKind.WORD:
            return False
        if self._cursor.peek().text == ":":
            return is_first or not token.text[0].isupper()
        return is_first and is_after and not is_inside

    def _build_span(self, start: Token) -> Span:
        """From a token already read to the last one read."""
        return Span(start.start, self._cursor.previous.end)
