"""Single reads: a pattern over the rows of a start, what is returned, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.query import ast, typed_reads
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_graphs import check_graph
from omnigraph.query.check.check_having import check_having
from omnigraph.query.check.check_literals import check_row_count
from omnigraph.query.check.check_order import check_order
from omnigraph.query.check.check_pages import check_after
from omnigraph.query.check.check_patterns import check_pattern
from omnigraph.query.check.check_returns import (
    ReturnItem,
    ReturnItems,
    check_items,
    is_over_rows,
)
from omnigraph.query.check.variable_scope import Scope


@dataclass(frozen=True, slots=True)
class ReadStart:
    """The stage that a read starts from, and the variables that its rows have.

    `items` are the columns of combined reads, which the read returns as they are.
    """

    stage: typed_reads.Stage | None = None
    scope: Scope | None = None
    items: tuple[ReturnItem, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """A read, and what it returns."""

    read: typed_reads.Read
    items: ReturnItems


def check_match(
    context: CheckContext, clauses: Sequence[ast.Clause], start: ReadStart
) -> tuple[typed_reads.Pattern, Scope]:
    """The pattern of a read whose start is checked, and the variables of its rows."""
    return check_pattern(context, clauses, start.scope)


def check_result(
    context: CheckContext,
    body: ast.ReadBody,
    start: ReadStart,
    matched: tuple[typed_reads.Pattern, Scope],
    projections: Sequence[ast.Projection],
) -> CheckedRead:
    """What a read makes of its rows; it gets no name and no parameters."""
    pattern, scope = matched
    if start.items:
        items = ReturnItems(start.items, is_aggregated=False)
    else:
        is_grouped = body.is_distinct or any(map(is_over_rows, body.having))
        items = check_items(context, scope, tuple(projections), is_grouped=is_grouped)
    having = check_having(context, scope, body, items)
    order = check_order(context, scope, body, items)
    if body.is_graph:
        check_graph(context, body, items)
    read = typed_reads.Read(
        name="",
        parameters=(),
        pattern=scope.attach_hidden(pattern),
        columns=items.build_columns(),
        is_aggregated=items.is_aggregated,
        having=having,
        rank=order.rank,
        order=order.keys,
        limit=check_row_count(context, "limit", body.limit),
        offset=check_row_count(context, "offset", body.offset),
        after=check_after(context, body, order.rank),
        has_total=body.has_total,
        is_graph=body.is_graph,
        input=start.stage,
    )
    return CheckedRead(read, items)
