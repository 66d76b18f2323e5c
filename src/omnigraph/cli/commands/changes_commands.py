"""`omnigraph changes` and `omnigraph commit changes`: what commits changed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.command_registry import READ_FLAGS, add_group, register_command
from omnigraph.cli.commands.diff_command import ChangeFilter
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.local_files import install_file, lock_file, require_lock_support
from omnigraph.cli.shared_options import BRANCH, COMMIT, JSON, MAIN_BRANCH
from omnigraph.cli.views import print_json
from omnigraph.cli.views.answer_views import Fields, show
from omnigraph.cli.views.change_views import print_block, print_commit, print_poll

if TYPE_CHECKING:
    from omnigraph import Branch, Graph
    from omnigraph.engine.feed import ChangesPage, FeedPage

_STARTS: Final = re.compile("now|beginning|after:.+")
_LIMIT = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        show_default="1000",
        help="How many changes are read at once.",
    ),
]


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Which page of a commit, and how large pages are."""

    limit: _LIMIT = None
    page_token: Annotated[
        str | None,
        typer.Option("--page-token", metavar="TOKEN", help="Print only this page, as it is."),
    ] = None


@dataclass(frozen=True, slots=True)
class FeedStart:
    """Where a feed begins."""

    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="CURSOR", help="After what a former poll returned."),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="WHERE",
            show_default="now",
            help="now, beginning, or after:COMMIT.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.cursor is not None and self.start is not None:
            raise typer.BadParameter("--cursor and --start exclude each other")
        if self.start is not None and _STARTS.fullmatch(self.start) is None:
            raise typer.BadParameter(
                f"--start: '{self.start}' is neither now, beginning nor after:COMMIT"
            )


@dataclass(frozen=True, slots=True)
class PollStart(FeedStart):
    """Where a poll begins, and how large its pages are."""

    limit: _LIMIT = None


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "changes", "Follow what is committed to a branch.")
    register_command(below, Capability.DATA, takes=READ_FLAGS)(poll)
    register_command(below, Capability.DATA, takes=READ_FLAGS)(baseline)
    register_command(below, Capability.DATA, takes=READ_FLAGS)(follow)


def commit_changes(
    scope: Scope,
    wanted: ChangeFilter,
    commit: COMMIT,
    paging: PageOptions,
    is_json: JSON = False,
) -> None:
    """Show what a commit changed, with every entity before and after."""
    with open_graph(scope, scope.resolve_address()) as graph:
        pages = _iter_commit_pages(graph, commit, wanted, paging)
        if paging.page_token is None:
            print_commit(pages, is_json=is_json)
        elif is_json:
            print_json(next(pages).to_json())
        else:
            print_commit(islice(pages, 1), is_json=False)


def poll(
    scope: Scope,
    start: PollStart,
    wanted: ChangeFilter,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Show what was committed after a position, at most 128 commits, and the cursor to go on."""
    with open_graph(scope, scope.resolve_address()) as graph:
        pages = _iter_poll_pages(graph.branch(branch), start, wanted)
        print_poll(pages, is_json=is_json)


def baseline(
    scope: Scope,
    wanted: ChangeFilter,
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="The file to replace.")],
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Write all entities to a file, and print the cursor to follow the branch from there."""
    require_lock_support()
    with open_graph(scope, scope.resolve_address()) as graph, lock_file(out):
        kinds, types, ops = wanted.kinds, wanted.types, wanted.ops
        taken = graph.branch(branch).baseline(kinds=kinds, types=types, ops=ops)
        install_file(out, taken.chunks())
        # Printed before the next one may replace the file: the cursor belongs to what is there.
        sentence = f"{out}: as of commit {taken.commit_id}\ncursor: {taken.resume_cursor}"
        show(Fields(taken.to_json(), sentence), is_json=is_json)


def follow(
    scope: Scope,
    start: FeedStart,
    wanted: ChangeFilter,
    branch: BRANCH = MAIN_BRANCH,
    poll_s: Annotated[
        float,
        typer.Option("--every", metavar="SECONDS", min=0.0, help="How long to wait for news."),
    ] = 1.0,
) -> None:
    """Print every commit as a line of JSON, as it comes, until interrupted."""
    if not math.isfinite(poll_s):
        raise typer.BadParameter(f"--every: {poll_s:g} is not a time to wait")
    with open_graph(scope, scope.resolve_address()) as graph:
        blocks = graph.branch(branch).follow(
            cursor=start.cursor,
            start=start.start,
            poll_s=poll_s,
            kinds=wanted.kinds,
            types=wanted.types,
            ops=wanted.ops,
        )
        try:
            for block in blocks:
                print_block(block)
        except KeyboardInterrupt:
            # Ctrl-C is the ordinary end of a follower, not a failure.
            raise typer.Exit(0) from None


def _iter_commit_pages(
    graph: Graph, commit_id: str, wanted: ChangeFilter, paging: PageOptions
) -> Iterator[ChangesPage]:
    page_token = paging.page_token
    while True:
        page = graph.commit_changes(
            commit_id,
            limit=paging.limit,
            page_token=page_token,
            kinds=wanted.kinds,
            types=wanted.types,
            ops=wanted.ops,
        )
        yield page
        if page.next_page_token is None:
            return
        page_token = page.next_page_token


def _iter_poll_pages(branch: Branch, start: PollStart, wanted: ChangeFilter) -> Iterator[FeedPage]:
    cursor, first, page_token = start.cursor, start.start, None
    while True:
        page = branch.changes(
            cursor=cursor,
            start=first,
            page_token=page_token,
            limit=start.limit,
            kinds=wanted.kinds,
            types=wanted.types,
            ops=wanted.ops,
        )
        yield page
        if page.next_page_token is None:
            return
        cursor, first, page_token = None, None, page.next_page_token
