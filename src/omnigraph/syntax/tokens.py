"""Tokens and comments."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from omnigraph.diagnostics import Source, Span


class TokenKind(Enum):
    """What a token is, before any grammar looks at it."""

    WORD = auto()
    VARIABLE = auto()
    INTEGER = auto()
    FLOAT = auto()
    BAD_NUMBER = auto()
    STRING = auto()
    PUNCTUATION = auto()
    UNKNOWN = auto()
    UNTERMINATED = auto()
    END = auto()


class Token(NamedTuple):
    """A piece of text; a string keeps its quotes, a variable its `$`."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where the token is."""
        return Span(self.start, self.end)


class Comment(NamedTuple):
    """A comment with its delimiters; `is_own_line` when nothing stands before it on its line."""

    text: str
    start: int
    end: int
    is_own_line: bool


class Tokens(NamedTuple):
    """A whole lexed text; `tokens` ends with one `END` token."""

    source: Source
    tokens: tuple[Token, ...]
    comments: tuple[Comment, ...]
