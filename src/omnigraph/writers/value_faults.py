"""Where an expression has no value: null though nothing that it reads is the reason."""

from __future__ import annotations

from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query import typed_tree
from omnigraph.query.function_signatures import SIGNATURES
from omnigraph.query.tree_walk import iter_children, iter_subexpressions
from omnigraph.rows.evaluator import Params, RowColumns, evaluate
from omnigraph.rows.row_filter import evaluate_truth
from omnigraph.schema.property_types import PropertyType, Scalar

_Mask: TypeAlias = npt.NDArray[np.bool_]

# Null is an answer of these, not the lack of one.
_ANSWERS_NULL: Final = frozenset({"nullif", "position", "extract"})
_BRANCHING: Final = frozenset({"if", "case"})
_CHOOSING: Final = _BRANCHING | {"coalesce", "least", "greatest"}


def can_fault(expr: typed_tree.Expr) -> bool:
    """Whether a function in an expression may have no value although its arguments have."""
    return any(
        isinstance(part, typed_tree.FunctionValue)
        and (_may_fault(part.function) or _may_choose_misfit(part))
        for part in iter_subexpressions(expr)
    )


def find_faults(expr: typed_tree.Expr, rows: RowColumns, params: Params) -> _Mask:
    """The rows at which an expression is null because a function in it has no value."""
    if not can_fault(expr):
        return np.zeros(rows.num_rows, np.bool_)
    if isinstance(expr, typed_tree.FunctionValue) and expr.function in _BRANCHING:
        return _find_branch_faults(expr, rows, params)
    inner = [find_faults(child, rows, params) for child in iter_children(expr)]
    faults: _Mask = reduce(np.logical_or, inner)
    if isinstance(expr, typed_tree.FunctionValue):
        nulls = [_find_nulls(child, rows, params) for child in iter_children(expr)]
        if _may_fault(expr.function):
            faults = faults | ~reduce(np.logical_or, nulls)
        elif _may_choose_misfit(expr):
            faults = faults | ~reduce(np.logical_and, nulls)
    return faults & _find_nulls(expr, rows, params)


def _find_branch_faults(expr: typed_tree.FunctionValue, rows: RowColumns, params: Params) -> _Mask:
    """Faults of the value that is chosen, and where it does not fit the type of all of them."""
    *branches, otherwise = expr.arguments
    found = find_faults(otherwise, rows, params)
    nulls = _find_nulls(otherwise, rows, params)
    for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        chosen = evaluate_truth(test, rows, params)
        found = np.where(chosen, find_faults(value, rows, params), found)
        nulls = np.where(chosen, _find_nulls(value, rows, params), nulls)
    return (found | ~nulls) & _find_nulls(expr, rows, params)


def _may_fault(function: str) -> bool:
    return function not in _ANSWERS_NULL and any(each.can_fault for each in SIGNATURES[function])


def _may_choose_misfit(expr: typed_tree.FunctionValue) -> bool:
    """Whether one of several values is chosen that the type of all of them may not hold."""
    return (
        expr.function in _CHOOSING
        and expr.type.scalar is Scalar.I64
        and any(_scalar_of(each) is Scalar.U64 for each in expr.arguments)
    )


def _scalar_of(expr: typed_tree.Expr) -> Scalar | None:
    return expr.type.scalar if isinstance(expr.type, PropertyType) else None


def _find_nulls(expr: typed_tree.Expr, rows: RowColumns, params: Params) -> _Mask:
    found = evaluate(expr, rows, params)
    if isinstance(found, pa.Scalar):
        return np.full(rows.num_rows, not found.is_valid)
    mask: _Mask = np.asarray(found.is_null())
    return mask
