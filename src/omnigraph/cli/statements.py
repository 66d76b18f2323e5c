"""Texts that are statements: `query` runs those that read, `mutate` those that write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from omnigraph.cli import branch_commands, merge_commands
from omnigraph.cli.failures import fail
from omnigraph.cli.options import MAIN_BRANCH, QuerySource
from omnigraph.cli.scope import Scope
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    Explain,
    Show,
    Statement,
)

if TYPE_CHECKING:
    from omnigraph import Graph


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
    match statement:
        case BranchCreate(name, parent):
            source = MAIN_BRANCH if parent is None else parent.text
            branch_commands.create(scope, name.text, source=source, is_json=is_json)
        case BranchDelete(name):
            branch_commands.delete(scope, name.text, is_json=is_json)
        case BranchMerge(name, into):
            target = MAIN_BRANCH if into is None else into.text
            merge_commands.merge(scope, name.text, target=target, is_json=is_json)
        case BranchList() | Show() | Explain():
            fail("the statement reads", hint="run it with `omnigraph query`")
        case _:
            assert_never(statement)
