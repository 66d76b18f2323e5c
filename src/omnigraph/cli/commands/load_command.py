"""`omnigraph load`: bring data from files into a branch, as one commit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.command_registry import WRITE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import (
    NOTHING_WRITTEN,
    confirm,
    echo_write,
    guard_write,
    handle_interrupts,
    open_graph,
)
from omnigraph.cli.shared_options import (
    DRY_RUN,
    EMBED,
    IF_COMMIT,
    JSON,
    KEY,
    MAIN_BRANCH,
    POSITIONAL_URI,
    split_typed_path,
)
from omnigraph.cli.spark_options import SparkTarget
from omnigraph.cli.views.answer_views import Loaded, show
from omnigraph.cli.views.progress_bars import show_load_bars
from omnigraph.cli.views.proposal_views import ChangedProposal
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult

_UNSURE = "look at `omnigraph proposal list` to see whether it was opened"


class LoadMode(StrEnum):
    """What happens to entities that exist."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"
    PATCH = "patch"


class Missing(StrEnum):
    """What a patch does with entities that do not exist."""

    INSERT = "insert"
    SKIP = "skip"
    ERROR = "error"


class InputDialect(StrEnum):
    """How JSON input is read."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


class LoadEngine(StrEnum):
    """The engine of the load."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class OnError(StrEnum):
    """What becomes of a load with records that cannot be written."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The data and how to read it."""

    mode: Annotated[
        LoadMode,
        typer.Option(
            "--mode",
            help="append: only new entities. merge: existing ones are replaced, or changed in the"
            " columns of a table. patch: only what is given changes. overwrite: all of a loaded"
            " type are replaced.",
        ),
    ]
    path: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="[TYPE=]PATH",
            help="A .jsonl, .parquet, .csv or .orc file, a folder of them, or a pattern in quotes, "
            "on the disk or on s3://. It may be the argument if the graph is given otherwise. "
            "TYPE= is short for --type.",
        ),
    ] = None
    type_name: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="The type of the rows of a table file, or of records that do not name theirs.",
        ),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option(
            "--missing",
            help="What --mode patch does with entities that do not exist: insert them if they are"
            " complete, skip them, or fail with an error.",
        ),
    ] = Missing.INSERT
    dialect: Annotated[
        InputDialect,
        typer.Option("--dialect", help="strict: one entity per line. compatible: any JSON."),
    ] = InputDialect.STRICT


