"""The cursor of the query parser: words, names, and going on after an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple, NoReturn, TypeVar

from omnigraph.lang.diagnostics import DIAGNOSTICS_MAX, Collector, Suggestion
from omnigraph.lang.lexer import Mode, TokenKind, Tokens
from omnigraph.lang.source_text import Span
from omnigraph.lang.token_cursor import Cursor, ParseFailure
from omnigraph.query.ast import Clause
from omnigraph.query.query_dialect_hints import QUERY_HINTS
from omnigraph.schema.ast import Name

RESERVED = frozenset({"and", "or", "not", "is", "null", "in"})

_OPENERS = frozenset("{([")
_CLOSERS = frozenset("})]")
_SECTIONS = frozenset({"match", "with", "return", "having", "order"})

# Bound once: to look a member up in its enum takes Python longer than to compare it.
_WORD = TokenKind.WORD

Member = TypeVar("Member")


class _Brackets(NamedTuple):
    """Where each bracket closes, and which brackets have a comma directly inside."""

    closers: dict[int, int]
    with_comma: set[int]


def _refuse_block(cursor: QueryCursor, owner: str) -> tuple[Clause, ...]:
    cursor.fail(f"a value, not {owner}")


class QueryCursor(Cursor):
    """A cursor that knows the mode, the words of the language, and where its blocks end."""

    def __init__(self, tokens: Tokens, collector: Collector, *, mode: Mode) -> None:
        super().__init__(tokens, collector, code="Q001", habits=QUERY_HINTS)
        self.mode = mode
        self.error_count = 0
        # Inside a mutation's `where`, where bare words are properties.
        self.is_in_where = False
        # How many calls or cases of values are open: there `null` is a value.
        self.argument_depth = 0
        # Since the current declaration began: later errors at the end of the file are echoes.
        self.has_resumed = False
        self._unclosed_at = -1
        # Reads the block of an expression; set when all parts of the parser are there.
        self.read_block: Callable[[QueryCursor, str], tuple[Clause, ...]] = _refuse_block

    # ---- spans and words ----

    def build_span(self, start: int) -> Span:
        """From an offset to the end of the token read last."""
        return Span(start, self._tokens[self.at - 1].end)

    def is_word_at(self, ahead: int) -> bool:
        """Whether a later token is a word."""
        return self.peek(ahead).kind is _WORD

    def is_mark_at(self, ahead: int, *marks: str) -> bool:
        """Whether a later token is one of these punctuation marks."""
        at, tokens = self.at + ahead, self._tokens
        return at < len(tokens) and tokens[at].text in marks

    @property
    def is_at_query(self) -> bool:
        """Whether a query declaration starts here: `query`, a word, and a bracket or annotation."""
        return self.is_at("query") and self.is_word_at(1) and self.is_mark_at(2, "(", "{", "@")

    @property
    def is_first_on_line(self) -> bool:
        """Whether the next token is the first of its line."""
        return self._is_first_on_line(self.at)

    def expect_ident(self, what: str) -> Name:
        """Read a word that starts with a lower-case letter or `_`."""
        token = self._tokens[self.at]
        if token.kind is not _WORD:
            self.fail(what)
        if token.text[0].isupper():
            hint = self.find_dialect_hint() or "such a name starts with a lower-case letter or '_'"
            self.fail(what, hint=hint)
        self.at += 1
        return Name(token.text, token.span)

    def expect_type_name(self, what: str) -> Name:
        """Read a word that starts with an upper-case letter."""
        token = self._tokens[self.at]
        if token.kind is not _WORD:
            self.fail(what)
        if not token.text[0].isupper():
            hint = self.find_dialect_hint() or "a type name starts with an upper-case letter"
            self.fail(what, hint=hint)
        self.at += 1
        return Name(token.text, token.span)

    def expect_adjacent_ident(self, what: str) -> Name:
        """Read a word that directly follows the mark read last, without a blank."""
        if self.token.start != self.previous.end:
            self.fail(what, hint=f"write no blank after '{self.previous.text}'")
        return self.expect_ident(what)

    # ---- errors ----

    def report(
        self,
        span: Span,
        message: str,
        *,
        hint: str | None = None,
        suggestion: Suggestion | None = None,
        code: str | None = None,
    ) -> None:
        """Record a grammar error, count it, and go on."""
        self.error_count += 1
        super().report(span, message, hint=hint, suggestion=suggestion, code=code)
        if self.error_count >= DIAGNOSTICS_MAX:
            # Later errors would not be kept, so the rest of the file need not be read.
            self.has_resumed = True
            self.at = len(self._tokens) - 1

    def fail(self, expected: str, *, hint: str | None = None) -> NoReturn:
        """Record that something else was expected here, and leave the production."""
        if self.is_at_end and self.has_resumed:
            raise ParseFailure
        super().fail(expected, hint=hint)

    @contextmanager
    def use_code(self, code: str) -> Iterator[None]:
        """Give grammar errors another code."""
        outer, self._code = self._code, code
        try:
            yield
        finally:
            self._code = outer

    def report_reserved(self, span: Span, word: str, *, role: str) -> None:
        """A reserved word used as a name: a warning in lenient mode, an error in strict mode."""
        message = f"'{word}' is a reserved word"
        if self.mode is Mode.STRICT:
            self.report(span, f"{message} and cannot be {role}")
        else:
            self.collector.report_warning("L311", span, f"{message} and should not be {role}")

    def require_lenient(self, span: Span, what: str) -> None:
        """Refuse, in strict mode, what the reference language does not have."""
        if self.mode is Mode.STRICT:
            self.refuse_beyond(span, what)

    def refuse_beyond(self, span: Span, what: str) -> NoReturn:
        """Report what goes beyond the reference language, and leave the production."""
        with self.use_code("Q006"):
            self.refuse(span, f"{what} goes beyond the reference language")

    @contextmanager
    def enter_arguments(self) -> Iterator[None]:
        """A level of nesting in which `null` is a value."""
        self.argument_depth += 1
        try:
            with self.enter_nesting():
                yield
        finally:
            self.argument_depth -= 1

    # ---- blocks ----

    def parse_members(
        self, owner: str, parse: Callable[[QueryCursor], Member]
    ) -> tuple[Member, ...]:
        """Read `{ member … }`; a member that fails is reported and left out."""
        opening = self.token
        if not self.accept("{"):
            self.fail(f"'{{' after {owner}")
        found: list[Member] = []
        is_whole = True
        with self.enter_nesting():
            while not self.accept("}"):
                if self._is_beyond_block():
                    self._leave_unclosed(owner, opening.start, is_reported=is_whole)
                    break
                self.collector.poll()
                started = self.at
                try:
                    found.append(parse(self))
                except ParseFailure:
                    is_whole = False
                    self.resume(started)
        return tuple(found)

    def resume(self, started: int) -> None:
        """After a failure in a member that began at a token: go to the next line of its block.

        At the end of the file parsing gives up quietly, because the failure has been reported.
        """
        failed = self.at
        self.has_resumed = True
        self.at = started if not self.is_at_end else failed
        braces = others = 0
        while not self.is_at_end:
            text = self.token.text
            if text == "}":
                if braces == 0:
                    return
                braces -= 1
            elif text == "{":
                braces += 1
            elif text in _OPENERS:
                others += 1
            elif text in _CLOSERS:
                others -= 1
            self.at += 1
            is_member = braces == 0 and others <= 0 and self.at >= failed
            if is_member and self._is_first_on_line(self.at):
                return
        raise ParseFailure

    def skip_to_query(self, *starters: str) -> None:
        """Go to the next query declaration, or to one of these words at the start of a line."""
        tokens = self._tokens
        for index in range(self.at, len(tokens) - 1):
            text = tokens[index].text
            if text == "query" or text in starters:
                self.at = index
                if self.is_at_query or (text in starters and self.is_first_on_line):
                    return
        self.at = len(tokens) - 1

    def closer_of(self, opener: int) -> int | None:
        """The token index of the bracket that closes the one at a token index."""
        return self._brackets.closers.get(opener)

    def has_comma_inside(self, opener: int) -> bool:
        """Whether a bracket has a comma directly inside, not inside an inner bracket."""
        return opener in self._brackets.with_comma

    @cached_property
    def _brackets(self) -> _Brackets:
        closers: dict[int, int] = {}
        with_comma: set[int] = set()
        stack: list[int] = []
        for index, token in enumerate(self._tokens):
            if token.kind is not TokenKind.PUNCTUATION:
                continue
            if token.text in _OPENERS:
                stack.append(index)
            elif token.text in _CLOSERS:
                if stack:
                    closers[stack.pop()] = index
            elif token.text == "," and stack:
                with_comma.add(stack[-1])
        return _Brackets(closers, with_comma)

    def _is_beyond_block(self) -> bool:
        token = self._tokens[self.at]
        if token.kind is not _WORD:
            return token.kind is TokenKind.END
        return (token.text in _SECTIONS and self.is_mark_at(1, "{")) or self.is_at_query

    def _leave_unclosed(self, owner: str, opening: int, *, is_reported: bool) -> None:
        token = self.token
        # One missing brace leaves every enclosing block unclosed at the same token.
        if is_reported and self._unclosed_at != self.at:
            found = "the end of the file" if self.is_at_end else f"'{token.text}'"
            line = self.collector.source.locate(opening).line
            self.report(
                token.span,
                f"expected '}}' to close {owner}, found {found}",
                hint=f"its '{{' is on line {line}",
            )
        self._unclosed_at = self.at
        self.has_resumed = True
