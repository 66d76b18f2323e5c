"""What the inputs of a shell do, on a graph that stays open."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.command_errors import fail
from omnigraph.cli.local_files import read_source
from omnigraph.cli.shared_options import OutputFormat, ReadTarget
from omnigraph.cli.shell.shell_input import COMMAND_MARK, declare, report_as_typed
from omnigraph.cli.views import print_json, print_lines
from omnigraph.cli.views.answer_views import Branches, Commits, Mutated, show
from omnigraph.cli.views.output_streams import align_columns
from omnigraph.cli.views.query_views import (
    LINE_FORMATS,
    Explanation,
    ResultRows,
    TableLayout,
    format_table,
)
from omnigraph.lang.spellcheck import suggest_similar

if TYPE_CHECKING:
    from omnigraph import Graph
    from omnigraph.query.ast import Query

_COMMITS_MAX: Final = 20


@dataclass(slots=True)
class ShellSession:
    """What holds from one input to the next: the state that is read, and how rows are printed."""

    graph: Graph
    layout: TableLayout = field(default_factory=TableLayout)
    format: OutputFormat = OutputFormat.TABLE
    target: ReadTarget = field(default_factory=lambda: ReadTarget("main"))
    params: dict[str, Any] = field(default_factory=dict)  # Any: JSON values
    has_timing: bool = False
    is_ended: bool = False

    def run(self, text: str) -> None:
        """Do what an input says; raises what is wrong with it."""
        stripped = text.strip()
        if stripped.startswith(COMMAND_MARK):
            name, _, rest = stripped.removeprefix(COMMAND_MARK).partition(" ")
            self._run_command(name, rest.strip())
        elif stripped.lower().removesuffix(";") in ("exit", "quit"):
            self.is_ended = True
        elif stripped:
            with report_as_typed(text, self.params):
                self._run_text(declare(text, self.params))

    def _run_text(self, text: str) -> None:
        start = time.perf_counter()
        self._run_queries(text)
        if self.has_timing:
            print_lines([f"time: {(time.perf_counter() - start) * 1000:.1f} ms"])

    def _run_queries(self, text: str) -> None:
        """Run the queries of a text in order, or its statement."""
        from omnigraph.query.query_compiler import parse_file

        file = parse_file(text).file
        if file.statement is not None:
            rows = self.graph.execute(text, branch=self.target.branch or "main")
            columns = list(rows[0]) if rows else []
            if rows:
                self._print_rows(ResultRows("statement", None, columns, rows, None))
            return
        for query in file.queries:
            self._run_query(text, query)

    def _run_query(self, text: str, query: Query) -> None:
        from omnigraph.query.ast import ReadBody

        name = query.name.text
        params = self._select_parameters(query)
        if not isinstance(query.body, ReadBody):
            branch = self.graph.branch(self._require_branch())
            show(Mutated(branch.mutate(text, name=name, params=params)), is_json=self._is_json)
            return
        snapshot = self.target.open(self.graph)
        result = snapshot.query(text, name=name, params=params)
        columns = [each.name for each in result.columns]
        target = self.target.to_json()
        self._print_rows(
            ResultRows(name, target, columns, result.to_json_rows(), snapshot.commit.id)
        )

    def _select_parameters(self, query: Query) -> dict[str, Any]:  # Any: JSON values
        declared = {each.name.text for each in query.parameters}
        return {name: value for name, value in self.params.items() if name in declared}

    def _require_branch(self) -> str:
        if self.target.branch is None:
            fail("the shell reads a state of the past", hint=r"choose a branch with \branch NAME")
        return self.target.branch

    @property
    def _is_json(self) -> bool:
        return self.format is OutputFormat.JSON

    def _print_rows(self, rows: ResultRows) -> None:
        if self._is_json:
            print_json(rows.to_json())
        elif self.format is OutputFormat.TABLE:
            print_lines(format_table(rows, self.layout))
        else:
            print_lines(LINE_FORMATS[self.format.value](rows))

    # ---- commands ----

    def _run_command(self, name: str, rest: str) -> None:
        command = COMMANDS.get(name)
        if command is None:
            fail(
                f"there is no command \\{name}",
                hint=suggest_similar(name, COMMANDS) or r"\help lists the commands",
            )
        command.run(self, rest)

    def show_help(self, _: str) -> None:
        """List the commands."""
        print_lines(_describe_commands())

    def leave(self, _: str) -> None:
        """End the shell; so do exit, quit and Ctrl-D."""
        self.is_ended = True

    def choose_branch(self, name: str) -> None:
        """Read and write a branch; without a name, list the branches."""
        if not name:
            show(Branches(self.graph.branches()), is_json=self._is_json)
            return
        _ = self.graph.branch(name).head
        self.target = ReadTarget(name)

    def choose_state(self, state: str) -> None:
        """Read the graph as it was: a commit, a tag, a version or a time."""
        if not state:
            fail("the state is missing", hint=r"\at 2024-05-01, or a commit, a tag or a version")
        _ = self.graph.snapshot(state)
        self.target = ReadTarget(None, state)

    def show_schema(self, name: str) -> None:
        """Print the schema, or the declaration of a type."""
        text = self.target.open(self.graph).schema
        print_lines((text if not name else _find_declaration(text, name)).splitlines())

    def list_commits(self, count: str) -> None:
        """List the newest commits: 20, or as many as asked for."""
        if count and not count.isdecimal():
            fail(f"'{count}' is not a number of commits")
        branch = self.graph.branch(self._require_branch())
        found = list(branch.commits(limit=int(count or _COMMITS_MAX)))
        show(Commits(found), is_json=self._is_json)

    def set_parameter(self, text: str) -> None:
        """Give a parameter a value: a JSON value, or a word that stands for itself."""
        name, _, value = text.partition(" ")
        name, value = name.removeprefix("$"), value.strip()
        if not name:
            rows = [(each, json.dumps(known)) for each, known in sorted(self.params.items())]
            print_lines(align_columns(rows))
        elif not value:
            self.params.pop(name, None)
        else:
            self.params[name] = _decode_value(value)

    def choose_format(self, name: str) -> None:
        """Print rows as table, kv, csv, jsonl or json."""
        known = [each.value for each in OutputFormat]
        if name not in known:
            fail(f"'{name}' is not a format", hint=f"one of {', '.join(known)}")
        self.format = OutputFormat(name)

    def set_timing(self, word: str) -> None:
        """Print how long each query takes: on or off."""
        if word not in ("", "on", "off"):
            fail(f"'{word}' is neither on nor off")
        self.has_timing = not self.has_timing if not word else word == "on"
        print_lines([f"timing is {'on' if self.has_timing else 'off'}"])

    def explain(self, text: str) -> None:
        """Run a query, and print its steps, their rows and times."""
        from omnigraph.query.query_compiler import parse_file, select_query

        declared = declare(text, self.params)
        with report_as_typed(text, self.params):
            query = select_query(parse_file(declared).file, None)
            snapshot, params = self.target.open(self.graph), self._select_parameters(query)
            explained = snapshot.explain(declared, params=params, analyze=True)
        view = Explanation(query.name.text, self.target.to_json(), explained, snapshot.commit.id)
        show(view, is_json=self._is_json)

    def run_file(self, path: str) -> None:
        """Run the queries of a .gq file."""
        if not path:
            fail("the path of the file is missing")
        self._run_text(read_source(Path(path)).decode())


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command of the shell: what follows it, and what does it."""

    argument: str
    run: Callable[[ShellSession, str], None]

    @property
    def summary(self) -> str:
        """What the command does, in one line."""
        return (self.run.__doc__ or "").strip()


