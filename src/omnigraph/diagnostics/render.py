"""Two views of a diagnostic: text for people, JSON for programs."""

from __future__ import annotations

from typing import Any

from omnigraph.diagnostics.diagnostic import Diagnostic, Suggestion
from omnigraph.diagnostics.source import Source

# A minified line of megabytes must not flood a terminal.
_LINE_CHARACTERS_MAX = 160


def render_human(diagnostic: Diagnostic) -> str:
    """The place, the message, the line with a caret under it, and the hint."""
    place = diagnostic.position
    where = f"{diagnostic.source.name}:{place.line}:{place.column}"
    lines = [f"{where}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    excerpt, caret_column = _excerpt(diagnostic.source.line(place.line), place.column)
    width = max(
        1, min(diagnostic.span.end - diagnostic.span.start, len(excerpt) - caret_column + 1)
    )
    gutter = " " * len(str(place.line))
    lines.append(f"  {place.line} | {excerpt}")
    lines.append(f"  {gutter} | {_padding(excerpt, caret_column)}{'^' * width}")
    if diagnostic.hint:
        lines.append(f"  {gutter} = {diagnostic.hint}")
    return "\n".join(lines)


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:  # Any: a JSON document
    """The machine-readable form: code, severity, message, position, and edits in byte offsets."""
    place = diagnostic.position
    document: dict[str, Any] = {  # Any: a JSON document
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "file": diagnostic.source.name,
        "position": {"line": place.line, "column": place.column, "byte": place.byte},
    }
    if diagnostic.hint:
        document["fix"] = diagnostic.hint
    if diagnostic.suggestion:
        document["suggestion"] = _suggestion_json(diagnostic.suggestion, diagnostic.source)
    return document


def _excerpt(line: str, column: int) -> tuple[str, int]:
    if len(line) <= _LINE_CHARACTERS_MAX:
        return line, column
    start = max(0, column - 1 - _LINE_CHARACTERS_MAX // 2)
    return line[start : start + _LINE_CHARACTERS_MAX], column - start


def _padding(excerpt: str, column: int) -> str:
    return "".join("\t" if character == "\t" else " " for character in excerpt[: column - 1])


def _suggestion_json(suggestion: Suggestion, source: Source) -> dict[str, Any]:  # Any: JSON
    return {
        "applicability": str(suggestion.applicability),
        "edits": [
            {
                "start": source.byte_offset(edit.span.start),
                "end": source.byte_offset(edit.span.end),
                "replacement": edit.replacement,
            }
            for edit in suggestion.edits
        ],
    }
