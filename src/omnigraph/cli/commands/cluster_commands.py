"""`omnigraph cluster`: plan, apply and look at a cluster of graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.cluster_deployment import apply_at_server, plan_at_server
from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import ACTOR, add_group, register_command
from omnigraph.cli.global_options import Capability, Flag, Scope
from omnigraph.cli.local_files import install_file
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.views import print_problems, print_warning
from omnigraph.cli.views.answer_views import show
from omnigraph.durations import parse_duration
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.clusters.cluster_documents import ClusterDocument
    from omnigraph.clusters.control_plane import ControlPlane

_CONFIG = Annotated[
    str, typer.Option("--config", metavar="DIR", help="The folder that holds cluster.yaml.")
]
_TIMEOUT = Annotated[
    str,
    typer.Option("--lock-timeout", metavar="TIME", help="How long to wait for the lock: 30s."),
]
_NO_WAIT: Final = "0"
_SERVER: Final = frozenset({Flag.SERVER})


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "cluster", "Manage graphs, queries, policies and pipelines as one.")
    register_command(below, Capability.CONTROL)(validate)
    register_command(below, Capability.CONTROL, takes=_SERVER)(plan)
    register_command(below, Capability.CONTROL)(status)
    register_command(below, Capability.CONTROL)(history)
    register_command(below, Capability.CONTROL, names=("show",))(show_revision)
    register_command(below, Capability.CONTROL)(checkout)
    register_command(below, Capability.CONTROL)(cleanup)
    register_command(below, Capability.CONTROL, takes=ACTOR | _SERVER)(apply)
    register_command(below, Capability.CONTROL, takes=ACTOR)(approve)
    register_command(below, Capability.CONTROL, takes=ACTOR)(refresh)
    register_command(below, Capability.CONTROL, takes=ACTOR, names=("import",))(import_state)
    register_command(below, Capability.CONTROL, names=("force-unlock",))(force_unlock)


def validate(
    config: _CONFIG = ".",
    is_deep: Annotated[
        bool, typer.Option("--deep", help="Start Spark, and check expressions of pipelines too.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Check the whole configuration: files, types, references; nothing is written."""
    _answer(_open(config).validate(is_deep=is_deep), is_json=is_json)


def plan(
    scope: Scope,
    config: _CONFIG = ".",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="Save the plan for `apply --plan`.")
    ] = None,
    is_json: JSON = False,
) -> None:
    """Show what an apply would change, here or at a server; nothing is written."""
    is_served = scope.build_flags().server is not None
    found = plan_at_server(scope, config) if is_served else _open(config).plan()
    if out is not None and found.is_ok:
        install_file(out, [json.dumps(found.to_json(), indent=2).encode() + b"\n"])
    _answer(found, is_json=is_json)


def apply(
    scope: Scope,
    config: _CONFIG = ".",
    lock_timeout: _TIMEOUT = _NO_WAIT,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PATH", help="Only if nothing moved since this plan."),
    ] = None,
    is_json: JSON = False,
) -> None:
    """Make the cluster what the configuration says; one revision records it, or nothing does.

    With --server, the server does it, if the policy that is applied there allows it.
    """
    if scope.build_flags().server is not None:
        _answer(apply_at_server(scope, config, plan), is_json=is_json)
        return
    _answer(_open(config, scope, lock_timeout).apply(saved=plan), is_json=is_json)


def approve(
    scope: Scope,
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="Such as graph.kb.")],
    config: _CONFIG = ".",
    lock_timeout: _TIMEOUT = _NO_WAIT,
    is_json: JSON = False,
) -> None:
    """Allow a change of the current plan that destroys data; --as names the approver."""
    _answer(_open(config, scope, lock_timeout).approve(resource), is_json=is_json)


def status(config: _CONFIG = ".", is_json: JSON = False) -> None:
    """Show what is applied, and who holds the lock."""
    _answer(_open(config).report_status(), is_json=is_json)


def refresh(
    scope: Scope,
    config: _CONFIG = ".",
    lock_timeout: _TIMEOUT = _NO_WAIT,
    is_json: JSON = False,
) -> None:
    """Look at the graphs and payloads, and record what is there."""
    _answer(_open(config, scope, lock_timeout).refresh(), is_json=is_json)


def import_state(
    scope: Scope,
    config: _CONFIG = ".",
    lock_timeout: _TIMEOUT = _NO_WAIT,
    is_json: JSON = False,
) -> None:
    """Start the ledger of a cluster, with the graphs that are there already."""
    _answer(_open(config, scope, lock_timeout).import_state(), is_json=is_json)


def force_unlock(
    lock_id: Annotated[str, typer.Argument(metavar="LOCK_ID", help="The id that status shows.")],
    config: _CONFIG = ".",
    is_json: JSON = False,
) -> None:
    """Remove the lock of a run that is gone, by its exact id."""
    _answer(_open(config).force_unlock(lock_id), is_json=is_json)


def history(config: _CONFIG = ".", is_json: JSON = False) -> None:
    """List the revisions: who applied what, and when."""
    _answer(_open(config).list_revisions(), is_json=is_json)


def show_revision(
    revision: Annotated[
        int | None, typer.Option("--revision", metavar="N", help="The newest if absent.")
    ] = None,
    config: _CONFIG = ".",
    is_json: JSON = False,
) -> None:
    """Show one revision: every resource with its digest."""
    _answer(_open(config).show(revision), is_json=is_json)


def checkout(
    revision: Annotated[int, typer.Argument(metavar="N", help="The number of the revision.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty or new folder.")],
    config: _CONFIG = ".",
    is_json: JSON = False,
) -> None:
    """Write the configuration of a revision to a folder, to plan and apply it again."""
    _answer(_open(config).checkout(revision, folder), is_json=is_json)


def cleanup(
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="Content of the newest N revisions stays."),
    ] = None,
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="What is younger stays.")
    ] = "1d",
    is_confirmed: Annotated[
        bool, typer.Option("--confirm", help="Remove it; without, it is only listed.")
    ] = False,
    config: _CONFIG = ".",
    is_json: JSON = False,
) -> None:
    """Remove content that no revision names, and what is left of deleted graphs."""
    seconds = _parse_seconds("--grace", grace)
    found = _open(config).clean_up(keep=keep, grace_s=seconds, is_dry=not is_confirmed)
    _answer(found, is_json=is_json)


def _open(config: str, scope: Scope | None = None, lock_timeout: str = _NO_WAIT) -> ControlPlane:
    from omnigraph.clusters.control_plane import ControlPlane

    actor = None if scope is None else scope.actor
    timeout = _parse_seconds("--lock-timeout", lock_timeout)
    return ControlPlane(config, actor, timeout)


def _parse_seconds(option: str, text: str) -> float:
    seconds = parse_duration(text)
    if seconds is None:
        raise typer.BadParameter(f"{option}: '{text}' is not a time span such as 30s")
    return float(seconds)


def _answer(document: ClusterDocument, *, is_json: bool) -> None:
    failure = None if document.is_ok else ErrorCode.BAD_REQUEST
    show(document, is_json=is_json, failure=failure)
    if not is_json:
        for each in document.findings:
            if each.severity == "error":
                print_problems([str(each)])
            else:
                print_warning(str(each))
    if not document.is_ok:
        raise typer.Exit(FAILED)
