"""`omnigraph shell`: a prompt for queries on a graph that stays open."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import WRITE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import is_terminal, open_graph
from omnigraph.cli.shared_options import POSITIONAL_URI, OutputFormat, ReadTarget, RowFormat

if TYPE_CHECKING:
    from omnigraph.cli.shell.shell_session import ShellSession


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.DATA, takes=WRITE_FLAGS, names=("shell",))(run_shell)


def run_shell(
    scope: Scope,
    target: ReadTarget,
    output: RowFormat,
    uri: POSITIONAL_URI = None,
    has_timing: Annotated[
        bool, typer.Option("--timing", help="Print how long each query takes.")
    ] = False,
) -> None:
    """Ask a graph one query after another, at a prompt or from standard input."""
    from omnigraph.cli.shell.shell_session import ShellSession

    chosen = ReadTarget("main") if target.snapshot is None and not target.branch else target
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        session = ShellSession(
            graph,
            format=output.choose(scope.config.output),
            target=chosen,
            has_timing=has_timing,
        )
        _ = chosen.open(graph)
        if is_terminal():
            _run_terminal(session)
        else:
            _run_lines(session, sys.stdin)


def _run_terminal(session: ShellSession) -> None:
    from omnigraph.cli.shell.shell_prompt import read_typed
    from omnigraph.cli.views import print_lines

    if session.format is not OutputFormat.JSON:
        print_lines([rf"{session.graph.uri}; \help lists the commands, Ctrl-D ends"])
    for text in read_typed(session):
        _run_input(session, text)


def _run_lines(session: ShellSession, lines: Iterable[str]) -> None:
    """Run what is piped in; the first mistake ends it, as in a script."""
    from omnigraph.cli.shell.shell_input import split_inputs

    for text in split_inputs(lines):
        if session.is_ended:
            return
        if not _run_input(session, text):
            raise typer.Exit(FAILED)


def _run_input(session: ShellSession, text: str) -> bool:
    """Run one input and report its failure; Ctrl-C stops what it runs, not the shell."""
    from omnigraph.cli.failure_report import report_failure
    from omnigraph.cli.views import print_problems
    from omnigraph.errors.base_error import raise_interruptions

    try:
        with raise_interruptions():
            session.run(text)
    except KeyboardInterrupt:
        print_problems(["interrupted"])
        return False
    except Exception as failure:  # noqa: BLE001 — the report raises what it does not expect
        report_failure(failure, is_json=session.format is OutputFormat.JSON)
        return False
    return True
