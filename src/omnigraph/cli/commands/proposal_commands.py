"""`omnigraph proposal`: open, review and merge proposals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_registry import (
    READ_FLAGS,
    WRITE_FLAGS,
    Command,
    add_group,
    register_command,
)
from omnigraph.cli.commands.diff_command import ChangeFilter, DiffFormat, print_found
from omnigraph.cli.commands.merge_commands import show_plan
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import echo_write, handle_interrupts, open_graph
from omnigraph.cli.shared_options import JSON, KEY, MAIN_BRANCH, MESSAGE
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.merge_views import Merged
from omnigraph.cli.views.proposal_views import ChangedProposal, OneProposal, Proposals

if TYPE_CHECKING:
    from omnigraph import Proposal

_UNSURE = "look at `omnigraph proposal show` to see whether it happened"
_NUMBER = Annotated[int, typer.Argument(metavar="NUMBER", help="The number of the proposal.")]
_HEAD = Annotated[
    str | None,
    typer.Option(
        "--head",
        metavar="COMMIT",
        help="Only if this is the newest commit of the branch; exit with 4 if not.",
    ),
]
_TEXT = Annotated[
    str | None, typer.Option("--message", "-m", metavar="TEXT", help="What you think of it.")
]
_BODY = Annotated[
    str | None,
    typer.Option("--body", metavar="TEXT", help="What it is for, in any number of lines."),
]


class Status(StrEnum):
    """What became of a proposal."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class Outcome(StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105 — not a password
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """What a comment is about, or follows."""

    entity: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--about", metavar="TYPE ID", help="The entity it is about: that begins a thread."
        ),
    ] = None
    property: Annotated[
        str | None, typer.Option("--property", metavar="NAME", help="A property of the entity.")
    ] = None
    side: Annotated[
        str | None,
        typer.Option("--side", metavar="before|after", help="The entity before or after."),
    ] = None
    replies_to: Annotated[
        int | None, typer.Option("--reply-to", metavar="COMMENT", help="The comment it answers.")
    ] = None
    resolves: Annotated[
        int | None, typer.Option("--resolve", metavar="COMMENT", help="The thread it resolves.")
    ] = None


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "proposal", "Propose to merge a branch; review, check and merge that.")
    reads: dict[str, Command] = {"list": list_, "show": show_one, "diff": diff}
    writes: dict[str, Command] = {
        "open": open_,
        "comment": comment,
        "approve": approve,
        "request-changes": request_changes,
        "check": check,
        "edit": edit,
        "sync": sync,
        "merge": merge,
        "close": close,
    }
    for verbs, takes in ((reads, READ_FLAGS), (writes, WRITE_FLAGS)):
        for name, verb in verbs.items():
            register_command(below, Capability.DATA, takes=takes, names=(name,))(verb)


def open_(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    source: Annotated[str, typer.Argument(metavar="BRANCH", help="The branch to be merged.")],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What it does, in a line.")],
    target: Annotated[
        str, typer.Option("--into", metavar="NAME", help="The branch that is merged into.")
    ] = MAIN_BRANCH,
    body: _BODY = None,
    key: KEY = None,
    is_json: JSON = False,
) -> None:
    """Propose to merge a branch into another one."""
    address = scope.resolve_address()
    echo_write(scope, "proposal open", address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE):
        opened = graph.open_proposal(source, title=title, target=target, body=body, key=key)
        show(ChangedProposal(opened.read(), "opened"), is_json=is_json)


def list_(
    scope: Scope,
    status: Annotated[
        Status, typer.Option("--status", help="Only proposals that are open, merged or closed.")
    ] = Status.OPEN,
    is_all: Annotated[bool, typer.Option("--all", help="Proposals of any status.")] = False,
    is_json: JSON = False,
) -> None:
    """List proposals, the newest first: those that are open, unless others are asked for."""
    with open_graph(scope, scope.resolve_address()) as graph:
        listed = graph.proposals(status=None if is_all else status.value)
    show(Proposals(listed), is_json=is_json)


def show_one(scope: Scope, number: _NUMBER, is_json: JSON = False) -> None:
    """Show a proposal with its reviews, checks, comments, and what is missing for its merge."""
    with open_graph(scope, scope.resolve_address()) as graph:
        show(OneProposal(graph.proposal(number).read()), is_json=is_json)


