"""Verbs about a whole graph: `init`, `snapshot`, `pins`, `export`, `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

import typer

import omnigraph
from omnigraph.cli.graphs import answering_interrupts, echo_write, open_graph
from omnigraph.cli.options import (
    BRANCH,
    JSON,
    MAIN_BRANCH,
    POSITIONAL_URI,
    POSITIONAL_WAYS,
    ReadTarget,
)
from omnigraph.cli.schema_files import schema_text
from omnigraph.cli.scope import Capability, Scope, is_local
from omnigraph.cli.verbs import ACTOR, STORE, STORE_AND_ACTOR, verb
from omnigraph.cli.views import fail, print_bytes, print_lines
from omnigraph.cli.views.documents import Checked, Pins, Tables, show
from omnigraph.errors import GraphExists, GraphNotFound

# What a graph consists of. Without a first commit it is what an `init` that failed left behind.
GRAPH_FOLDERS: Final = frozenset({"__manifest", "t"})


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    verb(app, Capability.DIRECT, takes=ACTOR)(init)
    verb(app, Capability.DATA, takes=STORE_AND_ACTOR)(snapshot)
    verb(app, Capability.DATA, takes=STORE_AND_ACTOR)(export)
    verb(app, Capability.DIRECT, takes=STORE)(pins)
    verb(app, Capability.DIRECT, takes=STORE)(check)


def init(
    scope: Scope,
    uri: Annotated[str, typer.Argument(metavar="URI", help="Where the graph shall be.")],
    schema_path: Annotated[
        Path, typer.Option("--schema", metavar="PATH", help="Its schema, a .pg file.")
    ],
    is_forced: Annotated[
        bool, typer.Option("--force", help="Also in a folder that holds other files.")
    ] = False,
) -> None:
    """Create a graph."""
    address = scope.address(uri)
    schema = schema_text(schema_path)
    if not is_forced and is_local(address):
        _refuse_other_files(address)
    echo_write(scope, "init", address)
    with (
        answering_interrupts(lambda: f"`omnigraph snapshot {address}` tells whether it exists"),
        omnigraph.create(address, schema=schema, actor=scope.actor) as graph,
    ):
        print_lines([f"created {address}: commit {graph.branch(MAIN_BRANCH).head.id}"])


def snapshot(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """List the tables of a branch: types, entities, versions."""
    with open_graph(scope, scope.address(uri, ways=POSITIONAL_WAYS)) as graph:
        show(Tables(graph.branch(branch).snapshot()), is_json=is_json)


def export(
    scope: Scope,
    target: ReadTarget,
    uri: POSITIONAL_URI = None,
    type_names: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type; may be repeated."),
    ] = None,
) -> None:
    """Print every entity of a branch or a commit as JSON lines, ready for `load`."""
    with open_graph(scope, scope.address(uri, ways=POSITIONAL_WAYS)) as graph:
        print_bytes(target.open(graph).export(types=type_names or None))


def pins(
    scope: Scope, target: ReadTarget, uri: POSITIONAL_URI = None, is_json: JSON = False
) -> None:
    """List the address and version of every table, for other tools that read Lance."""
    with open_graph(scope, scope.address(uri, ways=POSITIONAL_WAYS)) as graph:
        show(Pins(graph.uri, target.open(graph)), is_json=is_json)


def check(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    is_all: Annotated[
        bool,
        typer.Option("--all", help="Compare the contents of all commits, not of the newest 100."),
    ] = False,
    is_json: JSON = False,
) -> None:
    """Verify every structural rule of a graph; exit with 1 if there is a problem."""
    address = scope.address(uri, ways=POSITIONAL_WAYS)
    with open_graph(scope, address) as graph:
        report = graph.check(commits_max=None) if is_all else graph.check()
    show(Checked(address, report), is_json=is_json)
    if report.problems:
        raise typer.Exit(1)


def _refuse_other_files(address: str) -> None:
    """A folder with files that are no graph was probably not meant."""
    folder = Path(unquote(urlsplit(address).path) if "://" in address else address)
    try:
        found = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    except OSError as failure:
        fail(f"{address}: {failure.strerror or failure}")
    if not found:
        return
    try:
        omnigraph.open(address).close()
    except GraphNotFound:
        if found <= GRAPH_FOLDERS:
            return
        fail(
            f"{address}: the folder is not empty, and it is not a graph",
            hint="choose another one, or create the graph beside what is there with --force",
        )
    raise GraphExists(address)