@dataclass(frozen=True, slots=True)
class LoadExecution:
    """The engine of the load, and what becomes of records that cannot be written."""

    engine: Annotated[
        LoadEngine,
        typer.Option(
            "--engine",
            help="local: in this process. spark: by tasks on Spark. auto: large files by Spark.",
        ),
    ] = LoadEngine.AUTO
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
    embed: EMBED = None


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
    title: Annotated[
        str | None,
        typer.Option(
            "--propose",
            metavar="TITLE",
            help="Load into a new branch, and propose to merge it into the branch.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.title is not None and (self.base is not None or self.expected is not None):
            raise typer.BadParameter("--propose excludes --from and --if-commit")


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.DATA, takes=WRITE_FLAGS)(load)


def load(  # noqa: PLR0913 — one group of options for each concern
    scope: Scope,
    data: LoadInput,
    target: WriteTarget,
    running: LoadExecution,
    spark: SparkTarget,
    uri: POSITIONAL_URI = None,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Load entities into a branch: all of them in one commit, or none."""
    data, uri = _resolve_data(data, uri, scope)
    address = scope.resolve_address(uri)
    if data.path == "-":
        fail("standard input is not read", hint="write the data to a file and name that")
    _require_strict(data, running, spark)
    _require_plain(data, target, running, spark)
    if is_dry_run and (target.base is not None or target.title is not None):
        raise typer.BadParameter("--dry-run creates no branch: leave --from and --propose out")
    if not is_dry_run:
        if data.mode is LoadMode.OVERWRITE:
            confirm(scope, address, "load --mode overwrite", is_json=is_json)
        echo_write(scope, "load", address)
    if target.title is not None:
        _propose(scope, address, data, target, is_json=is_json)
        return
    outcome = NOTHING_WRITTEN
    with handle_interrupts(lambda: outcome), open_graph(scope, address) as graph:
        branch, is_created = _open_branch(graph, target)
        try:
            result = _load_branch(branch, data, target, running, spark, is_dry=is_dry_run)
        except BaseException:
            # It is not deleted: another process may have written to it meanwhile.
            if is_created:
                _report_kept_branch(branch.name)
            raise
        if not result.is_dry:
            outcome = f"commit {result.commit.id} was written"
    show(Loaded(address, result, target.base, is_created), is_json=is_json)


def _require_plain(
    data: LoadInput, target: WriteTarget, running: LoadExecution, spark: SparkTarget
) -> None:
    """Refuse options about tasks where there are none."""
    if spark.is_given and running.engine is LoadEngine.LOCAL:
        raise typer.BadParameter("options about Spark need --engine spark")
    if target.title is not None and (spark.is_given or running != LoadExecution()):
        raise typer.BadParameter("--propose loads in this process: leave out what is about tasks")
    if target.title is not None and data.missing is not Missing.INSERT:
        raise typer.BadParameter("--propose takes no --missing")


def _propose(
    scope: Scope, address: str, data: LoadInput, target: WriteTarget, *, is_json: bool
) -> None:
    """Load into a branch of its own, and propose to merge that."""
    assert target.title is not None, "a proposal has a title"
    with handle_interrupts(lambda: _UNSURE), open_graph(scope, address) as graph:
        draft = graph.branch(target.branch).propose(target.title, key=target.key)
        proposal = draft.load(
            str(data.path),
            mode=data.mode.value,
            type=data.type_name,
            dialect=data.dialect.value,
            message=target.message,
        )
        show(ChangedProposal(proposal.read(), "opened"), is_json=is_json)


def _resolve_data(data: LoadInput, uri: str | None, scope: Scope) -> tuple[LoadInput, str | None]:
    """The data and the address: an argument alone is the data if the graph is given otherwise."""
    if data.path is not None:
        return _split_type(data, data.path), uri
    if uri is None or not scope.has_default:
        raise typer.BadParameter("there is no data: give --data PATH")
    from omnigraph.storage.objects import layout

    if (Path(uri) / layout.FORMAT).exists():
        raise typer.BadParameter(f"{uri} is a graph, not data: give --data PATH")
    return _split_type(data, uri), None


def _split_type(data: LoadInput, path: str) -> LoadInput:
    """The data with the type that stands before its path, if one does."""
    name, path = split_typed_path(path)
    if name is not None and data.type_name not in (None, name):
        raise typer.BadParameter(f"the data is of type {name}, and --type is {data.type_name}")
    return replace(data, path=path, type_name=name or data.type_name)


def _require_strict(data: LoadInput, running: LoadExecution, spark: SparkTarget) -> None:
    """Refuse the compatible dialect where records are read in units."""
    is_spark = spark.is_given or running.engine is LoadEngine.SPARK
    is_lenient = running.on_error is OnError.QUARANTINE or running.rejects is not None
    if data.dialect is InputDialect.COMPATIBLE and (is_spark or is_lenient):
        raise typer.BadParameter(
            "--dialect compatible excludes --engine spark, --on-error quarantine and --rejects"
        )


def _load_branch(
    branch: Branch,
    data: LoadInput,
    target: WriteTarget,
    running: LoadExecution,
    spark: SparkTarget,
    *,
    is_dry: bool,
) -> LoadResult:
    engine = LoadEngine.SPARK if spark.is_given else running.engine
    chosen = spark.use_session() if engine is LoadEngine.SPARK else nullcontext()
    assert data.path is not None, "resolved before"
    source = data.path if "://" in data.path else Path(data.path)
    with guard_write(branch), chosen, show_load_bars() as bars:
        return branch.load(
            source,
            mode=data.mode.value,
            missing=data.missing.value,
            type=data.type_name,
            dialect=data.dialect.value,
            if_commit=target.expected,
            message=target.message,
            key=target.key,
            engine=engine.value,
            on_error=running.on_error.value,
            rejects=running.rejects,
            embed=None if running.embed is None else running.embed.value,
            dry_run=is_dry,
            progress=bars.records,
            stages=bars.stages,
        )


def _open_branch(graph: Graph, target: WriteTarget) -> tuple[Branch, bool]:
    """The branch to load into, and whether it was created for that."""
    from omnigraph.errors import BranchNotFoundError

    try:
        branch = graph.branch(target.branch)
        _ = branch.head
    except BranchNotFoundError as missing:
        if target.base is None:
            missing.hint = "create it, or give the branch it shall start from with --from"
            raise
        return graph.create_branch(target.branch, source=target.base), True
    return branch, False


def _report_kept_branch(name: str) -> None:
    text = f"branch {escape_unprintable(name)} was created for this load and stays;"
    remedy = "repeat the load, or delete the branch with `omnigraph branch delete`"
    typer.echo(f"{text} {remedy}", err=True)
