"""Variables for values: `let $x = e`, and `for $x in L`."""

from __future__ import annotations

from itertools import islice

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.variable_scope import ANONYMOUS, Scope, ValueVariable, check_reserved
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.schema.property_types import ListType, PropertyType

# What a name may stand for: more than people write, and little enough to be repeated.
_INLINED_PARTS_MAX = 64
_VALUE = LeafRules(
    word=Refusal("T102", "is not a value here", "quote a text, or write '$v.name' for a property"),
    aggregate=Refusal("T7", "an aggregate cannot stand in 'match'"),
    predicate=Refusal("T38", "a search predicate must be a whole condition"),
    rank=Refusal("T7", "a rank call is not a value here", "rank calls belong in 'order'"),
    takes_scores=True,
)


def check_let(context: CheckContext, scope: Scope, let: ast.Let) -> typed_reads.Let | None:
    """`let $x = e`: from here on the name stands for the expression.

    A long expression is bound to the rows: names that use each other twice would double it each
    time.
    """
    value = check_expression(context, let.value, leaf_of(context, scope, _VALUE))
    if isinstance(value, typed_tree.NodeValue):
        context.report_error(
            "T117",
            let.value.span,
            f"'${value.variable}' is a node, and 'let' names a value",
            hint=f"name a property, or '${value.variable}.@id'",
        )
        value = None
    elif value is not None and isinstance(value.type, PropertyType) and value.type.is_blob:
        context.report_error("T24", let.value.span, "a Blob cannot be read")
        value = None
    if value is None or not _is_long(value):
        bind_value(context, scope, let.variable, value)
        return None
    assert isinstance(value.type, PropertyType)
    bound = typed_tree.BoundValue(let.variable.name, value.type)
    is_new = bind_value(context, scope, let.variable, bound)
    return typed_reads.Let(bound.variable, value) if is_new else None


def _is_long(value: typed_tree.Expr) -> bool:
    parts = islice(iter_subexpressions(value), _INLINED_PARTS_MAX + 1)
    return sum(1 for _ in parts) > _INLINED_PARTS_MAX


def check_for_each(
    context: CheckContext, scope: Scope, clause: ast.ForEach
) -> typed_reads.ForEach | None:
    """`for $x in L`, or `for $x, $i in L`: a row for each item."""
    items = check_expression(context, clause.items, leaf_of(context, scope, _VALUE))
    if items is not None and not _is_list(items):
        _refuse_items(context, clause, items)
        items = None
    if items is None:
        bind_value(context, scope, clause.variable, None)
        if clause.position is not None:
            bind_value(context, scope, clause.position, None)
        return None
    item = typed_tree.BoundValue(clause.variable.name, typed_tree.element_type_of(items))
    is_new = bind_value(context, scope, clause.variable, item)
    if clause.position is None:
        return typed_reads.ForEach(item.variable, None, items) if is_new else None
    place = typed_tree.BoundValue(clause.position.name, typed_tree.I64)
    is_new = bind_value(context, scope, clause.position, place) and is_new
    return typed_reads.ForEach(item.variable, place.variable, items) if is_new else None


def _refuse_items(context: CheckContext, clause: ast.ForEach, items: typed_tree.Expr) -> None:
    message, hint = f"'for' needs a list, got {items.type}", None
    if isinstance(items, typed_tree.PathValue):
        message = f"'for' goes through values, and cannot go through a {items.type}"
        hint = "return the path; '$a edges{1,} $n' gives a row for each node that is reached"
    context.report_error("T120", clause.items.span, message, hint=hint)


def _is_list(value: typed_tree.Expr) -> bool:
    return isinstance(value.type, PropertyType) and isinstance(value.type.value, ListType)


def bind_value(
    context: CheckContext, scope: Scope, variable: ast.Variable, value: typed_tree.Expr | None
) -> bool:
    """Bind a new variable to a value, of any if its clause is wrong; whether it is new."""
    name = variable.name
    check_reserved(context, variable)
    if name == ANONYMOUS:
        context.report_error("T101", variable.span, "'$_' cannot name a value")
        return False
    if scope.find(name) is not None or name in scope.declared:
        context.report_error("T101", variable.span, f"variable '${name}' is already bound")
        return False
    if name in context.parameters:
        context.report_error(
            "T106", variable.span, f"'${name}' is a parameter", hint="give the value another name"
        )
        return False
    scope.bind(ValueVariable(name, value))
    return True
