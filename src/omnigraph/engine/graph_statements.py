"""Statements of texts: branches, settings and plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from omnigraph.errors import ExecutionError, InvalidArgumentError
from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    Explain,
    Query,
    Show,
)
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.parser import ParsedFile
from omnigraph.query.query_compiler import compile_declaration, parse_file
from omnigraph.query.query_explain import explain_plan
from omnigraph.query.query_settings import (
    EffectiveSetting,
    SettingValue,
    ValueSource,
    list_shown_settings,
    resolve_settings,
)
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_SETTING_COLUMNS = ("name", "value", "default", "source", "scope")
_PLAN_COLUMNS = ("tree", "depth", "node", "detail")


def execute_statement(
    graph: Graph,
    text: str,
    *,
    mode: Mode,
    branch: str,
    settings: Mapping[str, SettingValue] | None = None,
) -> list[JsonObject]:
    """Run the statement of a text; its rows, or none for one that only does something."""
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
            known = resolve_settings(parsed.file.settings, request=settings)
            return _merge_branches(graph, statement.source.text, target, known["merge_by"])
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


def _merge_branches(
    graph: Graph, source: str, target: str, merge_by: EffectiveSetting
) -> list[JsonObject]:
    by = None if merge_by.source is ValueSource.DEFAULT else str(merge_by.value)
    result = graph.branch(target).merge(source, by=by)
    return [{"source": source, "target": target, "outcome": result.outcome, "commit": result.id}]


def _explain_query(
    graph: Graph, query: Query, parsed: ParsedFile, *, branch: str, mode: Mode
) -> list[JsonObject]:
    catalog = graph.branch(branch).snapshot().catalog
    plan = compile_declaration(query, parsed, catalog, mode=mode).plan
    if not isinstance(plan, ReadPlan):
        raise ExecutionError("explain shows the plan of a read, not of a mutation")
    return [{name: getattr(row, name) for name in _PLAN_COLUMNS} for row in explain_plan(plan)]
