"""The command line: `omnigraph`.

In: arguments and files. Out: a document on standard output (for people, or JSON with `--json`),
diagnostics on standard error, and an exit code: 0 success, 1 failure, 2 wrong arguments, 4 a lost
`--if-commit`, 130 interrupted. Guarantee: a command that fails prints nothing on standard output
unless `--json` asked for a structured failure; a flag that a command cannot use is refused before
anything is read or written.

Modules, in order of control flow: `app` (the command tree and the help legend), `verbs` (how a
function becomes a command), `scope` (global flags and addresses), `options` (options that commands
share), `graphs` (opening a graph, and what surrounds a write), the commands (`graph_commands`,
`load`, `query_commands` with `statements`, `branch_commands`, `commit_commands`,
`schema_commands`, `blob_commands`, `lint`, `fmt`), `files` and `schema_files` (reading what
arguments name), `failures` (errors as messages and exit codes), `views` (human and JSON output).
"""

from omnigraph.cli.app import main

__all__ = ["main"]
