"""Texts that are statements, not queries: branches, settings and plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from omnigraph.engine.session import Session
from omnigraph.errors import ExecutionError, InvalidArgumentError
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    Explain,
    Query,
    Show,
)
from omnigraph.query.compile import compile_declaration, parse_file
from omnigraph.query.explain import explain_plan
from omnigraph.query.parser import ParsedFile
from omnigraph.query.plan import ReadPlan
from omnigraph.query.settings import SettingValue, list_shown_settings, resolve_settings
from omnigraph.schema.shape import JsonObject
from omnigraph.syntax import Mode
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_SETTING_COLUMNS = ("name", "value", "default", "source", "scope")
_PLAN_COLUMNS = ("tree", "depth", "node", "detail")


def execute_statement(
    graph: Graph,
    session: Session,
    text: str,
    *,
    branch: str,
    settings: Mapping[str, SettingValue] | None = None,
) -> list[JsonObject]:
    """Run the statement of a text; its rows, or none for one that only does something."""
    mode = session.resources.environment.mode
    parsed = parse_file(text, mode=mode)
    statement = parsed.file.statement
    match statement:
        case BranchCreate():
            parent = MAIN_BRANCH if statement.parent is None else statement.parent.text
            graph.create_branch(statement.name.text, source=parent)
            return []
        case BranchDelete():
            graph.delete_branch(statement.name.text)
            return []
        case BranchList():
            return [{"name": name} for name in sorted(graph.branches())]
        case BranchMerge():
            target = MAIN_BRANCH if statement.target is None else statement.target.text
            return _merge_branches(graph, statement.source.text, target)
        case Show():
            known = resolve_settings(parsed.file.settings, request=settings)
            rows = list_shown_settings(statement, known)
            return [{name: str(getattr(row, name)) for name in _SETTING_COLUMNS} for row in rows]
        case Explain(query):
            return _explain_query(graph, query, parsed, branch=branch, mode=mode)
        case None:
            raise InvalidArgumentError(
                "text", "it holds no statement", hint="run queries with query"
            )
        case _:
            assert_never(statement)


def _merge_branches(graph: Graph, source: str, target: str) -> list[JsonObject]:
    result = graph.branch(target).merge(source)
    return [{"source": source, "target": target, "outcome": result.outcome, "commit": result.id}]


def _explain_query(
    graph: Graph, query: Query, parsed: ParsedFile, *, branch: str, mode: Mode
) -> list[JsonObject]:
    catalog = graph.branch(branch).snapshot().view.catalog
    plan = compile_declaration(query, parsed, catalog, mode=mode).plan
    if not isinstance(plan, ReadPlan):
        raise ExecutionError("explain shows the plan of a read, not of a mutation")
    return [{name: getattr(row, name) for name in _PLAN_COLUMNS} for row in explain_plan(plan)]
