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

_Mask: TypeAlias = npt.NDArray[np.bool_]

# Null is an answer of these, not the lack of one.
_ANSWERS_NULL: Final = frozenset({"nullif", "position"})


def can_fault(expr: typed_tree.Expr) -> bool:
    """Whether a function in an expression may have no value although its arguments have."""
    return any(
        isinstance(part, typed_tree.FunctionValue) and _may_fault(part.function)
        for part in iter_subexpressions(expr)
    )


def find_faults(expr: typed_tree.Expr, rows: RowColumns, params: Params) -> _Mask:
    """The rows at which an expression is null because a function in it has no value."""
    if not can_fault(expr):
        return np.zeros(rows.num_rows, np.bool_)
    match expr:
        case typed_tree.FunctionValue("if", (test, value, otherwise)):
            chosen = evaluate_truth(test, rows, params)
            others = find_faults(otherwise, rows, params)
            return np.where(chosen, find_faults(value, rows, params), others)
        case typed_tree.FunctionValue("case", (*branches, otherwise)):
            found = find_faults(otherwise, rows, params)
            for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
                chosen = evaluate_truth(test, rows, params)
                found = np.where(chosen, find_faults(value, rows, params), found)
            return found
    inner = [find_faults(child, rows, params) for child in iter_children(expr)]
    faults: _Mask = reduce(np.logical_or, inner)
    if isinstance(expr, typed_tree.FunctionValue) and _may_fault(expr.function):
        nulls = [_find_nulls(child, rows, params) for child in iter_children(expr)]
        faults = faults | ~reduce(np.logical_or, nulls)
    return faults & _find_nulls(expr, rows, params)


def _may_fault(function: str) -> bool:
    return function not in _ANSWERS_NULL and any(each.can_fault for each in SIGNATURES[function])


def _find_nulls(expr: typed_tree.Expr, rows: RowColumns, params: Params) -> _Mask:
    found = evaluate(expr, rows, params)
    if isinstance(found, pa.Scalar):
        return np.full(rows.num_rows, not found.is_valid)
    mask: _Mask = np.asarray(found.is_null())
    return mask
