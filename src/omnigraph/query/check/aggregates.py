"""Aggregates: what they take and what they give, in `return` and over blocks."""

from __future__ import annotations

from omnigraph.diagnostics import Span
from omnigraph.query import typed
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.check.comparisons import scalar_of
from omnigraph.query.check.context import CheckContext
from omnigraph.schema.types import NUMERIC, PropertyType, Scalar, make_scalar_type

_ORDERED = NUMERIC | {Scalar.STRING, Scalar.BOOL, Scalar.DATE, Scalar.DATETIME}
_NEEDS = {
    AggregateFunction.SUM: ("numbers", NUMERIC),
    AggregateFunction.AVG: ("numbers", NUMERIC),
    AggregateFunction.MIN: ("numbers, Strings, Booleans or dates", _ORDERED),
    AggregateFunction.MAX: ("numbers, Strings, Booleans or dates", _ORDERED),
}


def check_aggregate_type(
    context: CheckContext, function: AggregateFunction, argument: typed.Expr | None, span: Span
) -> PropertyType | None:
    """The type of an aggregate over an argument, or None when it cannot take the argument."""
    if argument is None:
        return None
    if not isinstance(argument.type, typed.NodeObject) and argument.type.is_blob:
        context.report_error("T24", span, f"{function}() cannot read a Blob")
        return None
    if function is AggregateFunction.COUNT:
        return make_scalar_type(Scalar.I64)
    words, scalars = _NEEDS[function]
    if scalar_of(argument) not in scalars:
        context.report_error("T8", span, f"{function}() needs {words}, got {argument.type}")
        return None
    if function in (AggregateFunction.SUM, AggregateFunction.AVG):
        return typed.F64.as_nullable()
    assert not isinstance(argument.type, typed.NodeObject)
    return argument.type.as_nullable()
