"""Writing to the two output streams."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from omnigraph.diagnostics import Diagnostic, Severity, render_human

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def print_json(document: object) -> None:
    """One document, indented by two, ending in a line end."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Plain lines on standard output."""
    for line in lines:
        typer.echo(line)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Findings on standard error, the first line of each coloured when it is a terminal."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for found in diagnostics:
        first, _, rest = render_human(found).partition("\n")
        console.print(Text(first, style=_STYLES[found.severity]))
        console.print(Text(rest))


def fail(message: str, *, hint: str | None = None) -> NoReturn:
    """Say on standard error why the command cannot go on, and exit with 1."""
    typer.echo(f"error: {message}", err=True)
    if hint:
        typer.echo(f"  = {hint}", err=True)
    raise typer.Exit(1)
