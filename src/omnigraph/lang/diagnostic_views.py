"""Two views of a diagnostic: text for people, JSON for programs."""

from __future__ import annotations

import unicodedata
from typing import Any

from omnigraph.lang.diagnostics import Diagnostic, Suggestion
from omnigraph.lang.quoting import escape_unprintable
from omnigraph.lang.source_text import Position, Source

# A minified line of megabytes must not flood a terminal.
_LINE_CHARACTERS_MAX = 160
_TAB = "\t"


def render_human(diagnostic: Diagnostic) -> str:
    """The place, the message, the line with a caret under it, and the hint."""
    place = diagnostic.position
    where = escape_unprintable(f"{diagnostic.source.name}:{place.line}:{place.column}")
    lines = [f"{where}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    excerpt, caret_at = _cut_excerpt(diagnostic.source.get_line(place.line), place.column - 1)
    length = max(1, diagnostic.span.end - diagnostic.span.start)
    carets = max(1, _count_cells(excerpt[caret_at : caret_at + length]))
    gutter = " " * len(str(place.line))
    lines.append(f"  {place.line} | {escape_unprintable(excerpt, keep=_TAB)}")
    lines.append(f"  {gutter} | {_pad_before(excerpt[:caret_at])}{'^' * carets}")
    if diagnostic.hint:
        lines.append(f"  {gutter} = {diagnostic.hint}")
    return "\n".join(lines)


def describe_diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:  # Any: a JSON document
    """The machine-readable form: code, severity, message, position, and edits in byte offsets."""
    document: dict[str, Any] = {  # Any: a JSON document
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "file": diagnostic.source.name,
        "position": describe_position(diagnostic.position),
    }
    if diagnostic.hint:
        document["fix"] = diagnostic.hint
    if diagnostic.suggestion:
        document["suggestion"] = _describe_suggestion(diagnostic.suggestion, diagnostic.source)
    return document


def describe_position(place: Position) -> dict[str, int]:
    """A position as a document."""
    return {"line": place.line, "column": place.column, "byte": place.byte}


def _cut_excerpt(line: str, at: int) -> tuple[str, int]:
    if len(line) <= _LINE_CHARACTERS_MAX:
        return line, at
    start = max(0, at - _LINE_CHARACTERS_MAX // 2)
    return line[start : start + _LINE_CHARACTERS_MAX], at - start


def _count_cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in escape_unprintable(text, keep=_TAB)
    )


def _pad_before(before: str) -> str:
    return "".join(
        _TAB if character == _TAB else " " * _count_cells(character) for character in before
    )


def _describe_suggestion(suggestion: Suggestion, source: Source) -> dict[str, Any]:  # Any: JSON
    return {
        "applicability": str(suggestion.applicability),
        "edits": [
            {
                "start": source.to_byte_offset(edit.span.start),
                "end": source.to_byte_offset(edit.span.end),
                "replacement": edit.replacement,
            }
            for edit in suggestion.edits
        ],
    }
