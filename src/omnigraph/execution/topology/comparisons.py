"""Properties compared with constants in the form they are kept in: as numbers, or texts by code."""

from __future__ import annotations

from typing import Final

import numpy as np

from omnigraph.execution.exact import MIRRORED, NUMPY_COMPARISONS, fit_constant
from omnigraph.execution.expressions import Params, evaluate_constant, is_constant
from omnigraph.execution.source import DenseIds
from omnigraph.execution.topology.columns import Mask, NumberColumn, TextColumn
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import Compare, Expr, PropertyValue, Value

# To find the code of a text takes an index of all of them: for a few rows it must be small.
FEW_TEXTS: Final = 1_024


def compare_property(
    entities: DenseEntities, condition: Expr, params: Params, at: DenseIds | None
) -> Mask | None:
    """Where a condition is true, at some entities or all numbers; None if values tell it sooner."""
    match condition:
        case Compare(op, PropertyValue(property=name), right) if is_constant(right):
            given = right
        case Compare(op, left, PropertyValue(property=name)) if is_constant(left):
            given, op = left, MIRRORED[op]
        case _:
            return None
    column = entities.get_column(name)
    if isinstance(column, NumberColumn):
        return _compare_numbers(column, op, evaluate_constant(given, params), at)
    if not isinstance(column, TextColumn) or op not in (CompareOp.EQ, CompareOp.NE):
        return None
    if at is not None and len(column.texts) > max(len(at), FEW_TEXTS):
        return None
    return _compare_texts(column, op, evaluate_constant(given, params), at)


def _compare_numbers(
    column: NumberColumn, op: CompareOp, value: Value, at: DenseIds | None
) -> Mask:
    numbers, nulls = column.get_numbers(at), column.get_nulls(at)
    test = False if value is None else fit_constant(op, value, column.kind)
    if isinstance(test, bool):
        found: Mask = np.full(len(numbers), test)
    else:
        found = NUMPY_COMPARISONS[test.op](numbers, test.value)
    return found if nulls is None else found & ~nulls


def _compare_texts(column: TextColumn, op: CompareOp, value: Value, at: DenseIds | None) -> Mask:
    codes = column.get_codes(at)
    if value is None:
        return np.zeros(len(codes), np.bool_)
    assert isinstance(value, str)
    code = column.code_of(value)
    if op is CompareOp.NE:
        return np.not_equal(codes, code) & np.greater_equal(codes, 0)
    # The code of a null is that of a text which nobody has.
    return np.equal(codes, code) if code >= 0 else np.zeros(len(codes), np.bool_)
