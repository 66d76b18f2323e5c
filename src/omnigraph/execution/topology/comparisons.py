"""Properties compared with constants in the form they are kept in: as numbers, or texts by code."""

from __future__ import annotations

from typing import Final

import numpy as np

from omnigraph.execution.exact import COMPARED, MIRRORED, fitted
from omnigraph.execution.expressions import Params, constant, is_constant
from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.columns import Mask, NumberColumn, TextColumn
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import Compare, Expr, PropertyValue, Value

# To find the code of a text takes an index of all of them: for a few rows it must be small.
FEW_TEXTS: Final = 1_024


def compared(
    entities: DenseEntities, condition: Expr, params: Params, at: Numbers | None
) -> Mask | None:
    """Where a condition is true, at some entities or all numbers; None if values tell it sooner."""
    match condition:
        case Compare(op, PropertyValue(property=name), right) if is_constant(right):
            given = right
        case Compare(op, left, PropertyValue(property=name)) if is_constant(left):
            given, op = left, MIRRORED[op]
        case _:
            return None
    column = entities.column(name)
    if isinstance(column, NumberColumn):
        return _numbers(column, op, constant(given, params), at)
    if not isinstance(column, TextColumn) or op not in (CompareOp.EQ, CompareOp.NE):
        return None
    if at is not None and len(column.texts) > max(len(at), FEW_TEXTS):
        return None
    return _texts(column, op, constant(given, params), at)


def _numbers(column: NumberColumn, op: CompareOp, value: Value, at: Numbers | None) -> Mask:
    numbers, nulls = column.numbers_at(at), column.nulls_at(at)
    test = False if value is None else fitted(op, value, column.kind)
    if isinstance(test, bool):
        found: Mask = np.full(len(numbers), test)
    else:
        found = COMPARED[test.op](numbers, test.value)
    return found if nulls is None else found & ~nulls


def _texts(column: TextColumn, op: CompareOp, value: Value, at: Numbers | None) -> Mask:
    codes = column.codes_at(at)
    if value is None:
        return np.zeros(len(codes), np.bool_)
    assert isinstance(value, str)
    code = column.code_of(value)
    if op is CompareOp.NE:
        return np.not_equal(codes, code) & np.greater_equal(codes, 0)
    # The code of a null is that of a text which nobody has.
    return np.equal(codes, code) if code >= 0 else np.zeros(len(codes), np.bool_)
