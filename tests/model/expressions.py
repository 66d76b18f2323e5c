"""Expressions over a row: three-valued logic, sort keys and aggregates."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from model import functions, search
from omnigraph.errors import ExecutionError
from omnigraph.query import tree_walk
from omnigraph.query import typed_tree as typed
from omnigraph.query.ast import AggregateFunction, CompareOp, TextFunction
from omnigraph.query.function_signatures import SIGNATURES

Entity = dict[str, Any]  # Any: `@id`, `@type`, an edge's `@src` and `@dst`, and the properties
Row = dict[str, Any]  # Any: an entity by variable, a value by column, the score under SCORE
Params = Mapping[str, typed.Value]  # the instant of the request is under NOW_NAME
SCORE = "#score"


@dataclass(frozen=True, slots=True)
class At:
    """A row to evaluate expressions at; None is null, and a bare node is its entity."""

    row: Row
    params: Params

    def __call__(self, expr: typed.Expr) -> Any:  # Any: a value of any type
        return _MEANING[type(expr)](expr, self)


def compare(op: CompareOp, left: Any, right: Any) -> bool | None:
    """A comparison by exact value; null if a side is null."""
    return _known(getattr(operator, op.name.lower()), left, right)


def _known(function: Callable[..., bool], *operands: Any) -> bool | None:
    return None if None in operands else function(*operands)


def _field(entity: Entity | None, name: str) -> Any:
    """What an entity has; null where an optional block found none, or its type lacks it."""
    return None if entity is None else entity.get(name)


def _path_part(path: Any, part: typed.PathPart) -> Any:
    """A path, or its nodes or edges."""
    return path if path is None or part is typed.PathPart.WHOLE else tuple(path[part])


def edits(match: typed.TextMatch, params: Params) -> int:
    """How many edits a text predicate forgives."""
    default = 2 if match.function is TextFunction.FUZZY else 0
    return option(match.edits, params, default=default, minimum=0)


def option(expr: typed.Expr | None, params: Params, *, default: int, minimum: int) -> int:
    """The value of an optional argument of a search function."""
    value = default if expr is None else At({}, params)(expr)
    if value is None or not minimum <= value < 2**32:
        raise ExecutionError(f"a search option must be at least {minimum} and fit 32 bits: {value}")
    return int(value)


# With false < null < true, a conjunction is its least operand and a disjunction its greatest.
_TRUTHS = (False, None, True)
_MEANING: dict[type[typed.Expr], Callable[[Any, At], Any]] = {
    typed.Constant: lambda expr, _: expr.value,
    typed.ParameterValue: lambda expr, at: at.params[expr.name],
    typed.NowValue: lambda _, at: at.params[typed.NOW_NAME],
    typed.PropertyValue: lambda expr, at: _field(at.row[expr.variable], expr.property),
    typed.SystemValue: lambda expr, at: _field(at.row[expr.variable], f"@{expr.name}"),
    typed.NodeValue: lambda expr, at: at.row[expr.variable],
    typed.PathValue: lambda expr, at: _path_part(at.row[expr.variable], expr.type.part),
    typed.EdgeValue: lambda expr, at: at.row[expr.variable],
    typed.BoundValue: lambda expr, at: at.row[expr.variable],
    typed.ColumnValue: lambda expr, at: at.row[expr.name],
    typed.NearestScore: lambda _, at: at.row[SCORE],
    typed.Bm25Score: lambda _, at: at.row[SCORE],
    typed.RrfScore: lambda _, at: at.row[SCORE],
    typed.ListOf: lambda expr, at: tuple(map(at, expr.items)),
    typed.FunctionValue: lambda expr, at: functions.apply(expr, list(map(at, expr.arguments))),
    typed.Compare: lambda expr, at: compare(expr.op, at(expr.left), at(expr.right)),
    typed.Member: lambda expr, at: _known(operator.contains, at(expr.items), at(expr.item)),
    typed.Substring: lambda expr, at: _known(operator.contains, at(expr.text), at(expr.part)),
    typed.Prefix: lambda expr, at: _known(str.startswith, at(expr.text), at(expr.prefix)),
    typed.GuardTest: lambda expr, at: is_seen(at.row[expr.variable], expr.guards, at.params),
    typed.TextMatch: lambda expr, at: search.matches(
        expr.function,
        _field(at.row[expr.variable], expr.property),
        at(expr.query),
        edits(expr, at.params),
    ),
    typed.IsNull: lambda expr, at: (at(expr.operand) is None) != expr.is_negated,
    typed.Negation: lambda expr, at: _known(operator.not_, at(expr.operand)),
    typed.AllOf: lambda expr, at: min(map(at, expr.operands), key=_TRUTHS.index),
    typed.AnyOf: lambda expr, at: max(map(at, expr.operands), key=_TRUTHS.index),
}


def is_seen(node: Entity, guards: Iterable[typed.TypeGuard], params: Params) -> bool:
    """Whether the guard of the type of a node, if there is one, lets it be seen."""
    at = At({typed.GUARDED: node}, params)
    return all(at(each.condition) is True for each in guards if each.type_name == node["@type"])


def has_fault(expr: typed.Expr, at: At) -> bool:
    """Whether an expression is null because a function in it has no value."""
    parts = list(tree_walk.iter_children(expr))
    if at(expr) is not None or not parts:
        return False
    if isinstance(expr, typed.FunctionValue) and expr.function in ("if", "case"):
        *branches, chosen = parts
        for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
            chosen = value if at(test) is True else chosen
        return at(chosen) is not None or has_fault(chosen, at)
    # What is chosen of several values and is null nevertheless does not fit their type.
    faults = isinstance(expr, typed.FunctionValue) and (
        expr.function in ("coalesce", "least", "greatest")
        and any(at(part) is not None for part in parts)
    )
    faults = faults or (
        isinstance(expr, typed.FunctionValue)
        and expr.function not in ("nullif", "position", "extract")
        and any(each.can_fault for each in SIGNATURES[expr.function])
        and None not in map(at, parts)
    )
    return faults or any(has_fault(part, at) for part in parts)


def sort_key(value: Any) -> tuple[int, Any]:
    """Null is the smallest value and NaN the greatest; a node counts by its type and its id."""
    if value is None or value != value:
        return (0 if value is None else 2, 0)
    if isinstance(value, tuple):
        return (1, tuple(map(sort_key, value)))
    return (1, (value["@type"], value["@id"]) if isinstance(value, dict) else value)


def aggregate(function: AggregateFunction, values: Iterable[Any]) -> Any:
    """An aggregate of the values that are not null; without one, all but the count is null."""
    known = [value for value in values if value is not None]
    if function is AggregateFunction.COUNT:
        return len(known)
    if not known:
        return None
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return sorted(known, key=sort_key)[0 if function is AggregateFunction.MIN else -1]
    return sum_exactly(known, 1 if function is AggregateFunction.SUM else len(known))


def sum_exactly(numbers: Iterable[int | float], divisor: int) -> float:
    """A sum, divided, and rounded once, so that the order of the rows cannot change it."""
    total = sum(map(Fraction, numbers), Fraction()) / divisor
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf
