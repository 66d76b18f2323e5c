"""The model as an arm: once on plans as they are lowered, once on rewritten plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from dialects.values import graph_rows
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
from logic.generate import Json
from model import ModelGraph, to_json
from model.branching import ModelBranches
from model.merging import By
from model.statements import read_records
from omnigraph.errors import CursorStaleError, ExecutionError
from omnigraph.lang.diagnostics import Poll
from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    Explain,
    Query,
    ReadBody,
    Setting,
    Show,
)
from omnigraph.query.logical_plan import Limit, Operator, Plan, Project, ReadPlan, Sort
from omnigraph.query.parser import ParsedFile
from omnigraph.query.query_compiler import compile_declaration, parse_file, select_query
from omnigraph.query.query_explain import explain_plan
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.query_settings import ValueSource, list_shown_settings, resolve_settings
from omnigraph.query.rewrites import Rewriting, rewrite
from omnigraph.query.typed_tree import (
    NOW_NAME,
    Mutation,
    NodeList,
    NodeObject,
    ResultType,
    SystemValue,
)
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import EnumType

# 2026-01-01T00:00:00Z: after every instant in the cases that means "past".
NOW_MS = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class ModelArm:
    """Evaluates the plan of a query with the model, rewritten or not."""

    name: str
    rewriting: Rewriting

    def open(self, schema: str, *, mode: Mode) -> ModelSession:
        """A session on a new graph."""
        return ModelSession(ModelGraph(load_catalog(schema, mode=mode)), self.rewriting, mode=mode)


def _unchanged(plan: Plan, _catalog: Catalog, _poll: Poll) -> Plan:
    return plan


ARMS = (ModelArm("model", _unchanged), ModelArm("model_rewritten", rewrite))


class ModelSession:
    """A graph in memory; a restart changes nothing."""

    def __init__(self, graph: ModelGraph, rewriting: Rewriting, *, mode: Mode) -> None:
        self._branches = ModelBranches(graph)
        self._catalog = graph.catalog
        self._rewriting = rewriting
        self._mode = mode
        # What each cursor goes on with: a question, the state that it was asked of, and after how
        # many rows.
        self._pages: list[tuple[object, ModelGraph, int]] = []

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text."""
        parsed = self._parse(text)
        query = select_query(parsed.file, None)
        plan = self._plan(query, parsed)
        assert isinstance(plan, ReadPlan)
        params = bind_parameters(plan.parameters, request.params, strictness=self._mode)
        settings = resolve_settings(parsed.file.settings, request=request.settings)
        work, path_work = (
            int(settings[name].value) for name in ("traversal_work_limit", "path_work_limit")
        )
        given = None if plan.after is None else params[plan.after]
        others = {name: value for name, value in params.items() if name != plan.after}
        question = (text, request.branch, others)
        graph, skipped = self._branches.graph(request.branch), 0
        if given is not None:
            graph, skipped = self._find_page(given, question)
        rows, total = graph.read_page(
            plan, {**params, NOW_NAME: NOW_MS}, limits=(work, path_work), skipped=skipped
        )
        cursor = None
        if plan.after is not None and skipped + len(rows) < total:
            self._pages.append((question, graph.copy(), skipped + len(rows)))
            cursor = str(len(self._pages) - 1)
        shown = (
            {each.name: to_json(row[each.name], each.type, self._catalog) for each in plan.columns}
            for row in (graph_rows(rows, self._catalog) if plan.is_graph else rows)
        )
        return RowsAnswer(
            tuple(AnswerColumn(each.name, _type_name(each.type)) for each in plan.columns),
            tuple(shown),
            is_ordered=isinstance(query.body, ReadBody) and bool(query.body.order),
            tiebreak=_tiebreak(plan.root),
            cursor=cursor,
            has_cursor=plan.after is not None,
            total=total if plan.has_total else None,
        )

    def _find_page(self, cursor: object, question: object) -> tuple[ModelGraph, int]:
        is_known = isinstance(cursor, str) and cursor.isdigit()
        if not is_known or int(str(cursor)) >= len(self._pages):
            raise CursorStaleError("it is not one that a query returned")
        asked, graph, skipped = self._pages[int(str(cursor))]
        if asked != question:
            raise CursorStaleError("it is of another query")
        return graph, skipped

    def mutate(self, text: str, request: Request) -> AffectedAnswer:
        """Run the one mutation of a text."""
        parsed = self._parse(text)
        plan = self._plan(select_query(parsed.file, None), parsed)
        assert isinstance(plan, Mutation)
        given = request.params or {}
        records = read_records(plan, given)
        plain = {name: value for name, value in given.items() if name not in records}
        params = bind_parameters(plan.parameters, plain, strictness=self._mode)
        affected = self._branches.write(
            request.branch,
            lambda graph: graph.mutate(plan, params, now=NOW_MS, records=records),
        )
        return AffectedAnswer(affected.nodes, affected.edges)

    def statement(self, text: str, request: Request) -> RowsAnswer | OutcomeAnswer | DoneAnswer:
        """Run the one statement of a text."""
        parsed = self._parse(text)
        statement = parsed.file.statement
        match statement:
            case BranchCreate():
                parent = "main" if statement.parent is None else statement.parent.text
                self._branches.create(statement.name.text, parent)
                return DoneAnswer()
            case BranchDelete():
                self._branches.delete(statement.name.text)
                return DoneAnswer()
            case BranchMerge():
                target = "main" if statement.target is None else statement.target.text
                by = self._find_merge_by(parsed, request)
                return OutcomeAnswer(self._branches.merge(statement.source.text, target, by=by))
            case BranchList():
                return _table(("name",), [{"name": name} for name in self._branches.list()])
            case Show():
                return _shown_settings(statement, parsed.file.settings, request)
            case Explain(query):
                return self._explained(query, parsed)
            case None:
                raise AssertionError("the text holds no statement")
            case _:
                assert_never(statement)

    def _find_merge_by(self, parsed: ParsedFile, request: Request) -> By:
        """A strict session merges whole entities, unless its settings say otherwise."""
        known = resolve_settings(parsed.file.settings, request=request.settings)["merge_by"]
        is_strict = self._mode is Mode.STRICT and known.source is ValueSource.DEFAULT
        return "entity" if is_strict or known.value == "entity" else "property"

    def load(self, text: str, *, mode: LoadMode, dialect: Dialect, branch: str) -> LoadedAnswer:
        """Load JSON lines."""
        loaded = self._branches.write(
            branch, lambda graph: graph.load(text, mode=mode.value, dialect=dialect.value)
        )
        return LoadedAnswer(tuple(sorted({**loaded.nodes, **loaded.edges}.items())))

    def export(self, *, type_name: str | None, branch: str) -> LinesAnswer:
        """Export everything, or one type."""
        types = None if type_name is None else [type_name]
        return LinesAnswer(tuple(self._branches.graph(branch).export(types).splitlines()))

    def restart(self) -> None:
        """Nothing to do: there is no storage."""

    def close(self) -> None:
        """Nothing to do."""

    def _explained(self, query: Query, parsed: ParsedFile) -> RowsAnswer:
        plan = self._plan(query, parsed)
        if not isinstance(plan, ReadPlan):
            raise ExecutionError("explain shows the plan of a read, not of a mutation")
        names = ("tree", "depth", "node", "detail")
        rows = [{name: getattr(row, name) for name in names} for row in explain_plan(plan)]
        return _table(names, rows)

    def _parse(self, text: str) -> ParsedFile:
        return parse_file(text, mode=self._mode)

    def _plan(self, query: Query, parsed: ParsedFile) -> Plan:
        return compile_declaration(
            query, parsed, self._catalog, mode=self._mode, rewriting=self._rewriting
        ).plan


