"""The command tree."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from omnigraph import __version__
from omnigraph.cli.command_classes import make_app
from omnigraph.cli.command_errors import handle_termination
from omnigraph.cli.command_line import CommandLine
from omnigraph.cli.command_registry import expand_options, register_command
from omnigraph.cli.global_options import Capability, GlobalOptions
from omnigraph.cli.views import OutputError, finish_output, prepare_streams, print_problems
from omnigraph.format_version import IR_VERSION

_LEGEND = """\
Commands by what they need:

any address of a graph: query, explain, mutate, shell, load, branch, commit, changes, \
history, blame, diff, proposal, revert, cherry-pick, tag, snapshot, export, blob, schema show, \
schema apply.

served (a server): alias.

direct (files, or a graph's storage): init, lint, check, pins, schema plan, \
optimize, cleanup, repair, upgrade, index, embed, pipeline, serve, mcp.

control (a cluster): cluster, dashboards, graphs, queries, policy, worker.

local (nothing but this machine): login, logout, profile, config, schema check, schema infer, fmt, \
spark, version.
"""

# Collections of garbage find none in modules that are being loaded, and take a tenth of a start. A
# read of a small graph makes 136,000 objects.
GARBAGE_OBJECTS: Final = 200_000
# Arrow loads pandas as soon as it is installed, which takes longer than these commands do. Only
# Spark hands data frames to them.
_WITHOUT_FRAMES: Final = ("query", "read")

app = make_app(name="omnigraph", cls=CommandLine, epilog=_LEGEND, pretty_exceptions_enable=False)


def build_command_tree() -> CommandLine:
    """The root, with every command loaded."""
    root = typer.main.get_command(app)
    assert isinstance(root, CommandLine)
    root.load_commands()
    return root


def main() -> None:
    """Run the command line; output that cannot be written is a failure like any other."""
    prepare_streams()
    handle_termination()
    _prepare_process(sys.argv[1:])
    try:
        try:
            app()
        finally:
            finish_output()
    except OutputError as failure:
        # The reader of the output has closed it: nothing can be printed.
        if not isinstance(failure.__cause__, BrokenPipeError):
            print_problems([f"the output cannot be written: {failure}"])
        # The interpreter must not try to flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


class _NoDataFrames:
    """A finder of modules for which pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this command loads no pandas", name=name)


def _prepare_process(arguments: Sequence[str]) -> None:
    """Settings of the whole process, which only its entry point may change."""
    gc.set_threshold(GARBAGE_OBJECTS, *gc.get_threshold()[1:])
    # The interpreter looks for garbage in all that is loaded before it ends, several times: a
    # quarter of a short read. Registered first, this runs last, after the work of the others.
    atexit.register(gc.freeze)
    is_spark = any(each.startswith("--engine") for each in arguments)
    if arguments and arguments[0] in _WITHOUT_FRAMES and not is_spark:
        sys.meta_path.insert(0, _NoDataFrames)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
@expand_options
def options(
    ctx: typer.Context,
    scope: GlobalOptions,
    is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A lakehouse graph database: typed graphs with branches, a schema and a query language."""
    del is_version_asked  # Its callback has answered it.
    ctx.obj = scope


@register_command(app, Capability.LOCAL)
def version() -> None:
    """Print the version of the program and of the schema format it writes."""
    typer.echo(f"omnigraph {__version__}")
    typer.echo(f"internal-schema {IR_VERSION}")
