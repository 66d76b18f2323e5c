"""Typed expressions to Arrow: three-valued logic, a column at a time.

What reads no row is computed once, in Python, and meets columns as a constant: so no constant has
to fit an Arrow type before it is compared.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.execution import text_predicates
from omnigraph.execution.columns import arrow_type
from omnigraph.execution.exact import MIRRORED, Values, compare_constant, compare_values
from omnigraph.execution.membership import constant_in, in_constants, in_lists
from omnigraph.query import typed
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import NOW_NAME, Expr, SystemName, Value
from omnigraph.query.walk import child_expressions
from omnigraph.schema.types import PropertyType

Params: TypeAlias = Mapping[str, Value]

_READS_ROWS = (
    typed.PropertyValue,
    typed.SystemValue,
    typed.NodeValue,
    typed.TextMatch,
    typed.Score,
    typed.AggregateValue,
    typed.ColumnValue,
)


class RowColumns(Protocol):
    """Rows to evaluate expressions at: what the variables of each row hold, by column."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def property(self, variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""

    def system(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""


def evaluate(expr: Expr, rows: RowColumns, params: Params) -> Values | pa.Scalar:
    """The value of an expression at each row; a scalar if no row changes it.

    The instant of the request is in `params` under `NOW_NAME`.
    """
    found = _Evaluation(rows, params).value(expr)
    if not isinstance(found, Known):
        return found
    assert isinstance(expr.type, PropertyType)
    return arrow_scalar(found.value, expr.type)


def is_constant(expr: Expr) -> bool:
    """Whether no row can change the value of an expression."""
    return not isinstance(expr, _READS_ROWS) and all(map(is_constant, child_expressions(expr)))


def constant(expr: Expr, params: Params) -> Value:
    """The value of an expression that reads no row."""
    found = _Evaluation(_NoRows(), params).value(expr)
    assert isinstance(found, Known)
    return found.value


def arrow_scalar(value: Value, type_: PropertyType) -> pa.Scalar:
    """A constant as an Arrow value of its type."""
    try:
        return pa.scalar(list(value) if isinstance(value, tuple) else value, arrow_type(type_))
    except UnicodeEncodeError as failure:
        raise _unreadable(failure) from failure


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is the same at every row; None is null."""

    value: Value


_Value: TypeAlias = Known | Values
_UNKNOWN: Final = Known(None)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    rows: RowColumns
    params: Params

    def value(self, expr: Expr) -> _Value:
        return _MEANING[type(expr)](self, expr)


class _NoRows:
    num_rows = 0

    def property(self, variable: str, name: str) -> pa.ChunkedArray:
        raise AssertionError(f"{variable}.{name} is not constant")

    def system(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        raise AssertionError(f"{variable}.@{name} is not constant")


# ---- leaves ----


def _parameter(at: _Evaluation, expr: typed.ParameterValue) -> Known:
    value = at.params[expr.name]
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as failure:
                raise _unreadable(failure) from failure
    return Known(value)


def _unreadable(failure: UnicodeEncodeError) -> ExecutionError:
    return ExecutionError(
        f"a text holds half of a surrogate pair at character {failure.start}",
        hint="pass text that can be written as UTF-8",
    )


def _list(at: _Evaluation, expr: typed.ListOf) -> Known:
    return Known(tuple(constant(item, at.params) for item in expr.items))


def _property(at: _Evaluation, expr: typed.PropertyValue) -> Values:
    return at.rows.property(expr.variable, expr.property)


def _system(at: _Evaluation, expr: typed.SystemValue) -> Values:
    return at.rows.system(expr.variable, expr.name)


def _node(at: _Evaluation, expr: typed.NodeValue) -> Values:
    return at.rows.system(expr.variable, SystemName.ID)


def _unsupported(_: _Evaluation, expr: Expr) -> _Value:
    raise AssertionError(f"{type(expr).__name__} is not evaluated at rows")


# ---- tests ----


def _compare(at: _Evaluation, expr: typed.Compare) -> _Value:
    match at.value(expr.left), at.value(expr.right):
        case (Known(None), _) | (_, Known(None)):
            return _UNKNOWN
        case Known(left), Known(right):
            return Known(_PYTHON[expr.op](left, right))
        case Known(left), right:
            return compare_constant(MIRRORED[expr.op], right, left)
        case left, Known(right):
            return compare_constant(expr.op, left, right)
        case left, right:
            return compare_values(expr.op, left, right)
    raise AssertionError("every pair has a case")


def _member(at: _Evaluation, expr: typed.Member) -> _Value:
    match at.value(expr.item), at.value(expr.items):
        case (Known(None), _) | (_, Known(None)):
            return _UNKNOWN
        case Known(item), Known(items):
            return Known(constant_in(item, items))
        case Known(item), lists:
            return in_lists(item, lists)
        case item, Known(tuple(items)):
            return in_constants(item, items)
        case item, lists:
            return in_lists(item, lists)
    raise AssertionError("every pair has a case")


def _text_test(
    at: _Evaluation, sides: tuple[Expr, Expr], on_columns: Callable[..., Values]
) -> _Value:
    left, right = map(at.value, sides)
    if _UNKNOWN in [side for side in (left, right) if isinstance(side, Known)]:
        return _UNKNOWN
    if isinstance(left, Known) and isinstance(right, Known):
        return Known(on_columns(pa.array([left.value]), right.value)[0].as_py())
    return on_columns(*(side.value if isinstance(side, Known) else side for side in (left, right)))


def _is_null(at: _Evaluation, expr: typed.IsNull) -> _Value:
    operand = at.value(expr.operand)
    if isinstance(operand, Known):
        return Known((operand.value is None) != expr.is_negated)
    return operand.is_valid() if expr.is_negated else operand.is_null()


def _text_match(at: _Evaluation, expr: typed.TextMatch) -> Values:
    def constant_at(part: Expr) -> Value:
        return constant(part, at.params)

    query = constant_at(expr.query)
    assert query is None or isinstance(query, str)
    texts = at.rows.property(expr.variable, expr.property)
    return text_predicates.matches(texts, query, text_predicates.edits_of(expr, constant_at))


# ---- logic ----


def _joined(at: _Evaluation, operands: tuple[Expr, ...], join: Callable[..., Any]) -> _Value:
    # Any: a kernel gives a scalar for scalars and an array as soon as there is one.
    values = [_truth(at.value(operand)) for operand in operands]
    joined = reduce(join, values)
    return Known(joined.as_py()) if isinstance(joined, pa.Scalar) else joined


def _negated(at: _Evaluation, expr: typed.Negation) -> _Value:
    operand = at.value(expr.operand)
    if isinstance(operand, Known):
        return _UNKNOWN if operand.value is None else Known(not operand.value)
    return pc.invert(operand)


def _truth(value: _Value) -> Values | pa.Scalar:
    return pa.scalar(value.value, pa.bool_()) if isinstance(value, Known) else value


# Any: checked comparisons only ever meet values of one kind.
_PYTHON: Final[dict[CompareOp, Callable[[Any, Any], bool]]] = {
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
}
# Any: each function takes the one kind of expression it stands beside.
_MEANING: Final[dict[type[Expr], Callable[[_Evaluation, Any], _Value]]] = {
    typed.Constant: lambda _, expr: Known(expr.value),
    typed.ParameterValue: _parameter,
    typed.NowValue: lambda at, _: Known(at.params[NOW_NAME]),
    typed.PropertyValue: _property,
    typed.SystemValue: _system,
    typed.NodeValue: _node,
    typed.ListOf: _list,
    typed.Compare: _compare,
    typed.Member: _member,
    typed.Substring: lambda at, expr: _text_test(
        at, (expr.text, expr.part), text_predicates.contains
    ),
    typed.Prefix: lambda at, expr: _text_test(
        at, (expr.text, expr.prefix), text_predicates.starts_with
    ),
    typed.IsNull: _is_null,
    typed.AllOf: lambda at, expr: _joined(at, expr.operands, pc.and_kleene),
    typed.AnyOf: lambda at, expr: _joined(at, expr.operands, pc.or_kleene),
    typed.Negation: _negated,
    typed.TextMatch: _text_match,
    typed.NearestScore: _unsupported,
    typed.Bm25Score: _unsupported,
    typed.RrfScore: _unsupported,
    typed.AggregateValue: _unsupported,
    typed.ColumnValue: _unsupported,
}
