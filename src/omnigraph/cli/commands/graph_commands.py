"""Verbs about a whole graph: `init`, `snapshot`, `pins`, `export`, `check`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote, urlsplit

import typer

import omnigraph
from omnigraph.cli.cluster_access import refuse_managed
from omnigraph.cli.command_errors import FAILED, fail
from omnigraph.cli.command_registry import ACTOR, STORAGE_FLAGS, WRITE_FLAGS, register_command
from omnigraph.cli.commands.schema_commands import read_schema_text
from omnigraph.cli.global_options import Capability, Scope, is_local
from omnigraph.cli.graph_access import echo_write, handle_interrupts, open_graph
from omnigraph.cli.shared_options import (
    BRANCH,
    JSON,
    MAIN_BRANCH,
    POSITIONAL_URI,
    ReadTarget,
)
from omnigraph.cli.spark_options import ReadEngine, SparkTarget
from omnigraph.cli.views import print_bytes, print_lines, print_warning
from omnigraph.cli.views.answer_views import CheckOutcome, Pins, Tables, show
from omnigraph.cli.views.output_streams import align_columns, format_count
from omnigraph.cli.views.progress_bars import show_load_bars
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph import ExportFormatName


class ExportFormat(StrEnum):
    """What an export writes."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"
    GRAPHML = "graphml"
    GEXF = "gexf"


# What a graph consists of. Without a first commit it is what a failed `init` left over.
GRAPH_FOLDERS: Final = frozenset({"__manifest", "t"})


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DIRECT, takes=ACTOR)(init)
    register_command(app, Capability.DATA, takes=WRITE_FLAGS)(snapshot)
    register_command(app, Capability.DATA, takes=WRITE_FLAGS)(export)
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(pins)
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(check)


def init(
    scope: Scope,
    uri: Annotated[str, typer.Argument(metavar="URI", help="Where the graph shall be.")],
    schema_path: Annotated[
        Path | None, typer.Option("--schema", metavar="PATH", help="Its schema, a .pg file.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="NAME",
            help="A schema with sample data instead: people, papers or memory.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="FOLDER",
            help="With --template: also write its schema, data and queries there.",
        ),
    ] = None,
    is_forced: Annotated[
        bool, typer.Option("--force", help="Also in a folder that holds other files.")
    ] = False,
) -> None:
    """Create a graph."""
    if (schema_path is None) == (template is None):
        raise typer.BadParameter("give --schema PATH, or --template NAME")
    if folder is not None and template is None:
        raise typer.BadParameter("--files are those of a template: give --template NAME")
    address = scope.resolve_address(uri)
    refuse_managed(address, "init")
    schema = None if schema_path is None else read_schema_text(schema_path)
    if not is_forced and is_local(address):
        _require_no_other_files(address)
    echo_write(scope, "init", address)
    with handle_interrupts(lambda: f"`omnigraph snapshot {address}` shows whether it exists"):
        if template is not None:
            _create_from_template(scope, address, template, folder)
        elif schema is not None:
            with omnigraph.create(address, schema=schema, actor=scope.actor) as graph:
                print_lines([f"created {address}: commit {graph.branch(MAIN_BRANCH).head.id}"])


def _create_from_template(scope: Scope, address: str, template: str, folder: Path | None) -> None:
    from omnigraph.templates import copy_template_files, create_from_template, require_template

    # Before anything is written.
    require_template(template)
    paths = [] if folder is None else copy_template_files(template, folder)
    with create_from_template(address, template, actor=scope.actor) as graph:
        main = graph.branch(MAIN_BRANCH).snapshot()
        count = sum(table.rows for table in main.tables())
        made = f"created {address} with {count} entities of the template {template}"
        print_lines([f"{made}: commit {main.commit.id}", *(f"wrote {path}" for path in paths)])


