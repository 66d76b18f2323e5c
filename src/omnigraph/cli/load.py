"""`omnigraph load`: bring data from files into a branch, as one commit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.failures import fail
from omnigraph.cli.graphs import (
    NOTHING_WRITTEN,
    answering_interrupts,
    confirm,
    echo_write,
    open_graph,
    writing,
)
from omnigraph.cli.options import IF_COMMIT, JSON, KEY, MAIN_BRANCH, POSITIONAL_URI, POSITIONAL_WAYS
from omnigraph.cli.scope import Capability, Scope
from omnigraph.cli.spark_options import SparkPlace
from omnigraph.cli.verbs import STORE_AND_ACTOR, verb
from omnigraph.cli.views.documents import Loaded, show
from omnigraph.cli.views.progress import load_bars
from omnigraph.diagnostics.shown import escaped
from omnigraph.errors import BranchNotFound

if TYPE_CHECKING:
    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult


class Mode(StrEnum):
    """What happens to entities that exist."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


class Dialect(StrEnum):
    """How JSON input is read."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


class Engine(StrEnum):
    """Who makes the load."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class OnError(StrEnum):
    """What becomes of a load with records that cannot be written."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Input:
    """The data and how to read it."""

    path: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="PATH",
            help="A .jsonl, .parquet, .csv or .orc file, a folder of them, or a pattern in quotes, "
            "on the disk or on s3://.",
        ),
    ]
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="append: only new entities. merge: existing ones are replaced, or changed in the"
            " columns of a table. overwrite: all of a loaded type are replaced.",
        ),
    ]
    type_name: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The type of the rows of a table file."),
    ] = None
    dialect: Annotated[
        Dialect,
        typer.Option("--dialect", help="strict: one entity per line. compatible: any JSON."),
    ] = Dialect.STRICT


@dataclass(frozen=True, slots=True)
class Running:
    """Who makes the load, and what becomes of records that cannot be written."""

    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            help="local: in this process. spark: by tasks on Spark. auto: large files by Spark.",
        ),
    ] = Engine.AUTO
    on_error: Annotated[
        OnError,
        typer.Option(
            "--on-error",
            help="fail: nothing is written if a record cannot be. quarantine: it is left out.",
        ),
    ] = OnError.FAIL
    rejects: Annotated[
        str | None,
        typer.Option(
            "--rejects",
            metavar="FOLDER",
            help="Where to write a Parquet file of records that cannot be written, with reasons.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The branch that is loaded into, and on which terms."""

    branch: Annotated[
        str, typer.Option("--branch", metavar="NAME", help="The branch to write to.")
    ] = MAIN_BRANCH
    base: Annotated[
        str | None,
        typer.Option("--from", metavar="BASE", help="Create the branch from this one if needed."),
    ] = None
    key: KEY = None
    message: Annotated[
        str | None, typer.Option("--message", metavar="TEXT", help="The message of the commit.")
    ] = None
    expected: IF_COMMIT = None


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    verb(app, Capability.DATA, takes=STORE_AND_ACTOR)(load)


def load(  # noqa: PLR0913 — one group of options for each concern
    scope: Scope,
    data: Input,
    target: WriteTarget,
    running: Running,
    spark: SparkPlace,
    uri: POSITIONAL_URI = None,
    is_json: JSON = False,
) -> None:
    """Load entities into a branch: all of them in one commit, or none."""
    address = scope.address(uri, ways=POSITIONAL_WAYS)
    if data.path == "-":
        fail("standard input is not read", hint="write the data to a file and name that")
    if spark.is_given and running.engine is Engine.LOCAL:
        raise typer.BadParameter("options about Spark need --engine spark")
    _require_strict(data, running, spark)
    if data.mode is Mode.OVERWRITE:
        confirm(scope, address, "load --mode overwrite", is_json=is_json)
    echo_write(scope, "load", address)
    outcome = NOTHING_WRITTEN
    with answering_interrupts(lambda: outcome), open_graph(scope, address) as graph:
        branch, is_created = _branch(graph, target)
        try:
            result = _load(branch, data, target, running, spark)
        except BaseException:
            # It is not deleted: somebody may have written to it meanwhile.
            if is_created:
                _say_it_stays(branch.name)
            raise
        outcome = f"commit {result.commit.id} was written"
    show(Loaded(address, result, target.base, is_created), is_json=is_json)


def _require_strict(data: Input, running: Running, spark: SparkPlace) -> None:
    """Refuse the compatible dialect where records are read in units."""
    is_spark = spark.is_given or running.engine is Engine.SPARK
    is_lenient = running.on_error is OnError.QUARANTINE or running.rejects is not None
    if data.dialect is Dialect.COMPATIBLE and (is_spark or is_lenient):
        raise typer.BadParameter(
            "--dialect compatible excludes --engine spark, --on-error quarantine and --rejects"
        )


def _load(
    branch: Branch, data: Input, target: WriteTarget, running: Running, spark: SparkPlace
) -> LoadResult:
    engine = Engine.SPARK if spark.is_given else running.engine
    chosen = spark.chosen() if engine is Engine.SPARK else nullcontext()
    source = data.path if "://" in data.path else Path(data.path)
    with writing(branch), chosen, load_bars() as bars:
        return branch.load(
            source,
            mode=data.mode.value,
            type=data.type_name,
            dialect=data.dialect.value,
            if_commit=target.expected,
            message=target.message,
            key=target.key,
            engine=engine.value,
            on_error=running.on_error.value,
            rejects=running.rejects,
            progress=bars.records,
            stages=bars.stages,
        )


def _branch(graph: Graph, target: WriteTarget) -> tuple[Branch, bool]:
    """The branch to load into, and whether it was created for that."""
    try:
        branch = graph.branch(target.branch)
        _ = branch.head
    except BranchNotFound as missing:
        if target.base is None:
            missing.hint = "create it, or give the branch it shall start from with --from"
            raise
        return graph.create_branch(target.branch, source=target.base), True
    return branch, False


def _say_it_stays(name: str) -> None:
    text = f"branch {escaped(name)} was created for this load and stays; repeat the load, or delete"
    typer.echo(f"{text} the branch with `omnigraph branch delete`", err=True)
