"""Which kernel computes a function, and calls of it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.query.function_signatures import SIGNATURES
from omnigraph.rows.comparison import Values
from omnigraph.rows.kernels.choice_kernels import CHOICE_KERNELS
from omnigraph.rows.kernels.conversion_kernels import CONVERSION_KERNELS
from omnigraph.rows.kernels.date_kernels import DATE_KERNELS, add_days, add_duration
from omnigraph.rows.kernels.function_call import (
    COLUMN_BYTES_MAX,
    FunctionCall,
    Kernel,
    make_column,
)
from omnigraph.rows.kernels.highlight_kernel import mark_texts
from omnigraph.rows.kernels.list_kernels import LIST_KERNELS, join_lists, slice_lists
from omnigraph.rows.kernels.number_kernels import NUMBER_KERNELS
from omnigraph.rows.kernels.pattern_kernels import PATTERN_KERNELS
from omnigraph.rows.kernels.text_kernels import TEXT_KERNELS, join_texts
from omnigraph.rows.kernels.vector_kernels import VECTOR_KERNELS

KERNELS: Final[dict[str, Kernel]] = {
    **NUMBER_KERNELS,
    **CHOICE_KERNELS,
    **CONVERSION_KERNELS,
    **TEXT_KERNELS,
    **PATTERN_KERNELS,
    **DATE_KERNELS,
    **LIST_KERNELS,
    **VECTOR_KERNELS,
    "highlight": mark_texts,
}
# What a name also means, by the type of the result.
_TEXT_OPERATORS: Final[dict[str, Kernel]] = {"+": join_texts}
_DATE_OPERATORS: Final[dict[str, Kernel]] = {"+": add_days, "-": add_days}
_TIME_OPERATORS: Final[dict[str, Kernel]] = {"+": add_duration, "-": add_duration}
_LIST_OPERATORS: Final[dict[str, Kernel]] = {"+": join_lists, "slice": slice_lists}
# The functions for which every null argument makes a null.
_STRICT: Final = frozenset(
    name
    for name, signatures in SIGNATURES.items()
    if not any(
        each.is_null_taken for sign in signatures for each in (*sign.parameters, *sign.options)
    )
)


def call_function(call: FunctionCall) -> Values:
    """The values of a function at each row."""
    if call.function in _STRICT and any(
        isinstance(each, pa.Scalar) and not each.is_valid for each in call.arguments
    ):
        return pa.nulls(call.rows, call.result)
    try:
        return make_column(_find_kernel(call)(call), call.rows)
    except pa.ArrowCapacityError as failure:
        raise call.build_overflow(COLUMN_BYTES_MAX + 1) from failure


def _find_kernel(call: FunctionCall) -> Kernel:
    kernel = KERNELS[call.function]
    if pa.types.is_string(call.result):
        return _TEXT_OPERATORS.get(call.function, kernel)
    if pa.types.is_date32(call.result):
        return _DATE_OPERATORS.get(call.function, kernel)
    if pa.types.is_date64(call.result):
        return _TIME_OPERATORS.get(call.function, kernel)
    if pa.types.is_list(call.result):
        return _LIST_OPERATORS.get(call.function, kernel)
    return kernel
