"""Pages of a result: `after` and `total`, which belong to the end of a read."""

from __future__ import annotations

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import find_parameter_value
from omnigraph.schema.property_types import Scalar, ScalarType

_DECLARED = "declare it as $cursor: String?, which is null for the first page"


def check_after(
    context: CheckContext, body: ast.ReadBody, rank: typed_tree.Score | None
) -> str | None:
    """The parameter with the cursor of a page, whose rows have an order and a limit."""
    after = body.after
    if after is None:
        return None
    span = body.after_span
    if not body.order:
        message = "'after' goes on in an order, and there is none"
        context.report_error("T121", span, message, hint="add 'order { … }'")
    elif isinstance(rank, typed_tree.RrfScore):
        message = "rrf() ranks the rows of one page; there is no page after it"
        context.report_error("T121", span, message, hint="ask for more rows with 'limit'")
    if body.limit is None:
        message = "'after' needs the number of rows of a page"
        context.report_error("T121", span, message, hint="add 'limit 20'")
    if body.offset is not None:
        message = "'after' and 'offset' exclude each other: a cursor is a position already"
        context.report_error("T121", body.offset_span, message, hint="remove 'offset'")
    _check_cursor(context, after)
    return after.name


def _check_cursor(context: CheckContext, cursor: ast.Variable) -> None:
    got = f"${cursor.name} is not a parameter"
    if cursor.name in context.parameters:
        value = find_parameter_value(context, cursor.name)
        if value is None:
            return
        is_text = value.type.scalar is Scalar.STRING and isinstance(value.type.value, ScalarType)
        if is_text and value.type.is_nullable:
            return
        got = f"got {value.type}"
    message = f"'after' needs a parameter of type String?; {got}"
    context.report_error("T121", cursor.span, message, hint=_DECLARED)


def refuse_page(context: CheckContext, body: ast.ReadBody) -> None:
    """Report `after` and `total` where no answer is."""
    for word, span in (("after", body.after_span), ("total", body.total_span)):
        if body.after is not None if word == "after" else body.has_total:
            message = f"'{word}' belongs to the end of the query: only its answer has pages"
            context.report_error("T121", span, message, hint=f"move '{word}' to the last section")
