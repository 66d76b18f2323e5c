"""Text to tokens, in one pass of one regular expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from omnigraph.lang.diagnostics import Collector, Poll
from omnigraph.lang.source_text import Source, Span

_BYTE_ORDER_MARK = "\ufeff"


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


# The commonest tokens come first, and blanks are part of the match after them: both halve the time.
_PATTERN = re.compile(
    r"""
    [ \t\r\n]*+
    (?:
      (?P<WORD>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<VARIABLE>\$[a-z_][A-Za-z0-9_]*)
    | (?P<PUNCTUATION>->|\.\.|>=|<=|!=|[{}()\[\]:,.;?<>=*|@^+%-]|/(?![/*]))
    | (?P<STRING>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    | (?P<COMMENT>//[^\r\n]*|/\*.*?\*/)
    | (?P<BAD_NUMBER>[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]|[A-Za-z_])[A-Za-z0-9_]*+)
    | (?P<FLOAT>[0-9]+\.[0-9]+)
    | (?P<INTEGER>[0-9]+)
    | (?P<UNTERMINATED>"|/\*)
    | (?P<END>\Z)
    | (?P<UNKNOWN>\$+|[^ \t\r\nA-Za-z0-9_"{}()\[\]:,.;?<>=*|@^\$+/%-]+|.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)

# Tokens between two polls: less than a millisecond.
_POLL_TOKENS = 1024
_COMMENT = _PATTERN.groupindex["COMMENT"]
_UNTERMINATED = _PATTERN.groupindex["UNTERMINATED"]
_LAST = (TokenKind.UNTERMINATED, TokenKind.END)
_ORDINARY = {_PATTERN.groupindex[kind.name]: kind for kind in TokenKind if kind not in _LAST}
# A token without the call of its constructor, which takes longer than matching it does.
_make_tuple = tuple.__new__


def lex(source: Source, poll: Poll = lambda: None) -> Tokens:
    """Split a text into tokens and comments; an unterminated string or comment takes the rest."""
    text = source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    for number, found in enumerate(_PATTERN.finditer(text)):
        if number % _POLL_TOKENS == 0:
            poll()
        group = found.lastindex
        assert group is not None
        kind = _ORDINARY.get(group)
        if kind is not None:
            place = (kind, found[group], found.start(group), found.end())
            tokens.append(_make_tuple(Token, place))
        elif group == _COMMENT:
            comments.append(_make_comment(found, tokens, comments))
        else:
            if group == _UNTERMINATED:
                start = found.start(group)
                opening = text[start : start + 2]
                tokens.append(Token(TokenKind.UNTERMINATED, opening, start, len(text)))
            break
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return Tokens(source, tuple(tokens), tuple(comments))


def _make_comment(
    found: re.Match[str], tokens: Sequence[Token], comments: Sequence[Comment]
) -> Comment:
    start, end = found.span(_COMMENT)
    before = max((last[-1].end for last in (tokens, comments) if last), default=0)
    is_own_line = before == 0 or found.string.find("\n", before, start) >= 0
    return Comment(found[_COMMENT], start, end, is_own_line)


def decode_source(
    name: str, data: str | bytes, *, code: str, poll: Poll = lambda: None
) -> tuple[Source, Collector]:
    """The text of a file and a collector for it; the first byte that is not UTF-8 is reported."""
    try:
        # A Python string may hold halves of surrogate pairs, which no file can.
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        text = raw.decode("utf-8")
    except UnicodeDecodeError as failure:
        source = Source(name, raw.decode("utf-8", "replace"))
        collector = Collector(source, poll=poll)
        offset = len(raw[: failure.start].decode("utf-8"))
        collector.report_error(
            code,
            Span(offset, offset + 1),
            f"the file is not UTF-8 text: byte 0x{raw[failure.start]:02x} at byte {failure.start}",
            hint="save the file as UTF-8",
        )
        return source, collector
    source = Source(name, text.removeprefix(_BYTE_ORDER_MARK))
    return source, Collector(source, poll=poll)


class Mode(StrEnum):
    """Lenient takes every text with one meaning, with warnings; strict refuses old forms."""

    LENIENT = "lenient"
    STRICT = "strict"
