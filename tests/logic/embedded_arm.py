"""The engine as an arm: a real graph, written and read through its public objects.

Every read runs on each access path, through a handle of its own on the same storage; their answers
must agree.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import places
from logic.answers import (
    AffectedAnswer,
    AnswerColumn,
    DoneAnswer,
    LinesAnswer,
    LoadedAnswer,
    OutcomeAnswer,
    RowsAnswer,
)
from logic.arms import Request
from logic.case import Dialect, LoadMode
from logic.model_arms import NOW_MS, _table, _tiebreak, _type_name
from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph, create_on, open_on
from omnigraph.engine.read_requests import ReadEngine
from omnigraph.engine.resources import Environment, Storage
from omnigraph.errors import OmnigraphError
from omnigraph.execution.query_budget import Access
from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import BranchCreate, BranchDelete, BranchMerge, ReadBody
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_declaration, parse_file, select_query
from omnigraph.query.rewrites import rewrite
from omnigraph.versioning import Settings
from omnigraph.writers.inputs import Text

# The access paths beside the one that the engine chooses itself.
READERS = (Access.TOPOLOGY, Access.LOOKUPS)


@dataclass(frozen=True, slots=True)
class EmbeddedArm:
    """Runs a case on a graph at a place of some kind."""

    name: str = "embedded"
    kind: places.Kind = "memory"
    # Whether every write is followed by one that builds the declared indexes.
    is_indexed: bool = False
    # Where graphs on the disk live.
    folder: Path | None = None

    def open(self, schema: str, *, mode: Mode) -> EmbeddedSession:
        """A session on a new graph."""
        return EmbeddedSession(schema, self, mode=mode)


class EmbeddedSession:
    """A graph; a restart opens it again with nothing kept in memory."""

    def __init__(self, schema: str, arm: EmbeddedArm, *, mode: Mode) -> None:
        self._uri = places.uri_of(arm.kind, arm.folder)
        self._is_indexed = arm.is_indexed
        self._mode = mode
        self._graph = create_on(
            self._place(), schema=schema, environment=self._environment(Access.AUTO)
        )
        self._readers = self._opened_readers()

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text on every access path."""
        first, *others = (
            self.answer(graph, text, request) for graph in (self._graph, *self._readers)
        )
        for access, other in zip(READERS, others, strict=True):
            assert is_alike(first, other), f"{access}: {other}\n{Access.AUTO}: {first}"
        if isinstance(first, OmnigraphError):
            raise first
        return first.rows

    def answer(
        self, graph: Graph, text: str, request: Request, *, engine: ReadEngine = "local"
    ) -> Read | OmnigraphError:
        """What a handle on the graph says to a read."""
        try:
            branch = graph.branch(request.branch)
            result = branch.query(
                text, params=request.params, settings=request.settings, engine=engine
            )
        except OmnigraphError as error:
            return error
        parsed = parse_file(text, mode=self._mode)
        query = select_query(parsed.file, None)
        catalog = branch.snapshot().view.catalog
        plan = compile_declaration(query, parsed, catalog, mode=self._mode, rewriting=rewrite).plan
        assert isinstance(plan, ReadPlan)
        assert isinstance(query.body, ReadBody)
        rows = RowsAnswer(
            tuple(AnswerColumn(each.name, _type_name(each.type)) for each in result.columns),
            tuple(result.to_json_rows()),
            is_ordered=bool(query.body.order),
            tiebreak=_tiebreak(plan.root),
            cursor=result.cursor,
            has_cursor=result.has_cursor,
            total=result.total,
        )
        return Read(rows, is_any=query.body.limit is not None and not query.body.order)

    def mutate(self, text: str, request: Request) -> AffectedAnswer:
        """Run the one mutation of a text."""
        branch = self._graph.branch(request.branch)
        result = branch.mutate(text, params=request.params)
        self._index(branch)
        return AffectedAnswer(result.affected_nodes, result.affected_edges)

    def statement(self, text: str, request: Request) -> RowsAnswer | OutcomeAnswer | DoneAnswer:
        """Run the one statement of a text."""
        rows = self._graph.execute(text, branch=request.branch, settings=request.settings)
        statement = parse_file(text, mode=self._mode).file.statement
        if isinstance(statement, BranchCreate | BranchDelete):
            assert rows == []
            return DoneAnswer()
        if isinstance(statement, BranchMerge):
            (row,) = rows
            self._index(self._graph.branch(str(row["target"])))
            return OutcomeAnswer(str(row["outcome"]))
        return _table(rows[0] if rows else (), rows)

    def load(self, text: str, *, mode: LoadMode, dialect: Dialect, branch: str) -> LoadedAnswer:
        """Load JSON lines."""
        into = self._graph.branch(branch)
        loaded = into.load(Text(text), mode=mode.value, dialect=dialect.value)
        self._index(into)
        return LoadedAnswer(tuple(sorted({**loaded.nodes, **loaded.edges}.items())))

    def export(self, *, type_name: str | None, branch: str) -> LinesAnswer:
        """Export everything, or one type."""
        types = None if type_name is None else [type_name]
        lines = b"".join(self._graph.branch(branch).export(types=types))
        return LinesAnswer(tuple(lines.decode().splitlines()))

    def restart(self) -> None:
        """Open the same storage again."""
        self._close()
        self._graph = open_on(self._place(), environment=self._environment(Access.AUTO))
        self._readers = self._opened_readers()

    def close(self) -> None:
        """Let the graph go; what is in it must be sound."""
        assert self._graph.check().problems == ()
        self._close()

    @property
    def graph(self) -> Graph:
        """The graph itself."""
        return self._graph

    def _index(self, branch: Branch) -> None:
        if self._is_indexed:
            branch.ensure_indices()

    def _close(self) -> None:
        for graph in (*self._readers, self._graph):
            graph.close()

    def _opened_readers(self) -> list[Graph]:
        return [open_on(self._place(), environment=self._environment(access)) for access in READERS]

    def _environment(self, access: Access) -> Environment:
        return Environment(
            now_ms=lambda: NOW_MS,
            mode=self._mode,
            settings=Settings(pause=lambda _: None),
            access=access,
            embed=None,
        )

    def _place(self) -> Storage:
        return places.storage_of(self._uri)


@dataclass(frozen=True, slots=True)
class Read:
    """The answer to a read, and whether other rows would do as well."""

    rows: RowsAnswer
    is_any: bool


def is_alike(left: Read | OmnigraphError, right: Read | OmnigraphError) -> bool:
    """Whether two access paths agree."""
    if isinstance(left, OmnigraphError) or isinstance(right, OmnigraphError):
        # How far a query came before it met a limit is nobody's business.
        return type(left) is type(right)
    if left.is_any:
        return left.rows.columns == right.rows.columns and len(left.rows.rows) == len(
            right.rows.rows
        )
    return _comparable(left.rows) == _comparable(right.rows)


def _comparable(answer: RowsAnswer) -> object:
    lines = [json.dumps(row) for row in answer.rows]
    page = (answer.cursor, answer.has_cursor, answer.total)
    return answer.columns, answer.tiebreak, page, lines if answer.is_ordered else sorted(lines)