def _type_name(type_: ResultType) -> str:
    if isinstance(type_, NodeList):
        return str(type_)
    if isinstance(type_, NodeObject):
        return type_.type_name
    return "String" if isinstance(type_.value, EnumType) else str(type_.value)


def _tiebreak(root: Operator) -> tuple[str, ...] | None:
    """The system fields at the end of the sort keys, if the rows are sorted."""
    while isinstance(root, Limit | Project):
        root = root.input
    if not isinstance(root, Sort):
        return None
    fields: list[str] = []
    for key in reversed(root.keys):
        if not isinstance(key.value, SystemValue):
            break
        fields.append(f"{key.value.variable}.@{key.value.name}")
    return tuple(reversed(fields))


def _shown_settings(statement: Show, lines: tuple[Setting, ...], request: Request) -> RowsAnswer:
    names = ("name", "value", "default", "source", "scope")
    settings = resolve_settings(lines, request=request.settings)
    return _table(
        names,
        [
            {name: str(getattr(row, name)) for name in names}
            for row in list_shown_settings(statement, settings)
        ],
    )


def _table(names: Iterable[str], rows: Iterable[dict[str, Json]]) -> RowsAnswer:
    """Rows of a statement, in its own order."""
    columns = tuple(AnswerColumn(name, "String") for name in names)
    return RowsAnswer(columns, tuple(rows), is_ordered=True)
