"""The formatter of `.gq` texts: one layout, every comment kept."""

from __future__ import annotations

from omnigraph.diagnostics import Severity
from omnigraph.errors import CompileError
from omnigraph.query.parser import parse_query_file
from omnigraph.query.printer import print_with_comments
from omnigraph.syntax.printing import CommentedLines


def format_queries(text: str | bytes, *, name: str = "query.gq") -> str:
    """The text in its one layout; raises CompileError when it cannot be parsed."""
    parsed = parse_query_file(text, name=name)
    if any(found.severity is Severity.ERROR for found in parsed.diagnostics):
        raise CompileError(parsed.diagnostics)
    return print_with_comments(
        parsed.file, CommentedLines(parsed.source.text, parsed.comments, keep_blanks=True)
    )
