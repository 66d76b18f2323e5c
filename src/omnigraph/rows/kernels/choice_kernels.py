"""Functions that choose one of several values of a common type.

A value is chosen before it becomes one of the result: an integer that does not fit is a fault where
it is chosen, and never a null that makes room for another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ast import CompareOp
from omnigraph.rows.comparison import compare_values, flatten_chunks, to_numpy
from omnigraph.rows.kernels.function_call import (
    Argument,
    FunctionCall,
    Kernel,
    Mask,
    cast_argument,
    drop_misfits,
    make_column,
)

# Holds every I64 and every U64.
_ANY_INTEGER: Final = pa.decimal128(20)


def _common_kind_of(call: FunctionCall, values: Sequence[Argument]) -> pa.DataType:
    """The type in which values are compared and chosen."""
    is_unsigned = any(pa.types.is_uint64(each.type) for each in values)
    return _ANY_INTEGER if is_unsigned and call.result == pa.int64() else call.result


def _choose_known(call: FunctionCall) -> Argument:
    kind = _common_kind_of(call, call.arguments)
    found = pc.coalesce(*(cast_argument(each, kind) for each in call.arguments))
    return drop_misfits(found, call.result)


def _drop_equal(call: FunctionCall) -> Argument:
    value, other = call.read_column(0), call.read_column(1)
    if not call.arguments[1].is_valid if isinstance(call.arguments[1], pa.Scalar) else False:
        return cast_argument(value, call.result)
    equal = compare_values(CompareOp.EQ, value, other)
    kept = pc.if_else(pc.fill_null(equal, False), pa.scalar(None, value.type), value)
    return cast_argument(kept, call.result)


def _choose_branch(call: FunctionCall) -> Argument:
    *branches, found = call.arguments
    kind = _common_kind_of(call, [*branches[1::2], found])
    found = cast_argument(found, kind)
    for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        is_chosen = pc.fill_null(_as_truth(test), False)
        found = pc.if_else(is_chosen, cast_argument(value, kind), found)
    return drop_misfits(found, call.result)


def _as_truth(test: Argument) -> Argument:
    return cast_argument(test, pa.bool_())


def _choose_extreme(op: CompareOp, *, is_last: bool) -> Kernel:
    """The value that comes first or last in the order of values: NaN is the greatest number."""

    def compute(call: FunctionCall) -> Argument:
        kind = _common_kind_of(call, call.arguments)
        columns = [
            flatten_chunks(make_column(cast_argument(each, kind), call.rows))
            for each in call.arguments
        ]
        found = columns[0]
        for other in columns[1:]:
            is_better = to_numpy(compare_values(op, other, found))
            is_better |= _is_nan(other if is_last else found)
            is_better |= to_numpy(found.is_null())
            found = pc.if_else(pa.array(is_better & to_numpy(other.is_valid())), other, found)
        return drop_misfits(found, call.result)

    return compute


def _is_nan(values: pa.Array) -> Mask:
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return to_numpy(pc.is_nan(values))


CHOICE_KERNELS: Final[dict[str, Kernel]] = {
    "coalesce": _choose_known,
    "nullif": _drop_equal,
    "if": _choose_branch,
    "case": _choose_branch,
    "least": _choose_extreme(CompareOp.LT, is_last=False),
    "greatest": _choose_extreme(CompareOp.GT, is_last=True),
}
