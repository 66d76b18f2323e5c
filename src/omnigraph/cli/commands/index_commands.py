"""Verbs that make a graph faster to read: `optimize`, `index status`, `index build`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer

from omnigraph.cli.command_registry import STORAGE_FLAGS, add_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import echo_write, guard_write, open_graph
from omnigraph.cli.shared_options import BRANCH, JSON, MAIN_BRANCH, POSITIONAL_URI
from omnigraph.cli.spark_options import ReadEngine, SparkTarget
from omnigraph.cli.views.answer_views import show
from omnigraph.cli.views.maintenance_views import Indexes, IndexesBuilt, Optimized
from omnigraph.cli.views.progress_bars import show_load_bars

WORKERS = Annotated[
    ReadEngine, typer.Option("--engine", help="Work in this process, or by tasks on Spark.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(optimize)
    below = add_group(app, "index", "Work with the indexes that the schema declares.")
    register_command(below, Capability.DIRECT, takes=STORAGE_FLAGS)(status)
    register_command(below, Capability.DIRECT, takes=STORAGE_FLAGS)(build)


def optimize(
    scope: Scope,
    spark: SparkTarget,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    engine: WORKERS = ReadEngine.LOCAL,
    is_json: JSON = False,
) -> None:
    """Join small fragments and extend the declared indexes to all rows; no entity changes."""
    _require_spark_engine(engine, spark)
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        place = graph.branch(branch)
        echo_write(scope, "optimize", address)
        with guard_write(place), _use_engine(engine, spark), show_load_bars() as bars:
            if engine is ReadEngine.LOCAL:
                result = place.optimize()
            else:
                result = graph.spark.optimize(branch, progress=bars.stages)
    show(Optimized(address, result), is_json=is_json)


def status(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """List the declared indexes, and how many rows each of them covers."""
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        show(Indexes(address, branch, graph.index_status(branch)), is_json=is_json)


def build(
    scope: Scope,
    spark: SparkTarget,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    engine: WORKERS = ReadEngine.LOCAL,
    is_json: JSON = False,
) -> None:
    """Build the declared indexes that are missing; no answer depends on them."""
    _require_spark_engine(engine, spark)
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        place = graph.branch(branch)
        echo_write(scope, "index build", address)
        with guard_write(place), _use_engine(engine, spark), show_load_bars() as bars:
            if engine is ReadEngine.LOCAL:
                result = place.ensure_indices()
            else:
                result = graph.spark.ensure_indices(branch, progress=bars.stages)
    show(IndexesBuilt(address, result), is_json=is_json)


def _use_engine(engine: ReadEngine, spark: SparkTarget) -> AbstractContextManager[None]:
    """Let Spark do the work, if it is to."""
    return nullcontext() if engine is ReadEngine.LOCAL else spark.use_session()


def _require_spark_engine(engine: ReadEngine, spark: SparkTarget) -> None:
    if engine is ReadEngine.LOCAL and spark.is_given:
        raise typer.BadParameter("options about Spark need --engine spark")
