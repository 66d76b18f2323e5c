"""Which kernel computes a function, and calls of it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.query.function_signatures import SIGNATURES
from omnigraph.rows.comparison import Values
from omnigraph.rows.kernels.choice_kernels import CHOICE_KERNELS
from omnigraph.rows.kernels.date_kernels import DATE_KERNELS, add_days
from omnigraph.rows.kernels.function_call import (
    TEXTS_BYTES_MAX,
    FunctionCall,
    Kernel,
    make_column,
)
from omnigraph.rows.kernels.list_kernels import LIST_KERNELS
from omnigraph.rows.kernels.number_kernels import NUMBER_KERNELS
from omnigraph.rows.kernels.text_kernels import TEXT_KERNELS, join_texts

KERNELS: Final[dict[str, Kernel]] = {
    **NUMBER_KERNELS,
    **CHOICE_KERNELS,
    **TEXT_KERNELS,
    **DATE_KERNELS,
    **LIST_KERNELS,
}
# The operators of other types than numbers, by the type of their result.
_TEXT_OPERATORS: Final[dict[str, Kernel]] = {"+": join_texts}
_DATE_OPERATORS: Final[dict[str, Kernel]] = {"+": add_days, "-": add_days}
# The functions for which every null argument makes a null.
_STRICT: Final = frozenset(
    name
    for name, signatures in SIGNATURES.items()
    if not any(each.is_null_taken for sign in signatures for each in sign.parameters)
)


def call_function(call: FunctionCall) -> Values:
    """The values of a function at each row."""
    if call.function in _STRICT and any(
        isinstance(each, pa.Scalar) and not each.is_valid for each in call.arguments
    ):
        return pa.nulls(call.rows, call.result)
    kernel = KERNELS[call.function]
    if pa.types.is_string(call.result):
        kernel = _TEXT_OPERATORS.get(call.function, kernel)
    elif pa.types.is_date32(call.result):
        kernel = _DATE_OPERATORS.get(call.function, kernel)
    try:
        return make_column(kernel(call), call.rows)
    except pa.ArrowCapacityError as failure:
        raise call.build_overflow(TEXTS_BYTES_MAX + 1) from failure
