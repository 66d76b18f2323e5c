"""What commands print: text for people, or one JSON document.

Commands build plain data and hand it to a view; the two views cannot drift because both get the
same objects. Documents go to standard output, diagnostics and failures to standard error.

Modules: `streams` (the two output streams), `documents` (answers with both views), `rows` (results
of queries in five formats), `alignment` (columns), `progress` (a bar while a long command runs).
"""

from omnigraph.cli.views.output_streams import (
    OutputError,
    finish_output,
    format_count,
    prepare_streams,
    print_bytes,
    print_diagnostics,
    print_document,
    print_hint,
    print_json,
    print_lines,
    print_problems,
    print_warning,
)

__all__ = [
    "OutputError",
    "finish_output",
    "format_count",
    "prepare_streams",
    "print_bytes",
    "print_diagnostics",
    "print_document",
    "print_hint",
    "print_json",
    "print_lines",
    "print_problems",
    "print_warning",
]
