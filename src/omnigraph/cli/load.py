"""`omnigraph load`: bring data from files into a branch, as one commit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.graphs import (
    NOTHING_WRITTEN,
    answering_interrupts,
    confirm,
    echo_write,
    open_graph,
    writing,
)
from omnigraph.cli.options import IF_COMMIT, JSON, MAIN_BRANCH, POSITIONAL_URI, POSITIONAL_WAYS
from omnigraph.cli.scope import Capability, Scope
from omnigraph.cli.verbs import STORE_AND_ACTOR, verb
from omnigraph.cli.views import fail
from omnigraph.cli.views.documents import Loaded, show
from omnigraph.cli.views.progress import progress_bar
from omnigraph.diagnostics.shown import escaped
from omnigraph.errors import BranchNotFound

if TYPE_CHECKING:
    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult


class Mode(StrEnum):
    """What happens to entities that exist."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


class Dialect(StrEnum):
    """How JSON input is read."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class Input:
    """The data and how to read it."""

    path: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="PATH",
            help="A .jsonl, .parquet or .csv file, a folder of them, or a pattern in quotes.",
        ),
    ]
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="append: only new entities. merge: existing ones are replaced. "
            "overwrite: all of a loaded type are replaced.",
        ),
    ]
    type_name: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The type of the rows of a table file."),
    ] = None
    dialect: Annotated[
        Dialect,
        typer.Option("--dialect", help="strict: one entity per line. compatible: any JSON."),
    ] = Dialect.STRICT


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The branch that is loaded into, and on which terms."""

    branch: Annotated[
        str, typer.Option("--branch", metavar="NAME", help="The branch to write to.")
    ] = MAIN_BRANCH
    base: Annotated[
        str | None,
        typer.Option("--from", metavar="BASE", help="Create the branch from this one if needed."),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="KEY", help="A load repeated with its key is not made a second time."
        ),
    ] = None
    message: Annotated[
        str | None, typer.Option("--message", metavar="TEXT", help="The message of the commit.")
    ] = None
    expected: IF_COMMIT = None


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    verb(app, Capability.DATA, takes=STORE_AND_ACTOR)(load)


def load(
    scope: Scope,
    data: Input,
    target: WriteTarget,
    uri: POSITIONAL_URI = None,
    is_json: JSON = False,
) -> None:
    """Load entities into a branch: all of them in one commit, or none."""
    address = scope.address(uri, ways=POSITIONAL_WAYS)
    if str(data.path) == "-":
        fail("standard input is not read", hint="write the data to a file and name that")
    if data.mode is Mode.OVERWRITE:
        confirm(scope, address, "load --mode overwrite", is_json=is_json)
    echo_write(scope, "load", address)
    outcome = NOTHING_WRITTEN
    with answering_interrupts(lambda: outcome), open_graph(scope, address) as graph:
        branch, is_created = _branch(graph, target)
        try:
            result = _load(branch, data, target)
        except BaseException:
            # It is not deleted: somebody may have written to it meanwhile.
            if is_created:
                _say_it_stays(branch.name)
            raise
        outcome = f"commit {result.commit.id} was written"
    show(Loaded(address, result, target.base, is_created), is_json=is_json)


def _load(branch: Branch, data: Input, target: WriteTarget) -> LoadResult:
    with writing(branch), progress_bar() as progressed:
        return branch.load(
            data.path,
            mode=data.mode.value,
            type=data.type_name,
            dialect=data.dialect.value,
            if_commit=target.expected,
            message=target.message,
            key=target.key,
            progress=progressed,
        )


def _branch(graph: Graph, target: WriteTarget) -> tuple[Branch, bool]:
    """The branch to load into, and whether it was created for that."""
    try:
        branch = graph.branch(target.branch)
        _ = branch.head
    except BranchNotFound as missing:
        if target.base is None:
            missing.hint = "create it, or give the branch it shall start from with --from"
            raise
        return graph.create_branch(target.branch, source=target.base), True
    return branch, False


def _say_it_stays(name: str) -> None:
    text = f"branch {escaped(name)} was created for this load and stays; repeat the load, or delete"
    typer.echo(f"{text} the branch with `omnigraph branch delete`", err=True)
