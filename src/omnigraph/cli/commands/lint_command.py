"""`omnigraph lint`: check a query file against a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import STORAGE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.local_files import read_source
from omnigraph.cli.shared_options import JSON, MAIN_BRANCH, POSITIONAL_URI
from omnigraph.cli.views import format_count, print_diagnostics
from omnigraph.cli.views.answer_views import JsonObject, show
from omnigraph.error_codes import ErrorCode
from omnigraph.lang.quoting import sanitize_text

if TYPE_CHECKING:
    from omnigraph.query.query_lint import LintReport, SchemaSource


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS)(lint)


def lint(
    scope: Scope,
    query_path: Annotated[
        Path, typer.Option("--query", metavar="PATH", help="The query file, a .gq file.")
    ],
    uri: POSITIONAL_URI = None,
    schema_path: Annotated[
        Path | None, typer.Option("--schema", metavar="PATH", help="The schema, a .pg file.")
    ] = None,
    is_strict: Annotated[
        bool, typer.Option("--strict", help="Refuse old spellings instead of warning about them.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Check the queries of a file against a schema or a graph; exit with 1 if one has an error."""
    from omnigraph.lang.lexer import Mode
    from omnigraph.lang.source_text import Source
    from omnigraph.query.entity_conditions import compile_whole_schema
    from omnigraph.query.query_lint import LintFinding, LintReport, lint_file

    schema_source, text = _read_schema(scope, uri, schema_path)
    schema = compile_whole_schema(text, name=schema_source.path or "schema.pg")
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
        if schema_path is not None:
            print_diagnostics(schema.diagnostics)
    if not is_json:
        print_diagnostics(report.diagnostics)
    failure = ErrorCode.BAD_REQUEST if report.has_errors else None
    show(_LintView(report), is_json=is_json, failure=failure)
    if failure:
        raise typer.Exit(FAILED)


def _read_schema(
    scope: Scope, uri: str | None, path: Path | None
) -> tuple[SchemaSource, str | bytes]:
    """Where the schema is from, and its text."""
    from omnigraph.query.query_lint import SchemaSource

    if path is None:
        address = scope.resolve_address(uri, otherwise="a schema file with --schema")
        with open_graph(scope, address) as graph:
            return SchemaSource(uri=address), graph.branch(MAIN_BRANCH).schema
    if uri is not None or scope.is_addressed:
        raise typer.BadParameter("--schema and a graph exclude each other")
    return SchemaSource(path=str(path)), read_source(path)


class _LintView:
    """The report, in both views."""

    def __init__(self, report: LintReport) -> None:
        self._report = report

    def to_json(self) -> JsonObject:
        return self._report.to_json()

    def to_lines(self) -> Iterator[str]:
        from omnigraph.lang.diagnostics import Severity
        from omnigraph.query.ast import MutationBody

        report = self._report
        for result in report.results:
            kind = "mutation" if isinstance(result.query.body, MutationBody) else "read"
            status = "ok" if result.checked is not None else "error"
            yield f"{status:<6} {kind:<9} {sanitize_text(result.query.name.text)}"
        if report.dropped_count:
            yield f"{format_count(report.dropped_count, 'more finding')} not shown"
        errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
        yield (
            f"{report.source.name}: "
            f"{format_count(len(report.results), 'query', plural='queries')}, "
            f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}"
        )
