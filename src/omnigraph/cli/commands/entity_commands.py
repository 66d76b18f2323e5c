"""`omnigraph history` and `omnigraph blame`: one entity through time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.command_registry import READ_FLAGS, register_command
from omnigraph.cli.commands.blob_commands import Kind
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.shared_options import BRANCH, JSON, MAIN_BRANCH
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.change_views import format_blame, format_version

if TYPE_CHECKING:
    from omnigraph.engine.entity_changes import EntityChange
    from omnigraph.engine.entity_history import EntityVersion
    from omnigraph.engine.snapshot import EntityKind


@dataclass(frozen=True, slots=True)
class EntitySelector:
    """The entity of a command."""

    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="Its type.")]
    entity_id: Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
    kind: Annotated[
        Kind | None,
        typer.Option("--kind", help="Which of a node and an edge type of one name."),
    ] = None

    @property
    def entity_kind(self) -> EntityKind | None:
        """The kind as the engine calls it."""
        if self.kind is None:
            return None
        return "node" if self.kind is Kind.NODE else "edge"

    def to_json(self) -> dict[str, object]:
        """The subject of a document."""
        return {"type": self.type_name, "id": self.entity_id}


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DATA, takes=READ_FLAGS)(history)
    register_command(app, Capability.DATA, takes=READ_FLAGS)(blame)


def history(
    scope: Scope,
    subject: EntitySelector,
    branch: BRANCH = MAIN_BRANCH,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the newest.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """Show who changed an entity, when and in which commits, the newest first."""
    with open_graph(scope, scope.resolve_address()) as graph:
        kind = subject.entity_kind
        found = graph.branch(branch).history(subject.type_name, subject.entity_id, kind=kind)
        versions = list(islice(found, None if limit is None else min(limit, sys.maxsize)))
    if not versions:
        from omnigraph.errors import EntityNotFoundError

        raise EntityNotFoundError(subject.type_name, subject.entity_id)
    if is_json:
        print_json({**subject.to_json(), "versions": [each.to_json() for each in versions]})
        return
    for version in versions:
        print_lines(format_version(version, _as_change(subject, version)))


def blame(
    scope: Scope,
    subject: EntitySelector,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Show which commit gave each property of an entity its value."""
    with open_graph(scope, scope.resolve_address()) as graph:
        kind = subject.entity_kind
        at = graph.branch(branch)
        blamed = at.blame(subject.type_name, subject.entity_id, kind=kind)
        image = at.snapshot().entity(subject.type_name, subject.entity_id, kind=kind)
    if is_json:
        commits = {
            name: None if commit is None else commit.to_json() for name, commit in blamed.items()
        }
        print_json({**subject.to_json(), "properties": commits})
    else:
        print_lines(format_blame(blamed, _extract_values(image)))


def _as_change(subject: EntitySelector, version: EntityVersion) -> EntityChange:
    from omnigraph.engine.entity_changes import EntityChange

    image: Any = version.after or version.before  # Any: a JSON document
    kind = "edge" if "endpoints" in image else "node"
    return EntityChange(
        kind,
        "",
        subject.type_name,
        subject.entity_id,
        version.op,
        version.before,
        version.after,
    )


def _extract_values(image: Any) -> dict[str, object]:  # Any: a JSON document
    if image is None:
        return {}
    ends = image.get("endpoints", {})
    named = {"@src": ends.get("from"), "@dst": ends.get("to")} if ends else {}
    return {**image["properties"], **named}