def diff(scope: Scope, number: _NUMBER, wanted: ChangeFilter, views: DiffFormat) -> None:
    """Show what a proposal asks to merge, or what it has merged."""
    with open_graph(scope, scope.resolve_address()) as graph:
        proposal = graph.proposal(number)
        found = proposal.diff(kinds=wanted.kinds, types=wanted.types, ops=wanted.ops)
        print_found(found, views)


def comment(
    scope: Scope,
    number: _NUMBER,
    place: CommentPlace,
    text: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="The comment.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """Say something about a proposal, or about an entity in it, or resolve a thread."""
    with _open_proposal(scope, "proposal comment", number) as proposal:
        info = proposal.comment(
            text,
            about=place.entity,
            property=place.property,
            side=place.side,
            replies_to=place.replies_to,
            resolves=place.resolves,
        )
        done = f"added comment {info.comments[-1].number} to"
        show(ChangedProposal(info, done), is_json=is_json)


def approve(
    scope: Scope, number: _NUMBER, text: _TEXT = None, head: _HEAD = None, is_json: JSON = False
) -> None:
    """Approve of the newest commit of a proposal; later commits make that stale."""
    with _open_proposal(scope, "proposal approve", number) as proposal:
        info = proposal.approve(text, head=head)
        show(ChangedProposal(info, f"approved commit {info.head} of"), is_json=is_json)


def request_changes(
    scope: Scope,
    number: _NUMBER,
    text: Annotated[
        str, typer.Option("--message", "-m", metavar="TEXT", help="What has to change.")
    ],
    head: _HEAD = None,
    is_json: JSON = False,
) -> None:
    """Request changes, which blocks a merge until the same actor reviews it again."""
    with _open_proposal(scope, "proposal request-changes", number) as proposal:
        info = proposal.request_changes(text, head=head)
        show(ChangedProposal(info, "requested changes of"), is_json=is_json)


def check(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    number: _NUMBER,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The check.")],
    outcome: Annotated[Outcome, typer.Argument(metavar="pass|fail", help="How it ended.")],
    link: Annotated[
        str | None, typer.Option("--link", metavar="URL", help="Where its report is.")
    ] = None,
    head: _HEAD = None,
    is_json: JSON = False,
) -> None:
    """Report how a check of the newest commit of a proposal ended."""
    with _open_proposal(scope, "proposal check", number) as proposal:
        info = proposal.report_check(name, outcome.value, head=head, link=link)
        done = f"reported check {name} ({outcome.value}) of"
        show(ChangedProposal(info, done), is_json=is_json)


def edit(
    scope: Scope,
    number: _NUMBER,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Another title.")
    ] = None,
    body: _BODY = None,
    target: Annotated[
        str | None, typer.Option("--into", metavar="NAME", help="Another branch to merge into.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """Give a proposal another title, body or target."""
    with _open_proposal(scope, "proposal edit", number) as proposal:
        info = proposal.edit(title=title, body=body, target=target)
        show(ChangedProposal(info, "changed"), is_json=is_json)


def sync(scope: Scope, number: _NUMBER, message: MESSAGE = None, is_json: JSON = False) -> None:
    """Merge the target into the branch of a proposal, which makes its reviews stale."""
    with _open_proposal(scope, "proposal sync", number) as proposal:
        show(Merged(proposal.sync_branch(message=message)), is_json=is_json)


def merge(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    number: _NUMBER,
    is_deleted: Annotated[
        bool, typer.Option("--delete-branch", help="End the merged branch afterwards.")
    ] = False,
    message: MESSAGE = None,
    head: _HEAD = None,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would happen, with every conflict.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Merge a proposal, once: the newest commit of its branch, if the policy allows it."""
    if is_dry_run:
        with open_graph(scope, scope.resolve_address()) as graph:
            show_plan(graph.proposal(number).plan(), is_json=is_json)
        return
    with _open_proposal(scope, "proposal merge", number) as proposal:
        result = proposal.merge(head=head, message=message, delete_branch=is_deleted)
        show(Merged(result), is_json=is_json)


def close(
    scope: Scope,
    number: _NUMBER,
    reason: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Why.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """Close a proposal that will not be merged; its branch stays."""
    with _open_proposal(scope, "proposal close", number) as proposal:
        show(ChangedProposal(proposal.close(reason), "closed"), is_json=is_json)


@contextmanager
def _open_proposal(scope: Scope, verb: str, number: int) -> Iterator[Proposal]:
    """A proposal that is written to."""
    address = scope.resolve_address()
    echo_write(scope, verb, address)
    with open_graph(scope, address) as graph, handle_interrupts(lambda: _UNSURE):
        yield graph.proposal(number)
