"""A cursor over tokens: look ahead, expect, report a diagnostic, and recover after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.lang.diagnostics import Collector, Suggestion
from omnigraph.lang.lexer import Token, TokenKind, Tokens
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span

# Trees are walked recursively everywhere; this keeps each walk far from Python's stack limit.
NESTING_MAX = 64
# Integers are signed 64-bit in both languages; longer digit runs are refused before conversion.
INTEGER_DIGITS_MAX = 4000
INTEGER_MAX = 2**63 - 1

_NUMBER_HINT = "a number is digits, or digits '.' digits; numbers have no exponent and no unit"
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
# Bound once: to look a member up in its enum takes Python longer than to compare it.
_STRING, _INTEGER, _END = TokenKind.STRING, TokenKind.INTEGER, TokenKind.END


class ParseFailure(Exception):
    """Leaves a production whose diagnostic has been reported; caught where parsing resumes."""


class _Nesting:
    """What ends a level of nesting; a generator would take longer than what stands inside."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def __enter__(self) -> None:
        return

    def __exit__(self, *_failure: object) -> None:
        self._cursor.depth -= 1


class Cursor:
    """A position in a token list, with one diagnostic code for every grammar error.

    `habits` are spellings of other languages, each with a hint at what is written here instead.
    """

    def __init__(
        self, tokens: Tokens, collector: Collector, *, code: str, habits: Mapping[str, str]
    ) -> None:
        self.collector = collector
        self.at = 0
        self._tokens = tokens.tokens
        self._code = code
        self._habits = habits
        self.depth = 0

    @property
    def token(self) -> Token:
        """The token to be read next."""
        return self._tokens[self.at]

    @property
    def previous(self) -> Token:
        """The token read last."""
        return self._tokens[max(0, self.at - 1)]

    def peek(self, ahead: int = 1) -> Token:
        """A later token; past the end, the end."""
        return self._tokens[min(self.at + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Read one token; the end is never passed."""
        token = self._tokens[self.at]
        if token.kind is not _END:
            self.at += 1
        return token

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been read."""
        return self.token.kind is _END

    @property
    def is_first_on_line(self) -> bool:
        """Whether the next token is the first one on its line."""
        return self._is_first_on_line(self.at)

    def is_at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or punctuation marks."""
        # Texts of other tokens start with a quote, a `$` or a digit, so the kind need not be asked.
        return self._tokens[self.at].text in texts

    def accept(self, text: str) -> bool:
        """Read the next token if it is this word or punctuation mark."""
        if self._tokens[self.at].text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, *, what: str | None = None) -> Token:
        """Read this word or punctuation mark, or fail saying what was expected."""
        token = self._tokens[self.at]
        if token.text != text:
            self.fail(what or f"'{text}'")
        self.at += 1
        return token

    def expect_kind(self, kind: TokenKind, what: str) -> Token:
        """Read a token of a kind, or fail saying what was expected."""
        token = self._tokens[self.at]
        if token.kind is not kind:
            self.fail(what)
        self.at += 1
        return token

    def expect_string(self, what: str) -> tuple[str, Span]:
        """Read a string and give its decoded value."""
        token = self.expect_kind(_STRING, what)
        return self.unescape(token), token.span

    def expect_integer(self, what: str, *, maximum: int = INTEGER_MAX) -> int:
        """Read an unsigned integer within a bound."""
        token = self.expect_kind(_INTEGER, what)
        value = int(token.text) if len(token.text) <= INTEGER_DIGITS_MAX else maximum + 1
        if value > maximum:
            self.report(token.span, f"integer is larger than {maximum}")
            return maximum
        return value

    def unescape(self, token: Token) -> str:
        """The value of a string token; a bad escape is reported and kept as written."""
        body = token.text[1:-1]
        if "\\" not in body:
            return body
        pieces: list[str] = []
        at = 0
        while (slash := body.find("\\", at)) >= 0:
            pieces.append(body[at:slash])
            escaped = body[slash + 1]
            if escaped not in _ESCAPES:
                start = token.start + 1 + slash
                self.report(
                    Span(start, start + 2),
                    f"unsupported escape sequence '\\{escaped}'",
                    hint='write \\" \\\\ \\n \\r or \\t',
                )
            pieces.append(_ESCAPES.get(escaped, "\\" + escaped))
            at = slash + 2
        pieces.append(body[at:])
        return "".join(pieces)

    def report(
        self,
        span: Span,
        message: str,
        *,
        hint: str | None = None,
        suggestion: Suggestion | None = None,
        code: str | None = None,
    ) -> None:
        """Record a grammar error and go on."""
        self.collector.report_error(
            code or self._code, span, message, hint=hint, suggestion=suggestion
        )

    def find_dialect_hint(self, *tables: Mapping[str, str]) -> str | None:
        """The hint for a spelling of another language that stands here; own tables come first."""
        token, after = self.token, self.peek()
        is_strange = token.kind is TokenKind.UNKNOWN
        before = self.previous.text if self.at and self.previous.end == token.start else ""
        following = after.text if after.start == token.end else ""
        if token.kind is TokenKind.BAD_NUMBER:
            return _NUMBER_HINT
        # The longest spelling says most; of strange characters, the first stands for all.
        spellings = (before + token.text + following, before + token.text, token.text + following)
        for spelling in (*spellings, token.text, token.text[:1] if is_strange else ""):
            for table in (*tables, self._habits):
                if spelling in table:
                    return table[spelling]
        return None

    def fail(self, expected: str, *, hint: str | None = None) -> NoReturn:
        """Record that something else was expected here, and leave the production."""
        token = self.token
        hint = hint or self.find_dialect_hint()
        match token.kind:
            case TokenKind.UNTERMINATED:
                what = "comment" if token.text.startswith("/*") else "string"
                opening = Span(token.start, token.start + 1)
                self.refuse(opening, f"the {what} is never closed", hint=hint)
            case TokenKind.END:
                found = "the end of the file"
                self.refuse(token.span, f"expected {expected}, found {found}", hint=hint)
            case _:
                found = sanitize_text(token.text)
                self.refuse(token.span, f"expected {expected}, found '{found}'", hint=hint)

    def refuse(self, span: Span, message: str, *, hint: str | None = None) -> NoReturn:
        """Record an error and leave the production."""
        self.report(span, message, hint=hint)
        raise ParseFailure

    def enter_nesting(self) -> _Nesting:
        """Enter one level of nesting, to be left with `with`; too many levels fail."""
        if self.depth >= NESTING_MAX:
            self.refuse(self.token.span, f"nested more than {NESTING_MAX} levels deep")
        self.depth += 1
        return _Nesting(self)

    def _is_first_on_line(self, index: int) -> bool:
        if index == 0:
            return True
        text = self.collector.source.text
        return "\n" in text[self._tokens[index - 1].end : self._tokens[index].start]
