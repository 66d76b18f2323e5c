"""Text to tokens, in one pass of one regular expression."""

from __future__ import annotations

import re

from omnigraph.diagnostics import Source
from omnigraph.syntax.tokens import Comment, Token, TokenKind, Tokens

_PATTERN = re.compile(
    r"""
      (?P<BLANK>[ \t\r\n]+)
    | (?P<COMMENT>//[^\n]*|/\*.*?\*/)
    | (?P<WORD>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<VARIABLE>\$[a-z_][A-Za-z0-9_]*)
    | (?P<FLOAT>[0-9]+\.[0-9]+)
    | (?P<INTEGER>[0-9]+)
    | (?P<STRING>"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<UNTERMINATED>"|/\*)
    | (?P<PUNCTUATION>->|\.\.|>=|<=|!=|[{}()\[\]:,.;?<>=*|@-])
    | (?P<UNKNOWN>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = "BLANK"
_COMMENT = "COMMENT"
_KINDS = {kind.name: kind for kind in TokenKind}


def lex(source: Source) -> Tokens:
    """Split a text into tokens and comments; an unterminated string or comment takes the rest."""
    text = source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    for found in _PATTERN.finditer(text):
        group = found.lastgroup
        assert group is not None
        if group == _BLANK:
            continue
        start, end = found.span()
        if group == _COMMENT:
            comments.append(Comment(found.group(), start, end, _starts_line(text, start)))
            continue
        kind = _KINDS[group]
        if kind is TokenKind.UNTERMINATED:
            tokens.append(Token(kind, text[start : start + 2], start, len(text)))
            break
        tokens.append(Token(kind, found.group(), start, end))
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return Tokens(source, tuple(tokens), tuple(comments))


def _starts_line(text: str, offset: int) -> bool:
    line_start = text.rfind("\n", 0, offset) + 1
    return not text[line_start:offset].strip()
