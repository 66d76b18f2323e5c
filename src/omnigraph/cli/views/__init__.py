"""What commands print: text for people, or one JSON document.

Commands build plain data and hand it to a view; the two views cannot drift because both get the
same objects. Documents go to standard output, diagnostics and failures to standard error.
"""

from omnigraph.cli.views.streams import (
    counted,
    fail,
    prepare_streams,
    print_diagnostics,
    print_json,
    print_lines,
    print_problems,
)

__all__ = [
    "counted",
    "fail",
    "prepare_streams",
    "print_diagnostics",
    "print_json",
    "print_lines",
    "print_problems",
]
