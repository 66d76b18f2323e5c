"""`omnigraph embed`: make the vectors of texts, and say how far they are."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.command_registry import STORAGE_FLAGS, add_command_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import echo_write, guard_write, open_graph
from omnigraph.cli.shared_options import BRANCH, JSON, MAIN_BRANCH, POSITIONAL_URI
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.vector_views import Filled, Vectors

_WAIT = Annotated[
    bool,
    typer.Option("--wait", help="Wait for a provider that is down, and then go on."),
]
_TYPES = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only vectors of this type; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_command_group(app, Capability.DIRECT, name="embed", takes=STORAGE_FLAGS)(embed)
    register_command(below, Capability.DIRECT, takes=STORAGE_FLAGS)(status)


def embed(
    scope: Scope,
    branch: BRANCH = MAIN_BRANCH,
    types: _TYPES = None,
    waits: _WAIT = False,
    is_json: JSON = False,
) -> None:
    """Make the vectors of texts that wait for one, in a graph."""
    address = scope.resolve_address()
    with open_graph(scope, address) as graph:
        place = graph.branch(branch)
        echo_write(scope, "embed", address)
        with guard_write(place):
            result = place.embed(wait=waits, types=types or None)
    show(Filled(address, result), is_json=is_json)


def status(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """List how many vectors are ready, pending and failed, by property."""
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        show(Vectors(address, graph.branch(branch).embed_status()), is_json=is_json)
