"""`omnigraph schema`: check a schema file, plan a change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.files import read_source
from omnigraph.cli.views import counted, fail, print_diagnostics, print_json, print_lines
from omnigraph.diagnostics import to_json
from omnigraph.schema import Catalog, CompiledSchema, compile_schema
from omnigraph.schema.identity import accept_schema
from omnigraph.schema.migration import MigrationPlan, plan_migration
from omnigraph.schema.shape import shape_hash
from omnigraph.syntax import Mode

schema_app = typer.Typer(
    help="Work with schema files.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_JSON = typer.Option("--json", help="Print one JSON document.")


@schema_app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A .pg file.")],
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Refuse old forms instead of warning about them.")
    ] = False,
    is_json: Annotated[bool, _JSON] = False,
) -> None:
    """Check a schema file and say what it declares."""
    mode = Mode.STRICT if is_strict else Mode.LENIENT
    compiled = compile_schema(read_source(path), name=str(path), mode=mode)
    if is_json:
        print_json(_check_document(path, compiled))
    else:
        print_diagnostics(compiled.diagnostics)
        if compiled.catalog is not None:
            print_lines(_summary(path, compiled.catalog))
    if compiled.catalog is None:
        raise typer.Exit(1)


@schema_app.command()
def plan(
    old_path: Annotated[Path, typer.Option("--from", help="The schema in force, a .pg file.")],
    new_path: Annotated[Path, typer.Option("--schema", help="The desired schema, a .pg file.")],
    allows_data_loss: Annotated[
        bool,
        typer.Option("--allow-data-loss", help="Accepted and ignored: drops keep old data."),
    ] = False,
    is_json: Annotated[bool, _JSON] = False,
) -> None:
    """Say how one schema would become another, and whether existing data allows it.

    A plan is a report: the exit code is 0 also when it is not supported.
    """
    old, new = _catalog(old_path), _catalog(new_path)
    planned = plan_migration(accept_schema(old).schema, new, allow_data_loss=allows_data_loss)
    for finding in planned.findings:
        typer.echo(str(finding), err=True)
    for warning in planned.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if is_json:
        print_json({"uri": str(old_path), **planned.to_json()})
    else:
        print_lines(_plan_lines(planned))


def _catalog(path: Path) -> Catalog:
    compiled = compile_schema(read_source(path), name=str(path))
    print_diagnostics(compiled.diagnostics)
    if compiled.catalog is None:
        fail(f"{path}: the schema has errors")
    return compiled.catalog


def _check_document(path: Path, compiled: CompiledSchema) -> dict[str, object]:
    catalog = compiled.catalog or Catalog()
    return {
        "status": "error" if compiled.catalog is None else "ok",
        "schema_path": str(path),
        "interfaces": list(catalog.interfaces),
        "nodes": list(catalog.nodes),
        "edges": list(catalog.edges),
        "shape_hash": shape_hash(catalog) if compiled.catalog else None,
        "diagnostics": [to_json(found) for found in compiled.diagnostics],
    }


def _summary(path: Path, catalog: Catalog) -> list[str]:
    return [
        f"{path}: ok",
        f"interfaces: {len(catalog.interfaces)}",
        f"node types: {len(catalog.nodes)}",
        f"edge types: {len(catalog.edges)}",
        f"shape: {shape_hash(catalog)}",
    ]


def _plan_lines(planned: MigrationPlan) -> list[str]:
    if not planned.steps:
        return ["no changes"]
    verdict = "supported" if planned.supported else "NOT supported"
    return [
        *(f"- {step}" for step in planned.steps),
        f"{counted(len(planned.steps), 'step')}, {verdict}",
    ]
