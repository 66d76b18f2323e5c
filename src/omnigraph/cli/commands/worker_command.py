"""`omnigraph worker`: runs the pipelines of a cluster when they are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from omnigraph.cli.cluster_access import resolve_cluster
from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import register_command
from omnigraph.cli.commands.pipeline_commands import wait_for_slot
from omnigraph.cli.global_options import Capability, Flag, Scope
from omnigraph.cli.graph_access import handle_interrupts
from omnigraph.cli.pipeline_access import RunPlaceOptions, build_spark_options, import_pipelines
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.spark_options import SparkTarget
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.pipeline_views import ScheduledRuns
from omnigraph.error_codes import ErrorCode

_FLAGS: Final = frozenset({Flag.CLUSTER, Flag.PROFILE})
# How long a worker waits where no pipeline has a schedule.
_PAUSE: Final = timedelta(seconds=30)
_AGAIN: Final = "start it again: what is in the graphs already is not written twice"


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.CONTROL, takes=_FLAGS)(worker)


def worker(
    scope: Scope,
    spark: SparkTarget,
    place: RunPlaceOptions,
    is_single: Annotated[
        bool, typer.Option("--once", help="Run what is due now, and end; else until interrupted.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="NAME,…", help="Only these pipelines of the cluster."),
    ] = None,
    is_json: JSON = False,
) -> None:
    """Run the pipelines of a cluster whose schedule says that they are due.

    Definitions are those of the newest revision. Any number of workers may run: each slot is
    written once.
    """
    applied = import_pipelines()
    root = resolve_cluster(scope).root
    names = tuple(name.strip() for name in only.split(",")) if only else ()
    applied.require_applied(root, names)
    options = applied.RunOptions(spark=build_spark_options(spark))
    running = applied.PipelineWorker(root, place.resolve(), options, names)
    failure = None
    with handle_interrupts(lambda: _AGAIN):
        while True:
            found = list(running.run_due(datetime.now(UTC)))
            is_done = all(each.run and each.run.status == "succeeded" for each in found)
            failure = None if is_done else ErrorCode.INTERNAL
            if found or is_single:
                show(ScheduledRuns(found), is_json=is_json, failure=failure)
            if is_single:
                break
            # What is due may be applied meanwhile, too.
            now = datetime.now(UTC)
            wait_for_slot(running.find_next_due(now) or now + _PAUSE)
    if failure:
        raise typer.Exit(FAILED)
