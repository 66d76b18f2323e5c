"""`omnigraph schema`: check a schema file; show, plan and apply the schema of a graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.cluster_access import refuse_managed
from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import STORE_FLAGS, WRITE_FLAGS, add_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import (
    NOTHING_WRITTEN,
    echo_write,
    guard_write,
    handle_interrupts,
    open_graph,
)
from omnigraph.cli.local_files import read_source
from omnigraph.cli.shared_options import (
    BRANCH,
    DRY_RUN,
    JSON,
    KEY,
    MAIN_BRANCH,
    POSITIONAL_URI,
    split_typed_path,
)
from omnigraph.cli.views import print_diagnostics, print_json, print_lines
from omnigraph.cli.views.answer_views import Applied, Fields, SchemaPlan, show
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.schema import Catalog, CompiledSchema
    from omnigraph.schema.migration import MigrationPlan


@dataclass(frozen=True, slots=True)
class DesiredSchema:
    """The schema that shall be in force."""

    path: Annotated[
        Path, typer.Option("--schema", metavar="PATH", help="The desired schema, a .pg file.")
    ]
    allows_data_loss: Annotated[
        bool,
        typer.Option(
            "--allow-data-loss",
            help="Let a schema without types drop all of them; other drops need no permission.",
        ),
    ] = False
    converts: Annotated[
        bool,
        typer.Option(
            "--convert",
            help="Let properties get types that are not wider ones, if every value survives it.",
        ),
    ] = False


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "schema", "Work with schema files and the schema of a graph.")
    register_command(below, Capability.LOCAL)(check)
    register_command(below, Capability.LOCAL)(infer)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS, names=("show", "get"))(show_schema)
    register_command(below, Capability.DIRECT, takes=STORE_FLAGS)(plan)
    register_command(below, Capability.DATA, takes=WRITE_FLAGS)(apply)


def check(
    path: Annotated[Path, typer.Argument(help="A .pg file.")],
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Refuse old forms instead of warning about them.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Check a schema file and say what it declares."""
    from omnigraph.lang.lexer import Mode
    from omnigraph.query.entity_conditions import compile_whole_schema

    mode = Mode.STRICT if is_strict else Mode.LENIENT
    compiled = compile_whole_schema(read_source(path), name=str(path), mode=mode)
    if is_json:
        failure = {"code": str(ErrorCode.BAD_REQUEST)} if compiled.catalog is None else {}
        print_json(_build_check_document(path, compiled) | failure)
    else:
        print_diagnostics(compiled.diagnostics)
        if compiled.catalog is not None:
            print_lines(_format_summary(path, compiled.catalog))
    if compiled.catalog is None:
        raise typer.Exit(FAILED)


def infer(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[TYPE=]PATH...",
            help="A .csv, .parquet, .orc or .jsonl file of one type, named by the file or by TYPE;"
            " or JSON lines that name their types.",
        ),
    ],
    is_json: JSON = False,
) -> None:
    """Print a schema for data files: a draft to be read, mended and given to `init`."""
    from omnigraph.inference import infer_schema

    text = infer_schema(dict(map(_split_source, sources)))
    show(Fields({"schema_source": text}, text.rstrip("\n")), is_json=is_json)


def _split_source(source: str) -> tuple[str, str]:
    """The type and the path of `Person=people.csv`; a path alone names the type by its file."""
    name, path = split_typed_path(source)
    if name is not None:
        return name, path
    words = re.split(r"[^A-Za-z0-9]+", Path(source).name.partition(".")[0])
    return "".join(word[:1].upper() + word[1:] for word in words), source


