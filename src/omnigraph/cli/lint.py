"""`omnigraph lint`: check a query file against a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.files import read_source
from omnigraph.cli.views import counted, print_diagnostics, print_json, print_lines
from omnigraph.diagnostics import Severity, Source, shown
from omnigraph.query import lint_file
from omnigraph.query.ast import MutationBody
from omnigraph.query.lint import LintFinding, LintReport, SchemaSource
from omnigraph.schema import compile_schema
from omnigraph.syntax import Mode


def lint(
    query_path: Annotated[Path, typer.Option("--query", help="The query file, a .gq file.")],
    schema_path: Annotated[Path, typer.Option("--schema", help="The schema, a .pg file.")],
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Refuse old spellings instead of warning about them.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check the queries of a file against a schema; exit with 1 if one has an error."""
    schema_source = SchemaSource(path=str(schema_path))
    schema = compile_schema(read_source(schema_path), name=str(schema_path))
    if schema.catalog is None:
        report = LintReport(
            Source(str(query_path), ""),
            schema_source,
            schema.diagnostics,
            findings=tuple(map(LintFinding, schema.diagnostics)),
        )
    else:
        report = lint_file(
            read_source(query_path),
            schema.catalog,
            name=str(query_path),
            mode=Mode.STRICT if is_strict else Mode.LENIENT,
            schema_source=schema_source,
        )
        print_diagnostics(schema.diagnostics)
    if is_json:
        print_json(report.to_json())
    else:
        print_diagnostics(report.diagnostics)
        print_lines(_summary(report))
    if report.has_errors:
        raise typer.Exit(1)


def _summary(report: LintReport) -> Iterator[str]:
    for result in report.results:
        kind = "mutation" if isinstance(result.query.body, MutationBody) else "read"
        status = "ok" if result.checked is not None else "error"
        yield f"{status:<6} {kind:<9} {shown(result.query.name.text)}"
    if report.dropped_count:
        yield f"{counted(report.dropped_count, 'more finding')} not shown"
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    yield (
        f"{report.source.name}: {counted(len(report.results), 'query', plural='queries')}, "
        f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    )
