"""Text to tokens, in one pass of one regular expression."""

from __future__ import annotations

import re

from omnigraph.diagnostics import Source
from omnigraph.diagnostics.diagnostic import Poll
from omnigraph.syntax.tokens import Comment, Token, TokenKind, Tokens

# The commonest tokens come first, and blanks are part of the match after them: both halve the time.
_PATTERN = re.compile(
    r"""
    [ \t\r\n]*+
    (?:
      (?P<WORD>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<VARIABLE>\$[a-z_][A-Za-z0-9_]*)
    | (?P<PUNCTUATION>->|\.\.|>=|<=|!=|[{}()\[\]:,.;?<>=*|@-])
    | (?P<STRING>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    | (?P<COMMENT>//[^\r\n]*|/\*.*?\*/)
    | (?P<BAD_NUMBER>[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]|[A-Za-z_])[A-Za-z0-9_]*+)
    | (?P<FLOAT>[0-9]+\.[0-9]+)
    | (?P<INTEGER>[0-9]+)
    | (?P<UNTERMINATED>"|/\*)
    | (?P<END>\Z)
    | (?P<UNKNOWN>\$+|[^ \t\r\nA-Za-z0-9_"{}()\[\]:,.;?<>=*|@\$/-]+|.)
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


def lex(source: Source, poll: Poll = lambda: None) -> Tokens:
    """Split a text into tokens and comments; an unterminated string or comment takes the rest."""
    text = source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    previous_end = 0
    for number, found in enumerate(_PATTERN.finditer(text)):
        if number % _POLL_TOKENS == 0:
            poll()
        group = found.lastindex
        assert group is not None
        start, end = found.span(group)
        kind = _ORDINARY.get(group)
        if kind is not None:
            tokens.append(Token(kind, text[start:end], start, end))
        elif group == _COMMENT:
            is_own_line = previous_end == 0 or text.find("\n", previous_end, start) >= 0
            comments.append(Comment(text[start:end], start, end, is_own_line))
        else:
            if group == _UNTERMINATED:
                opening = text[start : start + 2]
                tokens.append(Token(TokenKind.UNTERMINATED, opening, start, len(text)))
            break
        previous_end = end
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return Tokens(source, tuple(tokens), tuple(comments))
