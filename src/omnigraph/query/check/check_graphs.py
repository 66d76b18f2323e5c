"""`return graph { … }`: entities and paths, whose nodes and edges are the answer."""

from __future__ import annotations

from omnigraph.query import ast
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_returns import ReturnItems
from omnigraph.query.typed_tree import EdgeValue, NodeValue, PathPart, PathValue


def check_graph(context: CheckContext, body: ast.ReadBody, items: ReturnItems) -> None:
    """Report items that are not entities or paths, and a tail: the answer has an order."""
    for item in items.all:
        value = item.value
        is_path = isinstance(value, PathValue) and value.type.part is PathPart.WHOLE
        if value is None or is_path or isinstance(value, NodeValue | EdgeValue):
            continue
        message = "'return graph' takes nodes, edges and paths"
        hint = "write its variable: return graph { $v }"
        context.report_error("T117", item.syntax.value.span, message, hint=hint)
    tail = (body.having_span, body.order_span, body.limit_span, body.offset_span)
    for span in tail:
        if span.end > span.start:
            message = "a graph has no rows to choose from: its nodes and edges have an order"
            hint = "choose rows before: with { … } limit 10"
            context.report_error("T121", span, message, hint=hint)
    if body.is_paged:
        span = body.total_span if body.has_total else body.after_span
        context.report_error("T121", span, "a graph has no pages", hint="remove it")
