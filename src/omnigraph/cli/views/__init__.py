"""What commands print: text for people, or one JSON document.

In: plain data from a command. Out: text on the two output streams. Guarantee: both forms are made
from the same object, so they cannot drift; documents go to standard output, diagnostics and
failures to standard error.

    answer_views        the interface of an answer, and the answers of most commands
    query_views         rows in five formats, and explanations of plans
    change_views        diffs, change feeds, histories and blame
    merge_views         merges and their conflicts
    maintenance_views   clean-up, repair, tags and indexes
    vector_views        how far the vectors of texts are
    pipeline_views      pipelines and their runs
    operator_views      profiles, and what the operator config decides
    progress_bars       bars on standard error while a long command runs
    output_streams      writes to both streams, and aligns columns
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
