"""Inputs of the shell: where one ends, and what a bare body stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final  # Any: a JSON value

from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Diagnostic, Edit
from omnigraph.lang.lexer import TokenKind, lex
from omnigraph.lang.source_text import Source, Span

COMMAND_MARK: Final = "\\"
NAME: Final = "shell"
_NO_VALUES: Final[Mapping[str, Any]] = MappingProxyType({})
# The types of parameters by those of JSON values; Python counts a boolean among the integers.
_TYPES: Final = ((bool, "Bool"), (int, "I64"), (float, "F64"), (str, "String"))
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


def declare(text: str, values: Mapping[str, Any] = _NO_VALUES) -> str:
    """The text of an input as a file: a bare body becomes the body of a query.

    Its parameters are those of the values that it uses, of the types of these values.
    """
    return f"{_build_head(text, values)}{_body_of(text)}\n}}" if _is_body(text) else text


@contextmanager
def report_as_typed(text: str, values: Mapping[str, Any] = _NO_VALUES) -> Iterator[None]:
    """Around the run of what `declare` made of an input: its diagnostics are about the input."""
    try:
        yield
    except CompileError as failure:
        raise CompileError(
            [_move_diagnostic(text, values, each) for each in failure.diagnostics]
        ) from failure


def _build_head(text: str, values: Mapping[str, Any]) -> str:
    """What a bare body stands in."""
    tokens = lex(Source("-", text)).tokens
    # What a colon follows is bound by the body itself.
    bound = {each.text for each, after in pairwise(tokens) if after.text == ":"}
    used = {each.text for each in tokens if each.kind is TokenKind.VARIABLE} - bound
    types = {name: _type_of(values[name[1:]]) for name in sorted(used) if name[1:] in values}
    declared = ", ".join(f"{name}: {type_}" for name, type_ in types.items() if type_)
    return f"query {NAME}({declared}) {{ "


def _type_of(value: Any) -> str | None:
    """The type of a parameter with a value; None for an object, and for a list of several types."""
    if value is None:
        return "String?"
    if isinstance(value, list):
        elements = {_type_of(each) for each in value} or {"String"}
        element = elements.pop()
        return None if elements or element is None else f"[{element}]"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), None)


def _move_diagnostic(text: str, values: Mapping[str, Any], found: Diagnostic) -> Diagnostic:
    """A diagnostic of the declaration of an input, in the input itself."""
    source, start, end = Source(NAME, text), found.span.start, found.span.end
    if not _is_body(text):
        return replace(found, source=source)
    length, message, suggestion = len(_body_of(text)), found.message, found.suggestion
    head = len(_build_head(text, values))
    start, end = (min(max(each - head, 0), length) for each in (start, end))
    if start == length:
        # The brace there was not typed.
        message = message.replace("found '}'", "found the end")
    if suggestion is not None:
        edits = (_move_edit(each, -head) for each in suggestion.edits)
        suggestion = replace(suggestion, edits=tuple(edits))
    return replace(
        found, message=message, span=Span(start, end), source=source, suggestion=suggestion
    )


def _move_edit(edit: Edit, by: int) -> Edit:
    return replace(edit, span=Span(max(edit.span.start + by, 0), max(edit.span.end + by, 0)))


def _body_of(text: str) -> str:
    return text.rstrip().removesuffix(";")


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
