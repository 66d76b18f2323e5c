"""Aggregates: what each of them takes and gives, and what is computed over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import scalar_of
from omnigraph.query.tree_walk import (
    is_variable_reader,
    iter_children,
    map_children,
    variables_of,
)
from omnigraph.schema.property_types import (
    INTEGERS,
    NUMERIC,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from omnigraph.schema.type_sets import is_type_set

CheckArgument = Callable[[ast.Expr], typed_tree.Expr | None]

_TIMES: Final = (Scalar.DATE, Scalar.DATETIME, Scalar.DURATION)
_ORDERED: Final = NUMERIC | {Scalar.STRING, Scalar.BOOL, *_TIMES}
_NUMBERS: Final = ("numbers", NUMERIC)
_TRUTHS: Final = ("Booleans", frozenset({Scalar.BOOL}))
_VALUES: Final = ("numbers, Strings, Booleans or dates", _ORDERED)
_NEEDS: Final = {
    AggregateFunction.SUM: _NUMBERS,
    AggregateFunction.AVG: _NUMBERS,
    AggregateFunction.MIN: _VALUES,
    AggregateFunction.MAX: _VALUES,
    AggregateFunction.COUNT_IF: _TRUTHS,
    AggregateFunction.TOTAL: ("integers", INTEGERS),
    AggregateFunction.MEDIAN: _NUMBERS,
    AggregateFunction.PERCENTILE: _NUMBERS,
    AggregateFunction.VARIANCE: _NUMBERS,
    AggregateFunction.STDDEV: _NUMBERS,
    AggregateFunction.EVERY: _TRUTHS,
    AggregateFunction.SOME: _TRUTHS,
    AggregateFunction.MODE: _VALUES,
    AggregateFunction.MIN_BY: _VALUES,
    AggregateFunction.MAX_BY: _VALUES,
    AggregateFunction.COLLECT: _VALUES,
}
_COUNTS: Final = (AggregateFunction.COUNT, AggregateFunction.COUNT_IF)
_FLOATS: Final = (
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MEDIAN,
    AggregateFunction.PERCENTILE,
    AggregateFunction.VARIANCE,
    AggregateFunction.STDDEV,
)
_CHOOSING: Final = (AggregateFunction.MIN_BY, AggregateFunction.MAX_BY)
# Those that may give back nodes.
_OF_NODES: Final = (AggregateFunction.COLLECT, *_CHOOSING)
# What those that take two arguments call the second one.
_SECOND: Final = {
    AggregateFunction.PERCENTILE: "fraction",
    AggregateFunction.MIN_BY: "key",
    AggregateFunction.MAX_BY: "key",
}
_DISTINCT: Final = (
    AggregateFunction.COUNT,
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.COLLECT,
)


def check_aggregate_type(
    context: CheckContext, function: AggregateFunction, argument: typed_tree.Expr | None, span: Span
) -> PropertyType | None:
    """The type of an aggregate over an argument, or None when it cannot take the argument."""
    if argument is None:
        return None
    if not isinstance(argument.type, typed_tree.NodeObject) and argument.type.is_blob:
        context.report_error("T24", span, f"{function}() cannot read a Blob")
        return None
    if function is AggregateFunction.COUNT:
        return make_scalar_type(Scalar.I64)
    words, scalars = _NEEDS[function]
    scalar = scalar_of(argument)
    if scalar not in scalars:
        context.report_error("T8", span, f"{function}() needs {words}, got {argument.type}")
        return None
    assert scalar is not None
    assert not isinstance(argument.type, typed_tree.NodeObject)
    if function in _COUNTS:
        return make_scalar_type(Scalar.I64)
    if function in _FLOATS:
        return typed_tree.F64.as_nullable()
    if function is AggregateFunction.TOTAL:
        return make_scalar_type(Scalar.I64).as_nullable()
    if function is AggregateFunction.COLLECT:
        return PropertyType(ListType(scalar))
    return argument.type.as_nullable()


def _check_nodes(
    context: CheckContext, function: AggregateFunction, node: typed_tree.NodeValue, span: Span
) -> typed_tree.NodeObject | None:
    """What an aggregate makes of nodes, which it gives back as objects."""
    name = node.type.type_name
    if is_type_set(name):
        message = f"{function}() takes nodes of one type, and '${node.variable}' is of {name}"
        context.report_error("T8", span, message, hint="bind one type")
        return None
    if function is AggregateFunction.COLLECT:
        return typed_tree.NodeList(name)
    return typed_tree.NodeObject(name, is_nullable=True)


def check_aggregate_call(
    context: CheckContext,
    call: ast.AggregateCall,
    check: CheckArgument,
    *,
    takes_nodes: bool = False,
) -> typed_tree.AggregateValue | None:
    """`count(e)`, `collect(e order { k })` and the like."""
    function = call.function
    argument = check(call.argument)
    type_: typed_tree.ResultType | None
    if takes_nodes and function in _OF_NODES and isinstance(argument, typed_tree.NodeValue):
        type_ = _check_nodes(context, function, argument, call.argument.span)
    else:
        type_ = check_aggregate_type(context, function, argument, call.argument.span)
    second = None if call.second is None else check(call.second)
    keys = [check(key.value) for key in call.order]
    is_right = _check_form(context, call)
    if argument is None or type_ is None or not is_right or None in keys:
        return None
    if call.second is not None and second is None:
        return None
    fraction = None
    order = [(key, each.value.span) for key, each in zip(keys, call.order, strict=True) if key]
    is_descending = [each.direction is ast.Direction.DESC for each in call.order]
    if function is AggregateFunction.PERCENTILE:
        fraction = _check_fraction(context, second, call)
        if fraction is None:
            return None
    elif second is not None and call.second is not None:
        order = [(second, call.second.span)]
        is_descending = [function is AggregateFunction.MAX_BY]
    sorted_by = _check_keys(context, order)
    if sorted_by is None:
        return None
    return typed_tree.AggregateValue(
        function,
        argument,
        type_,
        call.is_distinct,
        fraction,
        sorted_by,
        tuple(is_descending),
        call.limit,
    )


def _check_form(context: CheckContext, call: ast.AggregateCall) -> bool:
    """Whether an aggregate has the arguments and options that it takes."""
    function, wanted = call.function, _SECOND.get(call.function)
    if (wanted is None) != (call.second is None):
        shown = f"{function}(x)" if wanted is None else f"{function}(x, {wanted})"
        given = 1 if call.second is None else 2
        context.report_error("T111", call.span, f"{shown} cannot take {given} arguments")
    elif call.is_distinct and function not in _DISTINCT:
        names = ", ".join(_DISTINCT)
        message = f"'distinct' cannot stand in {function}(); it can in {names}"
        context.report_error("T8", call.span, message)
    elif function is not AggregateFunction.COLLECT and (call.order or call.limit is not None):
        message = f"only collect() takes an order and a limit, not {function}()"
        context.report_error("T8", call.span, message)
    else:
        return True
    return False


def _check_fraction(
    context: CheckContext, value: typed_tree.Expr | None, call: ast.AggregateCall
) -> typed_tree.Expr | None:
    assert call.second is not None
    is_number = value is not None and scalar_of(value) in NUMERIC and not variables_of(value)
    known = value.value if isinstance(value, typed_tree.Constant) else 0
    if is_number and isinstance(known, int | float) and 0 <= known <= 1:
        return value
    context.report_error(
        "T112", call.second.span, "the fraction of percentile() is a constant from 0 to 1"
    )
    return None


def _check_keys(
    context: CheckContext, keys: Sequence[tuple[typed_tree.Expr, Span]]
) -> tuple[typed_tree.Expr, ...] | None:
    found: list[typed_tree.Expr] = []
    for value, span in keys:
        if isinstance(value, typed_tree.NodeValue):
            found.append(typed_tree.SystemValue(value.variable, typed_tree.SystemName.ID))
            continue
        type_ = value.type
        is_list = isinstance(type_, PropertyType) and isinstance(type_.value, ListType | VectorType)
        if not isinstance(type_, PropertyType) or type_.is_blob or is_list:
            context.report_error("T7", span, f"{value.type} values have no order")
            return None
        found.append(value)
    return tuple(found)


# ---- what is computed over aggregates ----


def has_aggregate(value: typed_tree.Expr) -> bool:
    """Whether an expression is computed over aggregates, or is one."""
    is_own = isinstance(value, typed_tree.AggregateValue)
    return is_own or any(map(has_aggregate, iter_children(value)))


def bind_to_groups(
    value: typed_tree.Expr, columns: Mapping[typed_tree.Expr, typed_tree.ColumnValue]
) -> typed_tree.Expr:
    """An expression that reads what a result has, by value, from its columns."""
    if value in columns:
        return columns[value]
    if isinstance(value, typed_tree.AggregateValue):
        return value
    return map_children(value, lambda child: bind_to_groups(child, columns))


def is_row_reader(value: typed_tree.Expr) -> bool:
    """Whether an expression reads rows of the pattern, other than in an aggregate."""
    if isinstance(value, typed_tree.AggregateValue):
        return False
    return is_variable_reader(value) or any(map(is_row_reader, iter_children(value)))
