"""`omnigraph branch`: create, list, merge and delete branches."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.command_registry import WRITE_FLAGS, add_group, register_command
from omnigraph.cli.commands.merge_commands import merge
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import confirm, echo_write, handle_interrupts, open_graph
from omnigraph.cli.shared_options import JSON, MAIN_BRANCH
from omnigraph.cli.views.answer_views import Branches, Fields, show

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]
_UNSURE = "look at `omnigraph branch list` to see whether it happened"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "branch", "Work with branches.")
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(create)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS, names=("list",))(list_)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(delete)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(merge)


def create(
    scope: Scope,
    name: _NAME,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NAME",
            help="What it starts from: a branch, a tag, a commit, or a version or a time of main.",
        ),
    ] = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Start a branch at the head of another; no data is copied."""
    address = scope.resolve_address()
    echo_write(scope, "branch create", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE):
        graph.create_branch(name, source=source)
    document = {"uri": address, "from": source, "name": name, "actor_id": graph.actor}
    show(Fields(document, f"created branch {name} from {source}"), is_json=is_json)


def list_(scope: Scope, is_json: JSON = False) -> None:
    """List the branches."""
    with open_graph(scope, scope.resolve_address()) as graph:
        show(Branches(graph.branches()), is_json=is_json)


def delete(scope: Scope, name: _NAME, is_json: JSON = False) -> None:
    """End a branch and free its name."""
    address = scope.resolve_address()
    confirm(scope, address, f"branch delete {name}", is_json=is_json)
    echo_write(scope, "branch delete", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE):
        graph.delete_branch(name)
    document = {"uri": address, "name": name, "actor_id": graph.actor}
    show(Fields(document, f"deleted branch {name}"), is_json=is_json)
