"""Functions that choose one of several values of a common type."""

from __future__ import annotations

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
    make_column,
)


def _choose_known(call: FunctionCall) -> Argument:
    return pc.coalesce(*(cast_argument(each, call.result) for each in call.arguments))


def _drop_equal(call: FunctionCall) -> Argument:
    value, other = call.read_column(0), call.read_column(1)
    if not call.arguments[1].is_valid if isinstance(call.arguments[1], pa.Scalar) else False:
        return cast_argument(value, call.result)
    equal = compare_values(CompareOp.EQ, value, other)
    kept = pc.if_else(pc.fill_null(equal, False), pa.scalar(None, value.type), value)
    return cast_argument(kept, call.result)


def _choose_branch(call: FunctionCall) -> Argument:
    *branches, found = call.arguments
    found = cast_argument(found, call.result)
    for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        is_chosen = pc.fill_null(_as_truth(test), False)
        found = pc.if_else(is_chosen, cast_argument(value, call.result), found)
    return found


def _as_truth(test: Argument) -> Argument:
    return cast_argument(test, pa.bool_())


def _choose_extreme(op: CompareOp, *, is_last: bool) -> Kernel:
    """The value that comes first or last in the order of values: NaN is the greatest number."""

    def compute(call: FunctionCall) -> Argument:
        columns = [
            flatten_chunks(make_column(cast_argument(each, call.result), call.rows))
            for each in call.arguments
        ]
        found = columns[0]
        for other in columns[1:]:
            is_better = to_numpy(compare_values(op, other, found))
            is_better |= _is_nan(other if is_last else found)
            is_better |= to_numpy(found.is_null())
            found = pc.if_else(pa.array(is_better & to_numpy(other.is_valid())), other, found)
        return found

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
