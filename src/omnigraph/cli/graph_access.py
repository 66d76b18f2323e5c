"""Opens the graph of a command, and does what every write does around its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from omnigraph.cli.command_errors import exit_code_of, fail
from omnigraph.cli.global_options import Scope, is_local
from omnigraph.cli.views import print_problems

if TYPE_CHECKING:
    from omnigraph import Branch, Graph

NOTHING_WRITTEN: Final = "nothing was written"
_YES = ("y", "yes")
_UNSURE = "look at `omnigraph commit list` to see whether it was written"


def open_graph(scope: Scope, uri: str) -> Graph:
    """The graph at an address; to be used in a `with` statement."""
    # The engine takes time to import: it is loaded here, when a command needs it.
    from omnigraph.connection import open_address

    return open_address(uri, actor=scope.actor, gate=scope.gate)


def echo_write(scope: Scope, verb: str, uri: str) -> None:
    """Say on standard error where a write goes."""
    if not scope.is_quiet:
        place = "direct, local" if is_local(uri) else "direct, remote"
        is_server = uri.startswith(("http://", "https://"))
        typer.echo(f"omnigraph {verb} → {uri} ({'served' if is_server else place})", err=True)


def confirm(scope: Scope, uri: str, what: str, *, is_json: bool) -> None:
    """Ask before data that is not local is destroyed; without a terminal the answer is no."""
    if is_local(uri) or scope.is_confirmed:
        return
    if is_json or not is_terminal():
        fail(f"{what} on {uri} destroys data that is not local", hint="consent with --yes")
    typer.echo(f"{what} on {uri}: go on? [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in _YES:
        fail("not confirmed; nothing was written")


def is_terminal() -> bool:
    """Whether standard input and output are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def guard_write(branch: Branch) -> Iterator[None]:
    """Around a write to a branch: if Ctrl-C stops it, say whether it happened."""
    from omnigraph.errors import OmnigraphError, PolicyDeniedError

    try:
        before = branch.head.id
    except PolicyDeniedError:
        # A right to write is not one to read.
        before = None

    def describe_outcome() -> str:
        # A store elsewhere may still be busy with the request that was given up.
        is_known = before is not None and is_local(branch.graph.uri)
        try:
            is_same = is_known and branch.head.id == before
        except OmnigraphError:
            is_same = False
        return NOTHING_WRITTEN if is_same else _UNSURE

    with handle_interrupts(describe_outcome):
        yield


@contextmanager
def handle_interrupts(verdict: Callable[[], str]) -> Iterator[None]:
    """Around work that Ctrl-C may stop: say what became of it, and exit as shells expect."""
    from omnigraph.errors.base_error import raise_interruptions

    try:
        with raise_interruptions():
            yield
    except KeyboardInterrupt as stop:
        print_problems([f"interrupted; {verdict()}"])
        raise typer.Exit(exit_code_of(stop)) from stop