def show_schema(
    scope: Scope,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Print the schema in force on a branch."""
    with open_graph(scope, scope.resolve_address(uri)) as graph:
        source = graph.branch(branch).schema
    show(Fields({"schema_source": source}, source.rstrip("\n")), is_json=is_json)


def plan(
    scope: Scope,
    desired: DesiredSchema,
    uri: POSITIONAL_URI = None,
    old_path: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="A .pg file in place of a graph's schema."),
    ] = None,
    branch: BRANCH = MAIN_BRANCH,
    is_json: JSON = False,
) -> None:
    """Say how a schema would become another, and whether existing data allows it.

    A plan is a report: the exit code is 0 also when it is not supported.
    """
    if old_path is not None:
        if uri is not None or scope.is_addressed:
            raise typer.BadParameter("--from and a graph exclude each other")
        address, planned = str(old_path), _plan_from_files(old_path, desired)
    else:
        address = scope.resolve_address(uri, otherwise="a schema file with --from")
        with open_graph(scope, address) as graph:
            planned = graph.branch(branch).plan_schema(
                read_schema_text(desired.path),
                allow_data_loss=desired.allows_data_loss,
                convert=desired.converts,
            )
    _print_remarks(planned)
    show(SchemaPlan(address, planned), is_json=is_json)


def apply(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    desired: DesiredSchema,
    uri: POSITIONAL_URI = None,
    branch: BRANCH = MAIN_BRANCH,
    key: KEY = None,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Change the schema of a branch, as one commit; other branches keep theirs."""
    address = scope.resolve_address(uri)
    text = read_schema_text(desired.path)
    if not is_dry_run:
        refuse_managed(address, "schema apply")
        echo_write(scope, "schema apply", address)
    outcome = NOTHING_WRITTEN
    with handle_interrupts(lambda: outcome), open_graph(scope, address) as graph:
        target = graph.branch(branch)
        with guard_write(target):
            result = target.apply_schema(
                text,
                key=key,
                allow_data_loss=desired.allows_data_loss,
                convert=desired.converts,
                dry_run=is_dry_run,
            )
        if result.commit is not None:
            outcome = f"commit {result.commit.id} was written"
    _print_remarks(result.plan)
    show(Applied(address, result), is_json=is_json)


def _plan_from_files(old_path: Path, desired: DesiredSchema) -> MigrationPlan:
    from omnigraph.schema import accept_schema, plan_migration

    old, new = read_schema_catalog(old_path), read_schema_catalog(desired.path)
    return plan_migration(
        accept_schema(old).schema,
        new,
        allow_data_loss=desired.allows_data_loss,
        convert=desired.converts,
    )


def _print_remarks(planned: MigrationPlan) -> None:
    for finding in planned.findings:
        typer.echo(str(finding), err=True)
    for warning in planned.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _build_check_document(path: Path, compiled: CompiledSchema) -> dict[str, object]:
    from omnigraph.lang.diagnostic_views import describe_diagnostic
    from omnigraph.schema import Catalog, hash_shape

    catalog = compiled.catalog or Catalog()
    return {
        "status": "error" if compiled.catalog is None else "ok",
        "schema_path": str(path),
        "interfaces": list(catalog.interfaces),
        "nodes": list(catalog.nodes),
        "edges": list(catalog.edges),
        "shape_hash": hash_shape(catalog) if compiled.catalog else None,
        "diagnostics": [describe_diagnostic(found) for found in compiled.diagnostics],
    }


def _format_summary(path: Path, catalog: Catalog) -> list[str]:
    from omnigraph.schema import hash_shape

    return [
        f"{path}: ok",
        f"interfaces: {len(catalog.interfaces)}",
        f"node types: {len(catalog.nodes)}",
        f"edge types: {len(catalog.edges)}",
        f"shape: {hash_shape(catalog)}",
    ]


def read_schema_text(path: Path) -> str:
    """The text of a schema file; raises `CompileError` if it has errors."""
    text = read_source(path)
    _compile_catalog(path, text)
    return text.decode()


def read_schema_catalog(path: Path) -> Catalog:
    """What a schema file declares; raises `CompileError` if it has errors."""
    return _compile_catalog(path, read_source(path))


def _compile_catalog(path: Path, text: bytes) -> Catalog:
    from omnigraph.errors import CompileError
    from omnigraph.query.entity_conditions import compile_whole_schema

    compiled = compile_whole_schema(text, name=str(path))
    if compiled.catalog is None:
        raise CompileError(compiled.diagnostics)
    print_diagnostics(compiled.diagnostics)
    return compiled.catalog
