"""Typed expressions to Arrow: three-valued logic, a column at a time.

What reads no row is computed once, in Python, and meets columns as a constant: so no constant has
to fit an Arrow type before it is compared.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.query.tree_walk import iter_children
from omnigraph.query.typed_tree import NOW_NAME, Expr, SystemName, Value
from omnigraph.rows import text_predicates
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import (
    MIRRORED,
    Poll,
    Values,
    collect_matchable,
    compare_constant,
    compare_values,
    find_few_distinct,
    is_constant_in,
    is_in_constants,
    is_in_lists,
    skip_poll,
    to_comparable,
)
from omnigraph.rows.kernels.function_call import (
    Argument,
    FunctionCall,
    RequireMemory,
    skip_memory,
)
from omnigraph.rows.kernels.function_kernels import call_function
from omnigraph.rows.path_columns import select_path_part
from omnigraph.rows.text_search import match_texts, read_text_query
from omnigraph.schema.property_types import PropertyType

Params: TypeAlias = Mapping[str, Value]

# From so many items on, to convert a list again for each batch of rows would cost more than a test.
_LONG_LIST_ITEMS: Final = 256

_READS_ROWS = (
    typed_tree.PropertyValue,
    typed_tree.SystemValue,
    typed_tree.NodeValue,
    typed_tree.PathValue,
    typed_tree.BoundValue,
    typed_tree.TextMatch,
    typed_tree.Score,
    typed_tree.ScoreValue,
    typed_tree.AggregateValue,
    typed_tree.ColumnValue,
)


class RequestParams(dict[str, Value]):
    """The parameters of a request, whose poll raises when the request must stop.

    Whatever is given them can be stopped while it evaluates, however long a condition or a list is.
    Functions that may make long values ask `require_memory` before they do.
    """

    __slots__ = ("_matchable", "poll", "require_memory")

    def __init__(
        self, values: Params, poll: Poll, require_memory: RequireMemory = skip_memory
    ) -> None:
        super().__init__(values)
        self.poll = poll
        self.require_memory = require_memory
        # Long lists by identity, with themselves, so that no other list gets their identity.
        self._matchable: dict[tuple[int, pa.DataType], tuple[Value, pa.Array]] = {}

    def collect_matchable(self, items: tuple[Value, ...], kind: pa.DataType) -> pa.Array:
        """The items that a column can hold; those of a long list are found once."""
        known = self._matchable.get((id(items), kind))
        if known is None:
            known = items, collect_matchable(items, kind, self.poll)
            if len(items) >= _LONG_LIST_ITEMS:
                self._matchable[id(items), kind] = known
        return known[1]


def poll_of(params: Params) -> Poll:
    """What to call between pieces of the work on a request."""
    return params.poll if isinstance(params, RequestParams) else skip_poll


def find_matchable(items: Value, kind: pa.DataType, params: Params) -> pa.Array:
    """The items of a constant list that a column can hold, in its (plain) type; none of null."""
    assert items is None or isinstance(items, tuple)
    if isinstance(params, RequestParams):
        return params.collect_matchable(items or (), kind)
    return collect_matchable(items or (), kind)


def find_few_matchable(
    items: Value, kind: pa.DataType, params: Params, *, count_max: int
) -> pa.Array | None:
    """The same ones without repetitions; None if there are more than so many."""
    return find_few_distinct(
        find_matchable(items, kind, params), count_max=count_max, poll=poll_of(params)
    )


class RowColumns(Protocol):
    """Rows to evaluate expressions at: what the variables of each row hold, by column."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def get_property(self, variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""

    def get_system_field(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""


@runtime_checkable
class ComputedColumns(Protocol):
    """Rows that have columns of their own, such as those of groups."""

    def get_column(self, name: str) -> Values:
        """The values of a column."""


@runtime_checkable
class SearchedColumns(Protocol):
    """Rows whose texts an index may know."""

    def search_texts(self, match: typed_tree.TextMatch, params: Params) -> Values | None:
        """Where texts satisfy a predicate, null where a text is; None to look at each of them."""


class NoVariables:
    """Rows that have no variables."""

    def get_property(self, variable: str, name: str) -> pa.ChunkedArray:
        """There is none to read."""
        raise AssertionError(f"these rows have no {variable}.{name}")

    def get_system_field(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        """There is none to read."""
        raise AssertionError(f"these rows have no {variable}.@{name}")


class ConstantRow(NoVariables):
    """A row that constants are evaluated at."""

    num_rows = 1


CONSTANT_ROW: Final = ConstantRow()


@dataclass(frozen=True, slots=True)
class GroupColumns(NoVariables):
    """Groups as expressions see them: by their columns, which are found when they are read."""

    num_rows: int
    find_column: Callable[[str], Values]

    def get_column(self, name: str) -> Values:
        """The values of a key or of an aggregate."""
        return self.find_column(name)


def evaluate(expr: Expr, rows: RowColumns, params: Params) -> Values | pa.Scalar:
    """The value of an expression at each row; a scalar if no row changes it.

    The instant of the request is in `params` under `NOW_NAME`.
    """
    found = _Evaluation(rows, params, poll_of(params)).evaluate_expression(expr)
    if not isinstance(found, ConstantResult):
        return found
    assert isinstance(expr.type, PropertyType)
    return to_arrow_scalar(found.value, expr.type)


def evaluate_column(expr: Expr, rows: RowColumns, params: Params) -> Values:
    """The same as a column, also if no row changes it."""
    found = evaluate(expr, rows, params)
    if not isinstance(found, pa.Scalar):
        return found
    # Arrow repeats a vector once or more, but not zero times.
    return pa.repeat(found, max(rows.num_rows, 1)).slice(0, rows.num_rows)


def is_constant(expr: Expr) -> bool:
    """Whether no row can change the value of an expression."""
    if isinstance(expr, typed_tree.Constant):
        return True
    return not isinstance(expr, _READS_ROWS) and all(map(is_constant, iter_children(expr)))


def evaluate_constant(expr: Expr, params: Params) -> Value:
    """The value of an expression that reads no row."""
    if isinstance(expr, typed_tree.Constant):
        return expr.value
    found = _Evaluation(CONSTANT_ROW, params, poll_of(params)).evaluate_expression(expr)
    assert isinstance(found, ConstantResult)
    return found.value


def to_arrow_scalar(value: Value, type_: PropertyType) -> pa.Scalar:
    """A constant as an Arrow value of its type."""
    try:
        return pa.scalar(list(value) if isinstance(value, tuple) else value, arrow_type_of(type_))
    except UnicodeEncodeError as failure:
        raise _make_encoding_error(failure) from failure
    except (OverflowError, pa.ArrowInvalid) as failure:
        raise ExecutionError(
            f"{value} does not fit {type_}", hint="pass integers of one sign"
        ) from failure


@dataclass(frozen=True, slots=True)
class ConstantResult:
    """A value that is the same at every row; None is null."""

    value: Value


_Value: TypeAlias = ConstantResult | Values
_UNKNOWN: Final = ConstantResult(None)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    rows: RowColumns
    params: Params
    poll: Poll
    # Long conditions ask for the same property many times.
    columns: dict[tuple[str, str], Values] = field(default_factory=dict)

    def evaluate_expression(self, expr: Expr) -> _Value:
        self.poll()
        return _EVALUATORS[type(expr)](self, expr)

    def get_property(self, variable: str, name: str) -> Values:
        found = self.columns.get((variable, name))
        if found is None:
            found = self.columns[variable, name] = self.rows.get_property(variable, name)
        return found


# ---- leaves ----


def _evaluate_parameter(at: _Evaluation, expr: typed_tree.ParameterValue) -> ConstantResult:
    value = at.params[expr.name]
    texts: Any = value if isinstance(value, tuple) else (value,)  # Any: of one type, as declared
    # A list may be long: the texts that need a look at each are rare.
    if texts and isinstance(texts[0], str) and not all(map(str.isascii, texts)):
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError as failure:
                raise _make_encoding_error(failure) from failure
    return ConstantResult(value)


def _make_encoding_error(failure: UnicodeEncodeError) -> ExecutionError:
    return ExecutionError(
        f"a text holds half of a surrogate pair at character {failure.start}",
        hint="pass text that can be written as UTF-8",
    )


def _evaluate_list(at: _Evaluation, expr: typed_tree.ListOf) -> ConstantResult:
    return ConstantResult(tuple(evaluate_constant(item, at.params) for item in expr.items))


def _evaluate_property(at: _Evaluation, expr: typed_tree.PropertyValue) -> Values:
    return at.get_property(expr.variable, expr.property)


def _evaluate_system_field(at: _Evaluation, expr: typed_tree.SystemValue) -> Values:
    return at.rows.get_system_field(expr.variable, expr.name)


def _evaluate_node(at: _Evaluation, expr: typed_tree.NodeValue) -> Values:
    return at.rows.get_system_field(expr.variable, SystemName.ID)


def _evaluate_bound_value(at: _Evaluation, expr: typed_tree.BoundValue) -> Values:
    assert isinstance(at.rows, ComputedColumns), f"no value ${expr.variable}"
    return at.rows.get_column(expr.variable)


def _evaluate_column(at: _Evaluation, expr: typed_tree.ColumnValue) -> Values:
    assert isinstance(at.rows, ComputedColumns), f"no column {expr.name}"
    return at.rows.get_column(expr.name)


def _raise_unsupported(_: _Evaluation, expr: Expr) -> _Value:
    raise AssertionError(f"{type(expr).__name__} is not evaluated at rows")


# ---- functions ----


def _evaluate_function(at: _Evaluation, expr: typed_tree.FunctionValue) -> _Value:
    values = [at.evaluate_expression(each) for each in expr.arguments]
    is_constant = all(isinstance(each, ConstantResult) for each in values)
    rows = 1 if is_constant else at.rows.num_rows
    arguments = tuple(
        _to_argument(value, each) for value, each in zip(values, expr.arguments, strict=True)
    )
    kind = arrow_type_of(expr.type)
    require = at.params.require_memory if isinstance(at.params, RequestParams) else skip_memory
    found = call_function(FunctionCall(expr.function, arguments, rows, kind, at.poll, require))
    return ConstantResult(_to_constant(found)) if is_constant else found


def _to_argument(value: _Value, expr: Expr) -> Argument:
    if not isinstance(value, ConstantResult):
        return value
    assert isinstance(expr.type, PropertyType)
    return to_arrow_scalar(value.value, expr.type)


def _to_constant(values: Values) -> Value:
    """The only value of a column, as constants are."""
    kind = values.type
    if pa.types.is_list(kind):
        items = values[0].values
        return None if items is None else tuple(to_comparable(items).to_pylist())
    found: Value = to_comparable(values)[0].as_py()
    return found


# ---- tests ----


def _evaluate_comparison(at: _Evaluation, expr: typed_tree.Compare) -> _Value:
    match at.evaluate_expression(expr.left), at.evaluate_expression(expr.right):
        case (ConstantResult(None), _) | (_, ConstantResult(None)):
            return _UNKNOWN
        case ConstantResult(left), ConstantResult(right):
            return ConstantResult(_PYTHON_OPERATORS[expr.op](left, right))
        case ConstantResult(left), right:
            return compare_constant(MIRRORED[expr.op], right, left)
        case left, ConstantResult(right):
            return compare_constant(expr.op, left, right)
        case left, right:
            return compare_values(expr.op, left, right)
    raise AssertionError("every pair has a case")


def _evaluate_member(at: _Evaluation, expr: typed_tree.Member) -> _Value:
    match at.evaluate_expression(expr.item), at.evaluate_expression(expr.items):
        case (ConstantResult(None), _) | (_, ConstantResult(None)):
            return _UNKNOWN
        case ConstantResult(item), ConstantResult(items):
            return ConstantResult(is_constant_in(item, items))
        case ConstantResult(item), lists:
            return is_in_lists(item, lists)
        case item, ConstantResult(tuple(items)):
            return is_in_constants(item, find_matchable(items, item.type, at.params), at.poll)
        case item, lists:
            return is_in_lists(item, lists)
    raise AssertionError("every pair has a case")


def _evaluate_text_test(
    at: _Evaluation, sides: tuple[Expr, Expr], on_columns: Callable[..., Values]
) -> _Value:
    left, right = map(at.evaluate_expression, sides)
    if _UNKNOWN in [side for side in (left, right) if isinstance(side, ConstantResult)]:
        return _UNKNOWN
    if isinstance(left, ConstantResult) and isinstance(right, ConstantResult):
        return ConstantResult(on_columns(pa.array([left.value]), right.value)[0].as_py())
    return on_columns(
        *(side.value if isinstance(side, ConstantResult) else side for side in (left, right)),
        at.poll,
    )


def _evaluate_null_test(at: _Evaluation, expr: typed_tree.IsNull) -> _Value:
    operand = at.evaluate_expression(expr.operand)
    if isinstance(operand, ConstantResult):
        return ConstantResult((operand.value is None) != expr.is_negated)
    return operand.is_valid() if expr.is_negated else operand.is_null()


def _evaluate_text_match(at: _Evaluation, expr: typed_tree.TextMatch) -> _Value:
    query = read_text_query(expr, lambda part: evaluate_constant(part, at.params))
    if query is None:
        return _UNKNOWN
    found = None
    if isinstance(at.rows, SearchedColumns):
        found = at.rows.search_texts(expr, at.params)
    if found is None:
        found = match_texts(at.get_property(expr.variable, expr.property), query, at.poll)
    return found


# ---- logic ----


def _evaluate_conjunction(at: _Evaluation, expr: typed_tree.AllOf) -> _Value:
    return _join(map(at.evaluate_expression, expr.operands), pc.and_kleene)


def _evaluate_disjunction(at: _Evaluation, expr: typed_tree.AnyOf) -> _Value:
    """Tests of one property for many parts look through its texts together."""
    others: list[Expr] = []
    parts: dict[tuple[str, str], list[str]] = {}
    for operand in expr.operands:
        match operand:
            case typed_tree.Substring(
                typed_tree.PropertyValue(variable, name), typed_tree.Constant(str(part))
            ):
                parts.setdefault((variable, name), []).append(part)
            case _:
                others.append(operand)
    tests = (
        text_predicates.contains_any(at.get_property(*place), each, at.poll)
        for place, each in parts.items()
    )
    return _join(chain(map(at.evaluate_expression, others), tests), pc.or_kleene)


def _join(values: Iterable[_Value], join: Callable[..., Any]) -> _Value:
    # Any: a kernel gives a scalar for scalars and an array as soon as there is one.
    # One after the other, so that a long condition holds the truth of two operands at a time.
    joined = reduce(join, map(_to_truth_values, values))
    return ConstantResult(joined.as_py()) if isinstance(joined, pa.Scalar) else joined


def _evaluate_negation(at: _Evaluation, expr: typed_tree.Negation) -> _Value:
    operand = at.evaluate_expression(expr.operand)
    if isinstance(operand, ConstantResult):
        return _UNKNOWN if operand.value is None else ConstantResult(not operand.value)
    return pc.invert(operand)


def _to_truth_values(value: _Value) -> Values | pa.Scalar:
    return pa.scalar(value.value, pa.bool_()) if isinstance(value, ConstantResult) else value


# Any: checked comparisons only ever meet values of one kind.
_PYTHON_OPERATORS: Final[dict[CompareOp, Callable[[Any, Any], bool]]] = {
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
}
# Any: each function takes the one kind of expression it stands beside.
_EVALUATORS: Final[dict[type[Expr], Callable[[_Evaluation, Any], _Value]]] = {
    typed_tree.Constant: lambda _, expr: ConstantResult(expr.value),
    typed_tree.ParameterValue: _evaluate_parameter,
    typed_tree.NowValue: lambda at, _: ConstantResult(at.params[NOW_NAME]),
    typed_tree.PropertyValue: _evaluate_property,
    typed_tree.SystemValue: _evaluate_system_field,
    typed_tree.NodeValue: _evaluate_node,
    typed_tree.PathValue: lambda at, expr: select_path_part(
        _evaluate_bound_value(at, expr), expr.type.part
    ),
    typed_tree.BoundValue: _evaluate_bound_value,
    typed_tree.ListOf: _evaluate_list,
    typed_tree.FunctionValue: _evaluate_function,
    typed_tree.Compare: _evaluate_comparison,
    typed_tree.Member: _evaluate_member,
    typed_tree.Substring: lambda at, expr: _evaluate_text_test(
        at, (expr.text, expr.part), text_predicates.contains
    ),
    typed_tree.Prefix: lambda at, expr: _evaluate_text_test(
        at, (expr.text, expr.prefix), text_predicates.has_prefix
    ),
    typed_tree.IsNull: _evaluate_null_test,
    typed_tree.AllOf: _evaluate_conjunction,
    typed_tree.AnyOf: _evaluate_disjunction,
    typed_tree.Negation: _evaluate_negation,
    typed_tree.TextMatch: _evaluate_text_match,
    typed_tree.NearestScore: _raise_unsupported,
    typed_tree.Bm25Score: _raise_unsupported,
    typed_tree.RrfScore: _raise_unsupported,
    typed_tree.ScoreValue: _raise_unsupported,
    typed_tree.AggregateValue: _raise_unsupported,
    typed_tree.ColumnValue: _evaluate_column,
}
