"""Reads under row guards: each answer must be that of the graph without the hidden rows.

Every third node of a type, by id, is hidden by a condition. The rows that a case expects are judged
on all rows, as on other arms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from logic.answers import RowsAnswer
from logic.arms import Request
from logic.embedded_arm import READERS, EmbeddedArm, EmbeddedSession, Read, is_alike
from logic.model_arms import ModelSession
from model import ModelGraph
from model.expressions import Entity
from model.guards import hide
from omnigraph.engine.graph import Graph
from omnigraph.engine.read_requests import ReadEngine
from omnigraph.errors import EngineUnsupportedError, OmnigraphError
from omnigraph.lang.diagnostics import Poll
from omnigraph.lang.lexer import Mode
from omnigraph.lang.text_printer import quote_string
from omnigraph.policy.acts import Act, Action
from omnigraph.query.ast import ReadBody
from omnigraph.query.logical_plan import Plan, ReadPlan
from omnigraph.query.query_compiler import parse_file, select_query
from omnigraph.query.rewrites import rewrite
from omnigraph.query.row_limits import RowLimits, compile_guards
from omnigraph.query.typed_tree import TypeGuard
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog

# One in so many nodes is hidden.
HIDDEN_EVERY: Final = 3
# Where the same rows are deleted.
_WITHOUT: Final = "without-hidden-rows"

Hidden = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class HidingGate:
    """A policy that hides some nodes, and allows all else."""

    limits: RowLimits
    limits_types: bool = True

    def has_query_limits(self, actor: str | None) -> bool:
        del actor
        return False

    def find_row_limits(self, actor: str | None, act: Act) -> RowLimits | None:
        del actor
        return self.limits if act.action is Action.READ else None

    def list_requirements(self, target: str) -> tuple[()]:
        del target
        return ()

    def check(self, actor: str | None, act: Act) -> None:
        del actor, act

    def check_some(self, actor: str | None, act: Act) -> None:
        del actor, act


def choose_hidden(ids_by_type: Mapping[str, list[str]]) -> Hidden:
    """Some of the nodes of each type, the same ones every time."""
    found = {}
    for place, (name, ids) in enumerate(sorted(ids_by_type.items())):
        chosen = sorted(ids)[(place + 1) % HIDDEN_EVERY :: HIDDEN_EVERY]
        if chosen:
            found[name] = chosen
    return found


def limits_of(hidden: Hidden) -> RowLimits:
    """What a policy says that hides some nodes."""
    return RowLimits(
        "",
        (),
        tuple(
            (name, (f"not ($it.@id in [{', '.join(map(quote_string, ids))}])",))
            for name, ids in hidden.items()
        ),
    )


@dataclass
class Compared:
    """How many reads were compared, and how many could not be."""

    reads: int = 0
    unsupported: int = 0
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GuardedArm:
    """Runs a case on the engine, and each read a second time under guards."""

    name: str = "guarded"
    engine: ReadEngine = "local"
    embedded: EmbeddedArm = field(default_factory=EmbeddedArm)
    compared: Compared = field(default_factory=Compared)

    def open(self, schema: str, *, mode: Mode) -> GuardedSession:
        """A session on a new graph."""
        return GuardedSession(schema, self, mode=mode)


class GuardedSession(EmbeddedSession):
    """A graph whose reads are compared with those of what is left without the hidden rows."""

    def __init__(self, schema: str, arm: GuardedArm, *, mode: Mode) -> None:
        super().__init__(schema, arm.embedded, mode=mode)
        self._arm = arm

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text, with and without guards."""
        if is_comparable(text, request):
            self._compare(text, request)
        return super().query(text, request)

    def _compare(self, text: str, request: Request) -> None:
        try:
            snapshot = self.graph.branch(request.branch).snapshot()
        except OmnigraphError:
            return
        catalog = snapshot.view.catalog
        ids = {
            name: snapshot.to_arrow(name, "node")["@id"].to_pylist()
            for name in catalog.nodes
            if name.isidentifier()
        }
        if not (hidden := choose_hidden(ids)):
            return
        try:
            with self._without(hidden, request) as branch:
                expected = self.answer(self.graph, text, replace(request, branch=branch))
                self._require_same(expected, text, request, hidden)
        except _NotDeletableError as refused:
            self._arm.compared.skipped.append(str(refused))

    def _require_same(
        self, expected: Read | OmnigraphError, text: str, request: Request, hidden: Hidden
    ) -> None:
        compared = self._arm.compared
        graphs = [self.graph] if self._arm.engine == "spark" else [self.graph, *self._readers]
        for name, graph in zip(("auto", *READERS), graphs, strict=False):
            found = self.answer(
                open_limited(graph, limits_of(hidden)), text, request, engine=self._arm.engine
            )
            if isinstance(found, EngineUnsupportedError):
                compared.unsupported += 1
                continue
            compared.reads += 1
            is_same = is_alike(_without_cursor(expected), _without_cursor(found))
            assert is_same, f"{name}, {hidden} hidden: {found}\ndeleted: {expected}"

    @contextmanager
    def _without(self, hidden: Hidden, request: Request) -> Iterator[str]:
        """A branch from which the hidden nodes were deleted."""
        graph = self.graph
        graph.create_branch(_WITHOUT, source=request.branch)
        lines = [
            f"delete {name} where @id = {quote_string(id_)}"
            for name, ids in hidden.items()
            for id_ in ids
        ]
        try:
            try:
                graph.branch(_WITHOUT).mutate("query m() {\n" + "\n".join(lines) + "\n}")
            except OmnigraphError as refused:
                raise _NotDeletableError(str(refused)) from refused
            yield _WITHOUT
        finally:
            graph.delete_branch(_WITHOUT)