COMMANDS: Final = {
    "help": ShellCommand("", ShellSession.show_help),
    "branch": ShellCommand("[NAME]", ShellSession.choose_branch),
    "at": ShellCommand("STATE", ShellSession.choose_state),
    "schema": ShellCommand("[TYPE]", ShellSession.show_schema),
    "log": ShellCommand("[N]", ShellSession.list_commits),
    "set": ShellCommand("[NAME [VALUE]]", ShellSession.set_parameter),
    "explain": ShellCommand("QUERY", ShellSession.explain),
    "run": ShellCommand("FILE", ShellSession.run_file),
    "format": ShellCommand("FORMAT", ShellSession.choose_format),
    "timing": ShellCommand("[on|off]", ShellSession.set_timing),
    "quit": ShellCommand("", ShellSession.leave),
}


def _describe_commands() -> Iterator[str]:
    rows = [(f"\\{name} {each.argument}".rstrip(), each.summary) for name, each in COMMANDS.items()]
    yield from align_columns(rows)
    yield "A query ends where its brackets close; a body without a name, with ; or an empty line."


def _decode_value(text: str) -> Any:  # Any: a JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text


def _find_declaration(schema: str, name: str) -> str:
    """The text of the declaration of one type."""
    from omnigraph.schema import parse_schema
    from omnigraph.schema.schema_printer import print_declaration

    declared = {each.name.text: each for each in parse_schema(schema).schema.declarations}
    if name not in declared:
        fail(f"there is no type {name}", hint=suggest_similar(name, declared))
    return print_declaration(declared[name])
