"""`omnigraph query`, `explain` and `mutate`: run, or describe, a query of a text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, assert_never

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.command_registry import READ_FLAGS, WRITE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import NOTHING_WRITTEN, guard_write, handle_interrupts, open_graph
from omnigraph.cli.resolution_files import ResolutionFiles
from omnigraph.cli.shared_options import (
    DRY_RUN,
    EMBED,
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
from omnigraph.cli.spark_options import ReadExecution
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.answer_views import Mutated, show
from omnigraph.cli.views.query_views import (
    CELL_WIDTH_MAX,
    CELL_WIDTH_MIN,
    LINE_FORMATS,
    Explanation,
    ResultRows,
    TableLayout,
    format_table,
)

if TYPE_CHECKING:
    from omnigraph import Graph, Result
    from omnigraph.operator_config import OperatorConfig
    from omnigraph.operator_config.alias_calls import StoredQueryCall
    from omnigraph.query.ast import Query, Statement

_SIZE: Final = re.compile(r"(\d+)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_WRITTEN_BRANCH = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NAME", show_default=MAIN_BRANCH, help="The branch to write to."
    ),
]
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    register_command(app, Capability.DATA, takes=READ_FLAGS)(query)
    register_command(app, Capability.DATA, takes=READ_FLAGS)(explain)
    register_command(app, Capability.DATA, takes=WRITE_FLAGS)(mutate)


def query(  # noqa: PLR0913 — one group for each decision of the caller
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: QueryLimits,
    output: RowFormat,
    table: TableOptions,
    place: ReadExecution,
) -> None:
    """Run a query that reads, and print its rows."""
    from omnigraph.query.ast import Explain

    layout = table.build_layout(scope.config)
    if (call := _find_stored_call(scope, source, target, bounds)) is not None:
        print_stored_rows(call, output.choose(scope.config.output), layout)
        return
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
        if file.statement is None:
            result = target.choose_state(graph).query(
                text,
                name=source.name,
                params=params,
                timeout=bounds.timeout,
                memory=bounds.memory_bytes,
                engine=place.engine.value,
            )
            answer = _describe_result(name, target, result)
        else:
            columns, rows = execute_statement(graph, text)
            answer = ResultRows(name, None, columns, rows, None)
            if isinstance(file.statement, Explain):
                commit = target.open(graph).commit.id
                answer = replace(answer, target=target.to_json(), commit_id=commit)
    print_rows(answer, output.choose(scope.config.output), layout)


def _describe_result(name: str, target: ReadTarget, result: Result) -> ResultRows:
    return ResultRows(
        name,
        target.to_json(),
        [each.name for each in result.columns],
        result.to_json_rows(),
        result.commit_id,
        result.describe_page(),
    )


def print_stored_rows(call: StoredQueryCall, chosen: OutputFormat, layout: TableLayout) -> None:
    """Run a stored query of a server that reads, and print its rows."""
    from omnigraph.connection import open_served

    with open_served(call.server.url) as graph:
        found = graph.invoke_query(call.query, call.to_json())
    rows = found["rows"]
    columns = found.get("columns") or sorted({name for row in rows for name in row})
    target, commit_id = found["target"], found.get("graph_commit_id")
    page = {name: value for name, value in found.items() if name in ("cursor", "total")}
    answer = ResultRows(found["query_name"], target, columns, rows, commit_id, page)
    print_rows(answer, chosen, layout)


def _show_stored_mutation(
    call: StoredQueryCall, *, expected: str | None, key: str | None, is_json: bool
) -> None:
    from omnigraph.client.document_decoding import decode_mutation
    from omnigraph.connection import open_served

    document = call.to_json() | ({} if key is None else {"key": key})
    with open_served(call.server.url) as graph:
        found = graph.invoke_query(call.query, document, if_commit=expected)
    show(Mutated(decode_mutation(found)), is_json=is_json)


def _find_stored_call(
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: QueryLimits,
    *,
    expects_mutation: bool = False,
) -> StoredQueryCall | None:
    """The call of a stored query of a server; on a storage, a query needs its text."""
    if not source.is_stored:
        return None
    from omnigraph.operator_config.address_resolver import is_served, split_served

    address = scope.resolve_address()
    if not is_served(address):
        return None
    from omnigraph.operator_config.alias_calls import StoredQueryCall

    return StoredQueryCall(
        split_served(address, None, address),
        source.name or "",
        source.read_parameters() or {},
        target.branch,
        target.snapshot,
        expects_mutation=expects_mutation,
        timeout_s=bounds.timeout,
        memory_bytes=bounds.memory_bytes,
    )


def print_rows(answer: ResultRows, chosen: OutputFormat, layout: TableLayout) -> None:
    """Print rows in a format."""
    match chosen:
        case OutputFormat.JSON:
            print_json(answer.to_json())
        case OutputFormat.TABLE:
            print_lines(format_table(answer, layout))
        case other:
            print_lines(LINE_FORMATS[other.value](answer))


def explain(
    scope: Scope,
    source: QuerySource,
    target: ReadTarget,
    bounds: QueryLimits,
    is_run: Annotated[
        bool,
        typer.Option(
            "--run/--no-run", help="Run the query, and report the rows and the time of its steps."
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


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Files with the records of parameters."""

    given: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="NAME=PATH",
            help="The records of a parameter: a file that `load` reads. Once for each of them.",
        ),
    ] = None

    def add_to(
        self, params: Mapping[str, object] | None, query: Query
    ) -> Mapping[str, object] | None:
        """The parameters with these among them."""
        if not self.given:
            return params
        from omnigraph.query.query_parameters import require_declared

        found: dict[str, object] = dict(params or {})
        for each in self.given:
            name, sign, path = each.partition("=")
            if not (name and sign and path):
                fail(f"--rows {each}: write NAME=PATH, with a name without $")
            if name in found:
                fail(f"--rows {each}: '{name}' is given twice")
            found[name] = Path(path)
        require_declared([each.name.text for each in query.parameters], found)
        return found


