"""`omnigraph query`, `explain` and `mutate`: run, or describe, a query of a text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from omnigraph.cli.failures import fail
from omnigraph.cli.graphs import NOTHING_WRITTEN, answering_interrupts, open_graph, writing
from omnigraph.cli.options import (
    IF_COMMIT,
    JSON,
    KEY,
    MAIN_BRANCH,
    MESSAGE,
    Format,
    QuerySource,
    ReadTarget,
    RowFormat,
)
from omnigraph.cli.read_options import Bounds, TableOptions
from omnigraph.cli.scope import Capability, Scope
from omnigraph.cli.spark_options import ReadPlace
from omnigraph.cli.statements import check_lone, reading_name, statement_rows, write_statement
from omnigraph.cli.verbs import STORE, STORE_AND_ACTOR, verb
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.documents import Mutated, show
from omnigraph.cli.views.explanation import Explanation
from omnigraph.cli.views.rows import LINE_FORMATS, Rows, table_lines
from omnigraph.diagnostics import Source
from omnigraph.errors import CompileError
from omnigraph.query.ast import Explain


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    verb(app, Capability.DATA, takes=STORE)(query)
    verb(app, Capability.DATA, takes=STORE)(explain)
    verb(app, Capability.DATA, takes=STORE_AND_ACTOR)(mutate)


def query(  # noqa: PLR0913 — one group for each decision of the caller
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: Bounds,
    output: RowFormat,
    table: TableOptions,
    place: ReadPlace,
) -> None:
    """Run a query that reads, and print its rows."""
    parsed, params = source.parsed(), source.parameters()
    file, text = parsed.file, parsed.source.text
    if file.statement is None:
        name = source.query(file).name.text
    else:
        check_lone(
            source,
            ("--branch", target.branch),
            ("--snapshot", target.snapshot),
            ("--engine", place.asked),
        )
        name = reading_name(file.statement)
    with (
        _naming(source.text_name),
        place.prepared(),
        open_graph(scope, scope.address()) as graph,
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
            columns, rows = statement_rows(graph, text)
        is_of_branch = file.statement is None or isinstance(file.statement, Explain)
        read = (target.to_json(), snapshot.commit.id) if is_of_branch else (None, None)
        answer = Rows(name, read[0], columns, rows, read[1])
    match output.chosen:
        case Format.JSON:
            print_json(answer.to_json())
        case Format.TABLE:
            print_lines(table_lines(answer, table.layout))
        case other:
            print_lines(LINE_FORMATS[other.value](answer))


def explain(
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: Bounds,
    is_run: Annotated[
        bool,
        typer.Option(
            "--run/--no-run", help="Run the query, and tell the rows and the time of its steps."
        ),
    ] = True,
    is_json: JSON = False,
) -> None:
    """Say how a query is answered: its steps, where they read, their rows and times."""
    parsed, params = source.parsed(), source.parameters()
    if parsed.file.statement is not None:
        fail("the text is a statement, not a query", hint="run it with `omnigraph query`")
    name = source.query(parsed.file).name.text
    with _naming(source.text_name), open_graph(scope, scope.address()) as graph:
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
    parsed, params = source.parsed(), source.parameters()
    file, text = parsed.file, parsed.source.text
    if file.statement is not None:
        flags = (("--branch", branch), ("--if-commit", expected), ("--message", message))
        check_lone(source, *flags, ("--key", key))
        write_statement(scope, file.statement, is_json=is_json)
        return
    source.query(file)
    outcome = NOTHING_WRITTEN
    with (
        _naming(source.text_name),
        answering_interrupts(lambda: outcome),
        open_graph(scope, scope.address()) as graph,
    ):
        target = graph.branch(branch or MAIN_BRANCH)
        with writing(target):
            result = target.mutate(
                text, name=source.name, params=params, if_commit=expected, message=message, key=key
            )
        if result.commit is not None:
            outcome = f"commit {result.commit.id} was written"
    show(Mutated(result), is_json=is_json)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Let the diagnostics of a text name the file it came from."""
    try:
        yield
    except CompileError as failure:
        named = [
            replace(found, source=Source(name, found.source.text)) for found in failure.diagnostics
        ]
        raise CompileError(named) from failure
