"""`omnigraph branch merge`, `revert` and `cherry-pick`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import WRITE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import echo_write, handle_interrupts, open_graph
from omnigraph.cli.resolution_files import ResolutionFiles
from omnigraph.cli.shared_options import (
    BRANCH,
    COMMIT,
    IF_COMMIT,
    JSON,
    KEY,
    MAIN_BRANCH,
    MESSAGE,
)
from omnigraph.cli.views import print_problems
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.merge_views import Merged, PlannedMerge
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.engine import MergePlan

_UNSURE = "look at `omnigraph commit list` to see whether it happened"
_SOURCE_HELP = "The branch, a tag, the id of a commit, or a version or a time of main."
_DRY_RUN = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would happen, with every conflict.")
]
_PREFER = Annotated[
    list[str] | None,
    typer.Option(
        "--prefer",
        metavar="SIDE",
        help="Where both sides changed an entity, take ours or theirs; KIND=SIDE for one kind of"
        " conflict, which may be repeated.",
    ),
]
_BY = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="property|entity",
        help="Compare entities property by property (the default), or whole.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DATA, takes=WRITE_FLAGS)(revert)
    register_command(app, Capability.DATA, takes=WRITE_FLAGS, names=("cherry-pick",))(cherry_pick)


def merge(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=_SOURCE_HELP)],
    files: ResolutionFiles,
    target: Annotated[
        str, typer.Option("--into", metavar="NAME", help="The branch that is merged into.")
    ] = MAIN_BRANCH,
    is_deleted: Annotated[
        bool, typer.Option("--delete-branch", help="End the merged branch afterwards.")
    ] = False,
    prefer: _PREFER = None,
    by: _BY = None,
    message: MESSAGE = None,
    if_commit: IF_COMMIT = None,
    key: KEY = None,
    is_dry_run: _DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Bring what a branch changed into another one, in one commit."""
    _require_no_commit(is_dry_run, is_deleted or None, message, if_commit, key)
    address, preferred = scope.resolve_address(), _parse_preferences(prefer, by)
    resolve = files.read_decisions()
    with open_graph(scope, address) as graph:
        branch = graph.branch(target)
        if is_dry_run or files.are_wanted:
            planned = branch.plan_merge(source, prefer=preferred, by=by, resolve=resolve)
            files.write_conflicts(planned)
            if is_dry_run or planned.conflict_count:
                show_plan(planned, is_json=is_json)
                return
        echo_write(scope, "branch merge", address)
        with handle_interrupts(lambda: _UNSURE):
            result = branch.merge(
                source,
                prefer=preferred,
                by=by,
                resolve=resolve,
                delete_branch=is_deleted,
                message=message,
                if_commit=if_commit,
                key=key,
            )
    show(Merged(result), is_json=is_json)
    if result.branch_delete_error is not None:
        print_problems([f"branch '{source}' was not deleted: {result.branch_delete_error}"])


def revert(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    commit: COMMIT,
    branch: BRANCH = MAIN_BRANCH,
    prefer: _PREFER = None,
    by: _BY = None,
    message: MESSAGE = None,
    if_commit: IF_COMMIT = None,
    key: KEY = None,
    is_dry_run: _DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Undo what a commit changed, in a new commit."""
    _require_no_commit(is_dry_run, message, if_commit, key)
    address, preferred = scope.resolve_address(), _parse_preferences(prefer, by)
    with open_graph(scope, address) as graph:
        target = graph.branch(branch)
        if is_dry_run:
            show_plan(target.plan_revert(commit, prefer=preferred, by=by), is_json=is_json)
            return
        echo_write(scope, "revert", address)
        with handle_interrupts(lambda: _UNSURE):
            result = target.revert(
                commit, prefer=preferred, by=by, message=message, if_commit=if_commit, key=key
            )
    show(Merged(result), is_json=is_json)


def cherry_pick(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    commit: COMMIT,
    branch: BRANCH = MAIN_BRANCH,
    prefer: _PREFER = None,
    by: _BY = None,
    message: MESSAGE = None,
    if_commit: IF_COMMIT = None,
    key: KEY = None,
    is_dry_run: _DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Change on a branch what a commit of another one changed there, in a new commit."""
    _require_no_commit(is_dry_run, message, if_commit, key)
    address, preferred = scope.resolve_address(), _parse_preferences(prefer, by)
    with open_graph(scope, address) as graph:
        target = graph.branch(branch)
        if is_dry_run:
            show_plan(target.plan_cherry_pick(commit, prefer=preferred, by=by), is_json=is_json)
            return
        echo_write(scope, "cherry-pick", address)
        with handle_interrupts(lambda: _UNSURE):
            result = target.cherry_pick(
                commit, prefer=preferred, by=by, message=message, if_commit=if_commit, key=key
            )
    show(Merged(result), is_json=is_json)


def _require_no_commit(is_dry_run: bool, *given: object) -> None:
    """Refuse options about a commit that is not made."""
    if is_dry_run and any(each is not None for each in given):
        raise typer.BadParameter("--dry-run makes no commit: of the other options, give --prefer")


def show_plan(plan: MergePlan, *, is_json: bool) -> None:
    """Print what would happen; conflicts are a failure, as they would be without a dry run."""
    failure = ErrorCode.CONFLICT if plan.conflict_count else None
    show(PlannedMerge(plan), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def _parse_preferences(given: list[str] | None, by: str | None) -> dict[str, str] | None:
    """The side for each kind of conflict; one alone stands for all kinds."""
    if by not in (None, "property", "entity"):
        raise typer.BadParameter(f"--by: '{by}' is neither 'property' nor 'entity'")
    from omnigraph.errors import InvalidArgumentError
    from omnigraph.writers.merge.conflict_kinds import parse_preferences

    words = [each.partition("=") for each in given or []]
    sides = [kind for kind, equals, _ in words if not equals]
    if not words:
        return None
    if sides and len(words) > 1:
        raise typer.BadParameter("--prefer takes one side for all conflicts, or KIND=SIDE each")
    found = {kind: side for kind, _, side in words}
    if not sides and len(found) < len(words):
        raise typer.BadParameter("--prefer takes one side for each kind of conflict")
    try:
        return parse_preferences(sides[0] if sides else found)
    except InvalidArgumentError as error:
        hint = "" if error.hint is None else f"; {error.hint}"
        raise typer.BadParameter(f"--{error.message}{hint}") from error
