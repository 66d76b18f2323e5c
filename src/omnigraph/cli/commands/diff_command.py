"""`omnigraph diff`: what changed between two states of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.command_registry import READ_FLAGS, register_command
from omnigraph.cli.commands.blob_commands import Kind
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.shared_options import MAIN_BRANCH
from omnigraph.cli.views.change_views import print_diff, print_page, print_summary

if TYPE_CHECKING:
    from omnigraph import Graph
    from omnigraph.engine import Diff

_STATES: Final = 2


@dataclass(frozen=True, slots=True)
class DiffStates:
    """The states to compare."""

    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[OLD] NEW",
            help="Two states: what changed from OLD to NEW. One branch: what it changed since it"
            " left main. A state is a branch, a tag, a commit, a version, a time or a date.",
        ),
    ]
    is_review: Annotated[
        bool,
        typer.Option(
            "--review",
            help="Show only what NEW changed since it left OLD: what a merge into OLD would bring.",
        ),
    ] = False

    def __post_init__(self) -> None:
        if len(self.names) > _STATES:
            raise typer.BadParameter(
                f"{len(self.names)} states cannot be compared: name one or two"
            )

    def compute_diff(self, graph: Graph, wanted: ChangeFilter) -> Diff:
        """The difference that is asked for."""
        kinds, types, ops = wanted.kinds, wanted.types, wanted.ops
        old, new = [MAIN_BRANCH, *self.names][-_STATES:]
        if self.is_review or len(self.names) < _STATES:
            return graph.branch(old).diff(new, kinds=kinds, types=types, ops=ops)
        return graph.diff(old, new, kinds=kinds, types=types, ops=ops)


class ChangeOp(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are shown."""

    kinds: Annotated[
        list[Kind] | None,
        typer.Option("--kind", metavar="KIND", help="Only node or edge; may be repeated."),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type; may be repeated."),
    ] = None
    ops: Annotated[
        list[ChangeOp] | None,
        typer.Option("--op", metavar="OP", help="Only insert, update or delete; may be repeated."),
    ] = None


@dataclass(frozen=True, slots=True)
class DiffFormat:
    """How a diff is printed."""

    is_summary: Annotated[bool, typer.Option("--stat", help="Print only the counts.")] = False
    is_html: Annotated[bool, typer.Option("--html", help="Print a page for a browser.")] = False
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False

    def __post_init__(self) -> None:
        if self.is_html and (self.is_json or self.is_summary):
            raise typer.BadParameter("--html excludes --json and --stat")


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.DATA, takes=READ_FLAGS)(diff)


def diff(
    scope: Scope,
    states: DiffStates,
    wanted: ChangeFilter,
    views: DiffFormat,
) -> None:
    """Show what changed between two states: `diff OLD NEW`, or `diff BRANCH` to review it."""
    with open_graph(scope, scope.resolve_address()) as graph:
        print_found(states.compute_diff(graph, wanted), views)


def print_found(found: Diff, views: DiffFormat) -> None:
    """Print a diff as it is wanted."""
    if views.is_html:
        print_page(found)
    elif views.is_summary:
        print_summary(found, is_json=views.is_json)
    else:
        print_diff(found, is_json=views.is_json)