class _NotDeletableError(Exception):
    """A schema whose constraints keep the hidden nodes from being deleted."""


def open_limited(graph: Graph, limits: RowLimits) -> Graph:
    """A graph for a reader who sees some rows."""
    return Graph(graph.branch().session.guard_by(HidingGate(limits)))


def is_comparable(text: str, request: Request) -> bool:
    """Whether no answer depends on other rows: the statistics of a text index, and cursors, do."""
    page = re.search(r"after \$(\w+)", text)
    has_cursor = page is not None and (request.params or {}).get(page[1]) is not None
    return "bm25(" not in text and not has_cursor


def _without_cursor(answer: Read | OmnigraphError) -> Read | OmnigraphError:
    if isinstance(answer, OmnigraphError):
        return answer
    return replace(answer, rows=replace(answer.rows, cursor=None))


@dataclass(frozen=True, slots=True)
class GuardedModelArm:
    """Runs a case on the model, and each read a second time under guards."""

    name: str = "model_guarded"

    def open(self, schema: str, *, mode: Mode) -> GuardedModelSession:
        """A session on a new graph."""
        graph = ModelGraph(load_catalog(schema, mode=mode))
        return GuardedModelSession(graph, rewrite, mode=mode)


@contextmanager
def without_rows(
    session: ModelSession, branch: str, is_left: Callable[[Entity], bool]
) -> Iterator[None]:
    """A session of the model while only some nodes, and the edges between them, are there."""
    branches, session._branches = session._branches, session._branches.copy()

    def delete(graph: ModelGraph) -> None:
        found = hide(graph, is_left)
        graph.nodes, graph.edges = found.nodes, found.edges

    try:
        session._branches.write(branch, delete)
        yield
    finally:
        session._branches = branches


class GuardedModelSession(ModelSession):
    """A graph in memory, whose reads are compared in the same way."""

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text, with and without guards."""
        if is_comparable(text, request):
            self._compare(text, request)
        return super().query(text, request)

    def _compare(self, text: str, request: Request) -> None:
        try:
            graph = self._branches.graph(request.branch)
        except OmnigraphError:
            return
        ids = {name: list(table) for name, table in graph.nodes.items() if name.isidentifier()}
        hidden = choose_hidden(ids)

        def is_left(node: Entity) -> bool:
            return node["@id"] not in hidden.get(node["@type"], ())

        with without_rows(self, request.branch, is_left):
            expected = self._answer(text, request)
        guards = compile_guards(limits_of(hidden), graph.catalog)
        rewriting, self._rewriting = self._rewriting, partial(_rewrite_guarded, guards)
        try:
            answer = self._answer(text, request)
        finally:
            self._rewriting = rewriting
        assert is_alike(expected, answer), f"{hidden} hidden: {answer}\ndeleted: {expected}"

    def _answer(self, text: str, request: Request) -> Read | OmnigraphError:
        try:
            rows = super().query(text, request)
        except OmnigraphError as error:
            return error
        query = select_query(parse_file(text, mode=self._mode).file, None)
        assert isinstance(query.body, ReadBody)
        is_any = query.body.limit is not None and not query.body.order
        return Read(replace(rows, cursor=None), is_any=is_any)


def _rewrite_guarded(
    guards: tuple[TypeGuard, ...], plan: Plan, catalog: Catalog, poll: Poll
) -> Plan:
    assert isinstance(plan, ReadPlan)
    return rewrite(replace(plan, guards=guards), catalog, poll)