def mutate(  # noqa: PLR0913 — one parameter for each option
    scope: Scope,
    source: QuerySource,
    bounds: QueryLimits,
    files: RowFiles,
    branch: _WRITTEN_BRANCH = None,
    expected: IF_COMMIT = None,
    message: MESSAGE = None,
    key: KEY = None,
    embed: EMBED = None,
    is_dry_run: DRY_RUN = False,
    is_json: JSON = False,
) -> None:
    """Run a query that inserts, updates or deletes, as one commit."""
    call = _find_stored_call(scope, source, ReadTarget(branch), bounds, expects_mutation=True)
    if call is not None:
        _require_no_stored_options(message, files, embed, is_dry_run=is_dry_run)
        _show_stored_mutation(call, expected=expected, key=key, is_json=is_json)
        return
    parsed, params = source.parse(), source.read_parameters()
    if parsed.file.statement is not None:
        flags = (("--branch", branch), ("--if-commit", expected), ("--message", message))
        others = ("--key", key), ("--dry-run", is_dry_run or None), ("--rows", files.given)
        require_no_query_options(source, *flags, *others, ("--embed", embed), *bounds.list_flags())
        write_statement(scope, parsed.file.statement, is_json=is_json)
        return
    params = files.add_to(params, source.select_query(parsed.file))
    outcome = NOTHING_WRITTEN
    with (
        _name_source(source.text_name),
        handle_interrupts(lambda: outcome),
        open_graph(scope, scope.resolve_address()) as graph,
    ):
        target = graph.branch(branch or MAIN_BRANCH)
        with guard_write(target):
            result = target.mutate(
                parsed.source.text,
                name=source.name,
                params=params,
                if_commit=expected,
                message=message,
                key=key,
                embed=None if embed is None else embed.value,
                dry_run=is_dry_run,
                timeout=bounds.timeout,
                memory=bounds.memory_bytes,
            )
        if result.commit is not None:
            outcome = f"commit {result.commit.id} was written"
    show(Mutated(result), is_json=is_json)


def _require_no_stored_options(
    message: str | None, files: RowFiles, embed: str | None, *, is_dry_run: bool
) -> None:
    if embed is not None:
        fail("a stored query takes no --embed", hint="its graph says when vectors are made")
    if message is not None or is_dry_run:
        fail("a stored query takes neither --message nor --dry-run")
    if files.given:
        fail("a stored query takes no --rows", hint="give the records in --params-file")


