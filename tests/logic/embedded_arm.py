"""The engine as an arm: a real graph, written and read through its public objects.

A read that the engine does not answer is answered by the model on what the graph exports, so that
every case tries the writers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
from logic.arms import MAIN, Request
from logic.case import Case, Dialect, LoadMode
from logic.model_arms import NOW_MS, ModelSession, _tiebreak, _type_name
from model import ModelGraph
from omnigraph.engine.graph import Graph, create_on, open_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.errors import ExecutionError
from omnigraph.query.ast import BranchCreate, BranchDelete, BranchList, ReadBody
from omnigraph.query.compile import compile_declaration, find_query, read_file
from omnigraph.query.plan import ReadPlan
from omnigraph.query.rewrites import rewrite
from omnigraph.syntax import Mode
from omnigraph.versioning import Settings
from omnigraph.writers.inputs import Text


@dataclass(frozen=True, slots=True)
class EmbeddedArm:
    """Runs a case on a graph at a place of some kind."""

    name: str = "embedded"
    kind: places.Kind = "memory"

    def open(self, schema: str, *, mode: Mode) -> EmbeddedSession:
        """A session on a new graph."""
        return EmbeddedSession(schema, kind=self.kind, mode=mode)

    def can_run(self, case: Case) -> bool:
        """Whether the engine has all the verbs that a case uses."""
        steps = [each for step in case.steps for each in getattr(step, "steps", (step,))]
        texts = [getattr(step, "text", "") for step in steps]
        return not any(re.search(r"^\s*branch\s+merge", text, re.MULTILINE) for text in texts)


class EmbeddedSession:
    """A graph; a restart opens it again with nothing kept in memory."""

    def __init__(self, schema: str, *, kind: places.Kind, mode: Mode) -> None:
        uri = places.uri_of(kind)
        self._uri = uri
        self._mode = mode
        self._environment = Environment(
            now_ms=lambda: NOW_MS, mode=mode, settings=Settings(pause=lambda _: None)
        )
        self._graph = create_on(self._place(), schema=schema, environment=self._environment)

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text."""
        branch = self._graph.branch(request.branch)
        try:
            result = branch.query(text, params=request.params)
        except ExecutionError as error:
            if "not supported by this version" not in error.message:
                raise
            return self._modelled(request.branch).query(text, _on_main(request))
        parsed = read_file(text, mode=self._mode)
        query = find_query(parsed.file, None)
        catalog = branch.snapshot().view.catalog
        plan = compile_declaration(query, parsed, catalog, mode=self._mode, rewriting=rewrite).plan
        assert isinstance(plan, ReadPlan)
        return RowsAnswer(
            tuple(AnswerColumn(each.name, _type_name(each.type)) for each in result.columns),
            tuple(result.to_json_rows()),
            is_ordered=isinstance(query.body, ReadBody) and bool(query.body.order),
            tiebreak=_tiebreak(plan.root),
        )

    def mutate(self, text: str, request: Request) -> AffectedAnswer:
        """Run the one mutation of a text."""
        result = self._graph.branch(request.branch).mutate(text, params=request.params)
        return AffectedAnswer(result.affected_nodes, result.affected_edges)

    def statement(self, text: str, request: Request) -> RowsAnswer | OutcomeAnswer | DoneAnswer:
        """Run the one statement of a text."""
        statement = read_file(text, mode=self._mode).file.statement
        if isinstance(statement, BranchCreate | BranchDelete):
            assert self._graph.execute(text) == []
            return DoneAnswer()
        if isinstance(statement, BranchList):
            rows = tuple(self._graph.execute(text))
            return RowsAnswer((AnswerColumn("name", "String"),), rows, is_ordered=True)
        return self._modelled(request.branch).statement(text, _on_main(request))

    def load(self, text: str, *, mode: LoadMode, dialect: Dialect, branch: str) -> LoadedAnswer:
        """Load JSON lines."""
        loaded = self._graph.branch(branch).load(Text(text), mode=mode.value, dialect=dialect.value)
        return LoadedAnswer(tuple(sorted({**loaded.nodes, **loaded.edges}.items())))

    def export(self, *, type_name: str | None, branch: str) -> LinesAnswer:
        """Export everything, or one type."""
        types = None if type_name is None else [type_name]
        lines = b"".join(self._graph.branch(branch).export(types=types))
        return LinesAnswer(tuple(lines.decode().splitlines()))

    def restart(self) -> None:
        """Open the same storage again."""
        self._graph.close()
        self._graph = open_on(self._place(), environment=self._environment)

    def close(self) -> None:
        """Let the graph go; what is in it must be sound."""
        assert self._graph.check().problems == ()
        self._graph.close()

    @property
    def graph(self) -> Graph:
        """The graph itself."""
        return self._graph

    def _place(self) -> Storage:
        return places.storage_of(self._uri)

    def _modelled(self, branch: str) -> ModelSession:
        """The model of what a branch holds now."""
        snapshot = self._graph.branch(branch).snapshot()
        model = ModelGraph(snapshot.view.accepted)
        model.load(b"".join(snapshot.export()).decode(), mode="overwrite")
        return ModelSession(model, rewrite, mode=self._mode)


def _on_main(request: Request) -> Request:
    return Request(MAIN, request.params, request.settings)
