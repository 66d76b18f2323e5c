"""The command line: `omnigraph`.

In: arguments and files. Out: a document on standard output (for people, or JSON with `--json`),
diagnostics on standard error, and an exit code: 0 success, 1 failure, 2 wrong arguments. Guarantee:
a command that fails prints nothing on standard output unless `--json` asked for a structured
failure.

Modules, in order of control flow: `app` (the command tree and the help legend), `lint`,
`schema_commands`, `fmt`, `files` (reading arguments), `views` (human and JSON output).
"""

from omnigraph.cli.app import main

__all__ = ["main"]
