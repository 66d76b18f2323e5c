"""Verbs that keep a graph healthy: `cleanup`, `repair`, `upgrade`, and `tag`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from omnigraph.cli.command_errors import FAILED, fail
from omnigraph.cli.command_registry import (
    READ_FLAGS,
    STORAGE_FLAGS,
    WRITE_FLAGS,
    add_group,
    register_command,
)
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import confirm, echo_write, handle_interrupts, open_graph
from omnigraph.cli.shared_options import (
    DRY_RUN,
    JSON,
    MAIN_BRANCH,
    POSITIONAL_URI,
)
from omnigraph.cli.views.answer_views import Fields, show
from omnigraph.cli.views.maintenance_views import Cleaned, Repaired, Tagged, TagList, Upgraded
from omnigraph.durations import format_duration, parse_duration
from omnigraph.error_codes import ErrorCode

_UNSURE = "what was removed is gone, the rest can go next time; run it again"
_UNSURE_UPGRADE = "the graph reads as before; run it again, and it goes on"
_UNSURE_TAG = "look at `omnigraph tag list` to see whether it happened"
_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The tag.")]


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """How much of each branch stays."""

    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="The newest commits of each branch stay."),
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DUR",
            help="Only what was superseded longer ago goes: seconds, or 30m, 12h, 7d, 2w.",
        ),
    ] = None

    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="DUR",
            help="What was superseded, deleted or written less long ago stays: 24h by default."
            " With less, readers of what goes fail, and writes under way start again.",
        ),
    ] = None

    def parse_age(self) -> float | None:
        """The time span that stays, in seconds."""
        return _parse_seconds(self.older_than)

    def parse_grace(self) -> float | None:
        """The grace, in seconds."""
        return _parse_seconds(self.grace)

    def require_any(self) -> None:
        """Refuse a clean-up without a retention policy."""
        if self.keep is None and self.older_than is None:
            fail(
                "a clean-up needs to know what to keep",
                hint="--keep N for the newest commits of each branch, --older-than DUR for those"
                " of a time, or both",
            )

    def __str__(self) -> str:
        seconds = self.parse_age()
        bounds = [] if self.keep is None else [f"not among the newest {self.keep}"]
        bounds += (
            [] if seconds is None else [f"superseded more than {format_duration(seconds)} ago"]
        )
        return " and ".join(bounds)


def _parse_seconds(span: str | None) -> float | None:
    if span is None:
        return None
    found = parse_duration(span)
    if found is None:
        fail(f"'{span}' is not a time span", hint="write 90, 30s, 15m, 12h, 7d or 2w")
    return float(found)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(cleanup)
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(repair)
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(upgrade)
    below = add_group(app, "tag", "Work with tags, which keep commits from being cleaned up.")
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(create)
    register_command(below, Capability.DATA, takes=READ_FLAGS, names=("list",))(list_)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(delete)


def cleanup(
    scope: Scope,
    kept: RetentionOptions,
    uri: POSITIONAL_URI = None,
    is_real: Annotated[
        bool, typer.Option("--confirm", help="Remove it; without, only say what would go.")
    ] = False,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Remove old commits of every branch, and what nothing refers to any more."""
    address = scope.resolve_address(uri)
    _require_one(is_real, is_dry_run)
    kept.require_any()
    seconds, grace = kept.parse_age(), kept.parse_grace()
    if is_real:
        confirm(scope, address, "cleanup --confirm", is_json=is_json)
        echo_write(scope, "cleanup", address)
    else:
        typer.echo(f"commits go that are {kept}; this is a preview, --confirm removes", err=True)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE):
        report = graph.cleanup(keep=kept.keep, older_than=seconds, dry_run=not is_real, grace=grace)
    failure = ErrorCode.INTERNAL if report.errors else None
    show(Cleaned(address, report), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def repair(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    is_real: Annotated[
        bool, typer.Option("--confirm", help="Put right what can be; without, only look.")
    ] = False,
    is_forced: Annotated[
        bool, typer.Option("--force", help="Also remove what others changed; needs --confirm.")
    ] = False,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Look for foreign writes, stale derived objects, and damage; exit with 1 if any is left.

    Every file of every kept commit is compared with its digest. A damaged index is built anew; any
    other damaged file has to come from a copy of the graph, and the newest whole commit is named.
    """
    _require_one(is_real, is_dry_run)
    if is_forced and not is_real:
        raise typer.BadParameter("--force needs --confirm")
    address = scope.resolve_address(uri)
    if is_real:
        echo_write(scope, "repair", address)
    with open_graph(scope, address) as graph:
        report = graph.repair(confirm=is_real, force=is_forced)
    failure = ErrorCode.INTERNAL if report.damaged else None
    failure = ErrorCode.CONFLICT if report.is_refused else failure
    show(Repaired(address, report), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def upgrade(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Bring a stored graph to the format of this program, in place; history and names stay.

    Readers and writers of this program may work meanwhile. Older programs refuse the graph after.
    """
    address = scope.resolve_address(uri)
    if not is_dry_run:
        echo_write(scope, "upgrade", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE_UPGRADE):
        report = graph.upgrade(dry_run=is_dry_run)
    show(Upgraded(address, report), is_json=is_json)


def _require_one(is_real: bool, is_dry_run: bool) -> None:
    """Refuse the option that does it together with the one that does not."""
    if is_real and is_dry_run:
        raise typer.BadParameter("--confirm and --dry-run exclude each other")


def create(
    scope: Scope,
    name: _NAME,
    at: Annotated[
        str,
        typer.Option("--at", metavar="COMMIT", help="A commit, or a branch for its newest one."),
    ] = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Name a commit, which keeps it readable until the tag is deleted."""
    address = scope.resolve_address()
    echo_write(scope, "tag create", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE_TAG):
        tag = graph.tag(name, at)
    show(Tagged(tag), is_json=is_json)


def list_(scope: Scope, is_json: JSON = False) -> None:
    """List the tags."""
    with open_graph(scope, scope.resolve_address()) as graph:
        show(TagList(graph.tags()), is_json=is_json)


def delete(scope: Scope, name: _NAME, is_json: JSON = False) -> None:
    """Free a name; the commit goes with the next clean-up that does not keep it."""
    address = scope.resolve_address()
    echo_write(scope, "tag delete", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE_TAG):
        graph.delete_tag(name)
    document = {"uri": address, "name": name, "actor_id": graph.actor}
    show(Fields(document, f"deleted tag {name}"), is_json=is_json)
