"""`omnigraph query`, `explain` and `mutate`: run, or describe, a query of a text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from omnigraph.cli.failures import fail
from omnigraph.cli.graphs import NOTHING_WRITTEN, guard_write, handle_interrupts, open_graph
from omnigraph.cli.options import (
    IF_COMMIT,
    JSON,
    KEY,
    MAIN_BRANCH,
    MESSAGE,
    OutputFormat,
    QuerySource,
    ReadTarget,
    RowFormat,
)
from omnigraph.cli.read_options import ReadLimits, TableOptions
from omnigraph.cli.scope import Capability, Scope
from omnigraph.cli.spark_options import ReadExecution
from omnigraph.cli.statements import (
    execute_statement,
    require_no_query_options,
    resolve_statement_name,
    write_statement,
)
from omnigraph.cli.verbs import STORE, STORE_AND_ACTOR, register_command
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.documents import Mutated, show
from omnigraph.cli.views.explanation import Explanation
from omnigraph.cli.views.rows import LINE_FORMATS, ResultRows, format_table
from omnigraph.diagnostics import Source
from omnigraph.errors import CompileError
from omnigraph.query.ast import Explain


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DATA, takes=STORE)(query)
    register_command(app, Capability.DATA, takes=STORE)(explain)
    register_command(app, Capability.DATA, takes=STORE_AND_ACTOR)(mutate)


def query(  # noqa: PLR0913 — one group for each decision of the caller
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: ReadLimits,
    output: RowFormat,
    table: TableOptions,
    place: ReadExecution,
) -> None:
    """Run a query that reads, and print its rows."""
    parsed, params = source.parse(), source.read_parameters()
    file, text = parsed.file, parsed.source.text
    if file.statement is None:
        name = source.select_query(file).name.text
    else:
        require_no_query_options(
            source,
            ("--branch", target.branch),
            ("--snapshot", target.snapshot),
            ("--engine", place.engine_name),
        )
        name = resolve_statement_name(file.statement)
    with (
        _name_source(source.text_name),
        place.use_engine(),
        open_graph(scope, scope.resolve_address()) as graph,
    ):
        snapshot = target.open(graph)
        if file.statement is None:
            result = snapshot.query(
                text,
                name=source.name,
                params=params,
                timeout=bounds.timeout,
                memory=bounds.memory_bytes,
                engine=place.engine.value,
            )
            columns, rows = [each.name for each in result.columns], result.to_json_rows()
        else:
            columns, rows = execute_statement(graph, text)
        is_of_branch = file.statement is None or isinstance(file.statement, Explain)
        read = (target.to_json(), snapshot.commit.id) if is_of_branch else (None, None)
        answer = ResultRows(name, read[0], columns, rows, read[1])
    match output.chosen:
        case OutputFormat.JSON:
            print_json(answer.to_json())
        case OutputFormat.TABLE:
            print_lines(format_table(answer, table.layout))
        case other:
            print_lines(LINE_FORMATS[other.value](answer))


def explain(
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: ReadLimits,
    is_run: Annotated[
        bool,
        typer.Option(
            "--run/--no-run", help="Run the query, and tell the rows and the time of its steps."
        ),
    ] = True,
    is_json: JSON = False,
) -> None:
    """Say how a query is answered: its steps, where they read, their rows and times."""
    parsed, params = source.parse(), source.read_parameters()
    if parsed.file.statement is not None:
        fail("the text is a statement, not a query", hint="run it with `omnigraph query`")
    name = source.select_query(parsed.file).name.text
    with _name_source(source.text_name), open_graph(scope, scope.resolve_address()) as graph:
        snapshot = target.open(graph)
        explained = snapshot.explain(
            parsed.source.text,
            name=source.name,
            params=params,
            analyze=is_run,
            timeout=bounds.timeout,
            memory=bounds.memory_bytes,
        )
        view = Explanation(name, target.to_json(), explained, snapshot.commit.id)
    show(view, is_json=is_json)


def mutate(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    source: QuerySource,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="NAME", show_default=MAIN_BRANCH, help="The branch to write to."
        ),
    ] = None,
    expected: IF_COMMIT = None,
    message: MESSAGE = None,
    key: KEY = None,
    is_json: JSON = False,
) -> None:
    """Run a query that inserts, updates or deletes, as one commit."""
    parsed, params = source.parse(), source.read_parameters()
    file, text = parsed.file, parsed.source.text
    if file.statement is not None:
        flags = (("--branch", branch), ("--if-commit", expected), ("--message", message))
        require_no_query_options(source, *flags, ("--key", key))
        write_statement(scope, file.statement, is_json=is_json)
        return
    source.select_query(file)
    outcome = NOTHING_WRITTEN
    with (
        _name_source(source.text_name),
        handle_interrupts(lambda: outcome),
        open_graph(scope, scope.resolve_address()) as graph,
    ):
        target = graph.branch(branch or MAIN_BRANCH)
        with guard_write(target):
            result = target.mutate(
                text, name=source.name, params=params, if_commit=expected, message=message, key=key
            )
        if result.commit is not None:
            outcome = f"commit {result.commit.id} was written"
    show(Mutated(result), is_json=is_json)


@contextmanager
def _name_source(name: str) -> Iterator[None]:
    """Let the diagnostics of a text name the file it came from."""
    try:
        yield
    except CompileError as failure:
        named = [
            replace(found, source=Source(name, found.source.text)) for found in failure.diagnostics
        ]
        raise CompileError(named) from failure
