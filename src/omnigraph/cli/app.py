"""The command tree."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from omnigraph import __version__
from omnigraph.cli.fmt import fmt
from omnigraph.cli.lint import lint
from omnigraph.cli.schema_commands import schema_app
from omnigraph.cli.views import prepare_streams
from omnigraph.schema.accepted import IR_VERSION

_LEGEND = """\
Commands by what they need: [bold]direct[/bold] (files, or a graph's storage): lint, schema.
[bold]local[/bold] (nothing but this machine): fmt, version.
"""

app = typer.Typer(
    name="omnigraph",
    help="A lakehouse graph database: typed graphs with branches, a schema and a query language.",
    epilog=_LEGEND,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(lint)
app.add_typer(schema_app, name="schema")
app.command()(fmt)


def main() -> None:
    """Run the command line; output that cannot be written is a failure like any other."""
    prepare_streams()
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; the interpreter must not try to flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as failure:
        sys.stderr.write(f"error: the output cannot be written: {failure.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def options(
    _is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A lakehouse graph database: typed graphs with branches, a schema and a query language."""


@app.command()
def version() -> None:
    """Print the version of the program and of the schema format it writes."""
    typer.echo(f"omnigraph {__version__}")
    typer.echo(f"internal-schema {IR_VERSION}")
