"""`omnigraph commit`: the history of a graph."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from omnigraph.cli.command_registry import READ_FLAGS, add_group, register_command
from omnigraph.cli.commands.changes_commands import commit_changes
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.shared_options import (
    BRANCH,
    COMMIT,
    JSON,
    MAIN_BRANCH,
    POSITIONAL_URI,
)
from omnigraph.cli.views.answer_views import Commits, OneCommit, show


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "commit", "Look at the history.")
    register_command(below, Capability.DATA, takes=READ_FLAGS, names=("list",))(list_)
    register_command(below, Capability.DATA, takes=READ_FLAGS, names=("show",))(show_commit)
    register_command(below, Capability.DATA, takes=READ_FLAGS, names=("changes",))(commit_changes)


def list_(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the newest.")
    ] = None,
    author: Annotated[
        str | None, typer.Option("--actor", metavar="ACTOR", help="Only those that an actor made.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """List the commits of a branch, newest first, with those it started from."""
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        if author is None:
            found = graph.branch(branch).commits(limit=limit)
        else:
            every = graph.branch(branch).commits()
            found = islice((each for each in every if each.actor == author), limit)
        show(Commits(list(found)), is_json=is_json)


def show_commit(
    scope: Scope,
    commit: COMMIT,
    is_json: JSON = False,
) -> None:
    """Say what is known of a commit."""
    with open_graph(scope, scope.resolve_address()) as graph:
        show(OneCommit(graph.commit(commit)), is_json=is_json)
