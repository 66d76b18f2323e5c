"""Inputs of the shell: where one ends, and what a bare body stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from omnigraph.lang.lexer import TokenKind, lex
from omnigraph.lang.source_text import Source

COMMAND_MARK: Final = "\\"
NAME: Final = "shell"
_LEAVING: Final = frozenset({"exit", "quit", "exit;", "quit;"})
_OPENING: Final = frozenset("{[(")
_CLOSING: Final = frozenset("}])")
# What a body begins with; every other text is a declaration or a statement.
_READING: Final = frozenset({"match", "return", "with"})
_WRITING: Final = frozenset({"insert", "update", "delete", "create", "upsert", "replace", "for"})


def is_command(text: str) -> bool:
    """Whether an input is for the shell itself."""
    return text.lstrip().startswith(COMMAND_MARK) or text.strip().lower() in _LEAVING


def is_whole(text: str) -> bool:
    """Whether an input can be run: every bracket and every quote of it is closed.

    Other sections may follow a bare body, so one of several lines ends with an empty line or a
    semicolon.
    """
    if not text.strip() or is_command(text):
        return True
    tokens = lex(Source("-", text)).tokens
    if any(token.kind is TokenKind.UNTERMINATED for token in tokens):
        return False
    marks = [token.text for token in tokens if token.kind is TokenKind.PUNCTUATION]
    if sum((each in _OPENING) - (each in _CLOSING) for each in marks) > 0:
        return False
    if not _is_body(text) or text.rstrip(" \t").endswith(("\n", ";")):
        return True
    has_result = tokens[0].text not in _READING or any(each.text == "return" for each in tokens)
    return has_result and "\n" not in text.strip()


def declare(text: str) -> str:
    """The text of an input as a file: a bare body becomes the body of a query."""
    if not _is_body(text):
        return text
    body = text.rstrip().removesuffix(";")
    return f"query {NAME}() {{ {body}\n}}"


def split_inputs(lines: Iterable[str]) -> Iterator[str]:
    """The inputs of lines that were not typed."""
    pending = ""
    for line in lines:
        pending += line if line.endswith("\n") else line + "\n"
        is_blank = not line.strip()
        if is_whole(pending.rstrip("\n") + ("\n" if is_blank else "")):
            if pending.strip():
                yield pending
            pending = ""
    if pending.strip():
        yield pending


def _is_body(text: str) -> bool:
    first = lex(Source("-", text)).tokens[0]
    return first.kind is TokenKind.WORD and first.text in _READING | _WRITING
