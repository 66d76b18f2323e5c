"""The command line: `omnigraph`.

In: arguments and files. Out: a document on standard output (for people, or JSON with `--json`),
diagnostics on standard error, and an exit code: 0 success, 1 failure, 2 wrong arguments, 4 a lost
`--if-commit`, 130 interrupted. Guarantee: a command that fails prints nothing on standard output
unless `--json` asked for a structured failure; a flag that a command does not support is refused
before anything is read or written.

    entry_point        loads the command line and runs it
    app                the command tree and the help text
    command_line       runs one command line: old spellings, failures, exit
    command_table      the commands by name, module and summary; loads one when it runs
    command_classes    commands and groups with plain help
    command_registry   how a function becomes a command, with its option groups
    global_options     the global flags, which commands take them, and the scope of one run
    resolution_files   files of conflicts, and of decisions on them
    shared_options     option groups that several commands share
    spark_options      the option group that selects an engine and a Spark session
    graph_access       opens the graph of a command; confirmation and interrupts around a write
    pipeline_access    finds the pipeline of a command: in a file, or in a cluster
    cluster_deployment plans and applies at a server
    local_files        reads and replaces the files that arguments name
    commands           the commands, one module per group
    views              their output, for people and as JSON
    command_errors     how a command fails, and exit codes
    failure_report     errors as messages and documents
"""

from omnigraph.cli.entry_point import main

__all__ = ["main"]