@contextmanager
def _name_source(name: str) -> Iterator[None]:
    """Let the diagnostics of a text name the file it came from."""
    from omnigraph.errors import CompileError
    from omnigraph.lang.source_text import Source

    try:
        yield
    except CompileError as failure:
        named = [
            replace(found, source=Source(name, found.source.text)) for found in failure.diagnostics
        ]
        raise CompileError(named) from failure


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may use."""

    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Stop the query when it has run for so long."
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Refuse the query if it needs more; bytes, or with K, M, G or T.",
            show_default="a quarter of the machine",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.timeout is not None and (math.isnan(self.timeout) or self.timeout < 0):
            raise typer.BadParameter(f"--timeout: {self.timeout:g} is not a time to wait")
        # Whether the size can be read is known before the graph is opened.
        _ = self.memory_bytes

    def list_flags(self) -> tuple[tuple[str, object], ...]:
        """The flags with what is given for them."""
        return ("--timeout", self.timeout), ("--memory", self.memory)

    @property
    def memory_bytes(self) -> int | None:
        """The memory in bytes."""
        if self.memory is None:
            return None
        found = _SIZE.fullmatch(self.memory.strip())
        if found is None:
            raise typer.BadParameter(f"--memory: '{self.memory}' is not a size such as 512M or 2G")
        return int(found[1]) * _UNITS[found[2].upper()]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table shows long values."""

    max_width: Annotated[
        int | None,
        typer.Option(
            "--max-width",
            metavar="N",
            show_default=str(CELL_WIDTH_MAX),
            help=f"So many characters of a table's column; {CELL_WIDTH_MIN} at least.",
        ),
    ] = None
    is_wrapped: Annotated[
        bool | None,
        typer.Option(
            "--wrap/--no-wrap", help="Continue a longer value of a table on the next line."
        ),
    ] = None

    def build_layout(self, config: OperatorConfig) -> TableLayout:
        """The layout in force: by the options, or by the operator config."""
        width = config.table_width if self.max_width is None else self.max_width
        is_wrapped = config.cell_layout == "wrap" if self.is_wrapped is None else self.is_wrapped
        return TableLayout(max(width, CELL_WIDTH_MIN), is_wrapped=is_wrapped)


def require_no_query_options(source: QuerySource, *others: tuple[str, object]) -> None:
    """Refuse what only a query takes: a name, parameters, and the flags with a value."""
    given = [
        ("NAME", source.name),
        ("--params", source.params),
        ("--params-file", source.params_path),
        *others,
    ]
    for flag, value in given:
        if value is not None:
            fail(f"the text is a statement, which does not take {flag}")


def resolve_statement_name(statement: Statement) -> str:
    """What the rows of a statement are called; a statement that writes is refused."""
    from omnigraph.query.ast import (
        BranchCreate,
        BranchDelete,
        BranchList,
        BranchMerge,
        Explain,
        Show,
    )

    if isinstance(statement, BranchCreate | BranchDelete | BranchMerge):
        fail("the statement writes", hint="run it with `omnigraph mutate`")
    match statement:
        case BranchList():
            return "branch list"
        case Show():
            return "show"
        case Explain():
            return "explain"
        case _:
            assert_never(statement)


def execute_statement(
    graph: Graph, text: str
) -> tuple[list[str], list[dict[str, Any]]]:  # Any: JSON values
    """The columns and rows that a reading statement answers."""
    rows = graph.execute(text)
    return list(rows[0]) if rows else [], rows


def write_statement(scope: Scope, statement: Statement, *, is_json: bool) -> None:
    """Do what a statement that writes says; it answers as the verb of the same name."""
    from omnigraph.cli.commands import branch_commands, merge_commands
    from omnigraph.query.ast import (
        BranchCreate,
        BranchDelete,
        BranchList,
        BranchMerge,
        Explain,
        Show,
    )

    match statement:
        case BranchCreate(name, parent):
            source = MAIN_BRANCH if parent is None else parent.text
            branch_commands.create(scope, name.text, source=source, is_json=is_json)
        case BranchDelete(name):
            branch_commands.delete(scope, name.text, is_json=is_json)
        case BranchMerge(name, into):
            target = MAIN_BRANCH if into is None else into.text
            merge_commands.merge(
                scope, name.text, ResolutionFiles(), target=target, is_json=is_json
            )
        case BranchList() | Show() | Explain():
            fail("the statement reads", hint="run it with `omnigraph query`")
        case _:
            assert_never(statement)
