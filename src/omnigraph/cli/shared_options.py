"""Groups of options that several verbs share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.local_files import read_source

if TYPE_CHECKING:
    from omnigraph import Branch, Graph, Snapshot
    from omnigraph.query import ParsedFile
    from omnigraph.query.ast import File, Query

MAIN_BRANCH = "main"
STANDARD_INPUT = "-"
# `query lint` and `query check` once checked a file; now these are names of queries.
_LINT_NAMES = ("lint", "check")


class EmbedTime(StrEnum):
    """When writes get the vectors of their texts."""

    NEVER = "never"
    WRITE = "write"
    LATER = "later"


JSON = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
BRANCH = Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch.")]
COMMIT = Annotated[
    str,
    typer.Argument(
        metavar="COMMIT",
        help="The id of the commit, or a tag, a branch, a version or a time that stands for it.",
    ),
]
IF_COMMIT = Annotated[
    str | None,
    typer.Option(
        "--if-commit",
        metavar="COMMIT",
        help="Only if this is the branch's newest commit; exit with 4 if not.",
    ),
]
KEY = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="A write repeated with its key is not made a second time."
    ),
]
DRY_RUN = Annotated[
    bool, typer.Option("--dry-run", help="Check everything, say what would happen, write nothing.")
]
EMBED = Annotated[
    EmbedTime | None,
    typer.Option(
        "--embed",
        help="When vectors are made of their texts: never, with the write, or later in commits of "
        "their own.",
    ),
]
MESSAGE = Annotated[
    str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the commit says.")
]
POSITIONAL_URI = Annotated[
    str | None, typer.Argument(metavar="URI", help="The graph's address, unless --store gives it.")
]


def split_typed_path(text: str) -> tuple[str | None, str]:
    """The type and the path of `Person=people.csv`; a file of that very name is a path alone."""
    name, sign, path = text.partition("=")
    is_typed = sign and "/" not in name and not Path(text).exists()
    return (name, path) if is_typed else (None, text)


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A query text and its parameters."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Which query of the text; one alone needs no name. - is --query -.",
        ),
    ] = None
    path: Annotated[
        Path | None,
        typer.Option("--query", metavar="PATH", help="The text, a .gq file; - for standard input."),
    ] = None
    inline: Annotated[
        str | None,
        typer.Option("--query-string", "-e", metavar="GQ", help="The text itself."),
    ] = None
    params: Annotated[
        str | None, typer.Option("--params", metavar="JSON", help="Parameters, a JSON object.")
    ] = None
    params_path: Annotated[
        Path | None,
        typer.Option("--params-file", metavar="PATH", help="Parameters, in a JSON file."),
    ] = None

    def __post_init__(self) -> None:
        if self.path is not None and self.inline is not None:
            _raise_exclusive("--query", "-e")
        require_one_source(self.params, self.params_path)
        if self.name == STANDARD_INPUT and self.path is None and self.inline is None:
            # The groups of options are frozen, and made by the command line alone.
            object.__setattr__(self, "name", None)
            object.__setattr__(self, "path", Path(STANDARD_INPUT))

    def parse(self) -> ParsedFile:
        """The text and its tree; raises what is wrong with the grammar."""
        from omnigraph.query.query_compiler import parse_file

        return parse_file(self._read_data(), name=self.text_name)

    @property
    def text_name(self) -> str:
        """What diagnostics call the text."""
        return "-e" if self.path is None else str(self.path)

    def select_query(self, file: File) -> Query:
        """The query of a text that is meant; a parameter that it does not declare is refused."""
        from omnigraph.errors import QueryNotFoundError
        from omnigraph.query.query_compiler import select_query
        from omnigraph.query.query_parameters import require_declared

        try:
            found = select_query(file, self.name)
        except QueryNotFoundError as missing:
            if self.name in _LINT_NAMES:
                missing.hint = "check the queries of a file with `omnigraph lint --query PATH`"
            raise
        require_declared([each.name.text for each in found.parameters], self.read_parameters())
        return found

    def read_parameters(self) -> Mapping[str, object] | None:
        """The parameters, as JSON has them."""
        return read_json_object(self.params, self.params_path)

    @property
    def is_stored(self) -> bool:
        """Whether a stored query is named in place of a text."""
        return self.name is not None and self.path is None and self.inline is None

    def _read_data(self) -> str | bytes:
        if self.path is not None:
            return read_source(self.path)
        if self.inline is None:
            fail(
                f"the query {self.name!r} has no text: running a query by its name needs a server"
                if self.name
                else "the query text is missing",
                hint="give the text with --query PATH or -e GQ",
            )
        if not self.inline.strip():
            fail("the query text of -e is empty")
        return self.inline


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What a read is about: the head of a branch, or a state of the past."""

    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="NAME", show_default=MAIN_BRANCH, help="Read the head of a branch."
        ),
    ] = None
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--snapshot",
            metavar="STATE",
            help="Read the graph as it was: a commit, a tag, a version, a time or a date of main.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.branch is not None and self.snapshot is not None:
            _raise_exclusive("--branch", "--snapshot")

    def choose_state(self, graph: Graph) -> Branch | Snapshot:
        """What to query: of a branch its newest state, without asking for its commit before."""
        if self.snapshot is not None:
            return graph.snapshot(self.snapshot)
        return graph.branch(self.branch or MAIN_BRANCH)

    def open(self, graph: Graph) -> Snapshot:
        """The immutable state to read."""
        if self.snapshot is not None:
            return graph.snapshot(self.snapshot)
        return graph.branch(self.branch or MAIN_BRANCH).snapshot()

    def to_json(self) -> dict[str, str | None]:
        """The target of a read document."""
        is_branch = self.snapshot is None
        return {
            "branch": self.branch or MAIN_BRANCH if is_branch else None,
            "snapshot": self.snapshot,
        }

    def __str__(self) -> str:
        if self.snapshot is not None:
            return f"snapshot {self.snapshot}"
        return f"branch {self.branch or MAIN_BRANCH}"


class OutputFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How the rows of a query are printed."""

    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", show_default="table", help="How to print rows."),
    ] = None
    is_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False

    def __post_init__(self) -> None:
        if self.format is not None and self.is_json:
            _raise_exclusive("--format", "--json")

    def choose(self, default: str | None) -> OutputFormat:
        """The format in force; `default` is that of the operator config or of an alias."""
        if self.is_json:
            return OutputFormat.JSON
        return self.format or OutputFormat(default or OutputFormat.TABLE)


def _raise_exclusive(one: str, other: str) -> NoReturn:
    raise typer.BadParameter(f"{one} and {other} exclude each other")


def require_one_source(params: str | None, params_path: Path | None) -> None:
    """Refuse parameters that are given twice."""
    if params is not None and params_path is not None:
        _raise_exclusive("--params", "--params-file")


def read_json_object(params: str | None, path: Path | None) -> Mapping[str, object] | None:
    """Parameters from a text or from a file."""
    require_one_source(params, path)
    if path is not None:
        return _decode_json_object(read_source(path), str(path))
    return None if params is None else _decode_json_object(params, "--params")


_OBJECT_HINT = 'write {"name": value}, with names without $'


def _decode_json_object(text: str | bytes, name: str) -> Mapping[str, object] | None:
    try:
        value = json.loads(text, parse_constant=_raise_not_json)
    except (ValueError, RecursionError) as failure:
        fail(f"{name}: not JSON: {failure}", hint=_OBJECT_HINT)
    if value is not None and not isinstance(value, dict):
        fail(f"{name}: not a JSON object", hint=_OBJECT_HINT)
    return value


def _raise_not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")
