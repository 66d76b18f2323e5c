"""What the compilers say about a text.

In: a `Source` and findings made while reading it. Out: an ordered tuple of `Diagnostic`, rendered
for people (file:line:column, the line, a caret, a suggestion) or as JSON. Guarantee: a diagnostic
always names a registered code, and positions are exact in characters and in bytes.

Modules, in order of control flow: `source` (texts, spans, positions), `codes` (the register of
every code), `shown` (source text inside messages), `diagnostic` (one finding, and the collector),
`finding` (one without a place), `suggest` ("did you mean"), `render` (views).
"""

from omnigraph.diagnostics.codes import CODES, Code
from omnigraph.diagnostics.diagnostic import (
    Applicability,
    Collector,
    Diagnostic,
    Edit,
    Severity,
    Suggestion,
)
from omnigraph.diagnostics.finding import Finding
from omnigraph.diagnostics.render import describe_diagnostic, render_human
from omnigraph.diagnostics.shown import sanitize_text
from omnigraph.diagnostics.source import Position, Source, Span
from omnigraph.diagnostics.suggest import suggest_similar

__all__ = [
    "CODES",
    "Applicability",
    "Code",
    "Collector",
    "Diagnostic",
    "Edit",
    "Finding",
    "Position",
    "Severity",
    "Source",
    "Span",
    "Suggestion",
    "describe_diagnostic",
    "render_human",
    "sanitize_text",
    "suggest_similar",
]