def snapshot(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """List the tables of a branch: types, entities, versions."""
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        show(Tables(graph.branch(branch).snapshot()), is_json=is_json)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Files of an export."""

    engine: Annotated[
        ReadEngine,
        typer.Option("--engine", help="Write files by threads of this process, or by Spark."),
    ] = ReadEngine.LOCAL
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Write a new directory or s3:// prefix, or one .graphml or .gexf file.",
        ),
    ] = None
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            show_default="by the name of PATH, else parquet",
            help="With --out: what to write.",
        ),
    ] = None
    is_jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False

    def __post_init__(self) -> None:
        is_spark = self.engine is ReadEngine.SPARK
        if is_spark and self.out is None:
            raise typer.BadParameter("--engine spark writes files: give --out PATH")
        if self.out is None and self.format is not None:
            raise typer.BadParameter("--format is about files: give --out PATH")
        if self.is_jsonl:
            print_warning("'--jsonl' is not needed: an export is JSON lines")


def export(
    scope: Scope,
    target: ReadTarget,
    files: ExportOptions,
    spark: SparkTarget,
    uri: POSITIONAL_URI = None,
    type_names: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type; may be repeated."),
    ] = None,
) -> None:
    """Print every entity of a branch or a commit as JSON lines, ready for `load`.

    With --out, write files instead: in folders by type, or one document of all types.
    """
    is_spark = files.engine is ReadEngine.SPARK
    if spark.is_given and not is_spark:
        raise typer.BadParameter("options about Spark need --engine spark")
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        state = target.open(graph)
        if files.out is None:
            print_bytes(state.export(types=type_names or None))
            return
        format_: ExportFormatName | None = None if files.format is None else files.format.value
        types = type_names or None
        with spark.use_session() if is_spark else nullcontext(), show_load_bars() as bars:
            if is_spark:
                result = graph.spark.export(
                    files.out, format=format_, types=types, at=state, progress=bars.stages
                )
            else:
                result = state.export_files(
                    files.out, format=format_, types=types, progress=bars.stages
                )
    rows = [("node", name, str(count)) for name, count in sorted(result.nodes.items())]
    rows += [("edge", name, str(count)) for name, count in sorted(result.edges.items())]
    print_lines(
        [
            *align_columns(rows, right={2}),
            f"wrote {format_count(result.files, 'file')} to {files.out}",
        ]
    )


def pins(
    scope: Scope, target: ReadTarget, uri: POSITIONAL_URI = None, is_json: JSON = False
) -> None:
    """List the address and version of every table, for other tools that read Lance."""
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        show(Pins(graph.uri, target.open(graph)), is_json=is_json)


def check(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    is_all: Annotated[
        bool,
        typer.Option("--all", help="Compare the contents of all commits, not of the newest 100."),
    ] = False,
    is_deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Also read every file of every kept commit and compare its digest."
        ),
    ] = False,
    is_json: JSON = False,
) -> None:
    """Verify every structural rule of a graph; exit with 1 if there is a problem.

    It reads all records, opens every table version of every kept commit and tag, and reads all rows
    of the newest commits. Flipped bits in large files that still decode are found by --deep.
    """
    address = scope.resolve_address(uri)
    with open_graph(scope, address) as graph:
        check = partial(graph.check, commits_max=None) if is_all else graph.check
        report = check(deep=is_deep)
    failure = ErrorCode.INTERNAL if report.problems else None
    show(CheckOutcome(address, report), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def _require_no_other_files(address: str) -> None:
    """Refuse a folder whose files are not those of a graph: it is probably the wrong one."""
    from omnigraph.errors import GraphExistsError, GraphNotFoundError

    folder = Path(unquote(urlsplit(address).path) if "://" in address else address)
    try:
        found = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    except OSError as failure:
        fail(f"{address}: {failure.strerror or failure}")
    if not found:
        return
    try:
        omnigraph.open(address).close()
    except GraphNotFoundError:
        if found <= GRAPH_FOLDERS:
            return
        fail(
            f"{address}: the folder is not empty, and it is not a graph",
            hint="choose another one, or create the graph beside what is there with --force",
        )
    raise GraphExistsError(address)
