"""Functions of vectors, computed with 64-bit floats, one dimension of all rows after the other.

So the sum of a row is the same whatever rows are beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.kernels.function_call import FunctionCall, Kernel, Mask

_Floats = npt.NDArray[np.float64]
_Places = npt.NDArray[np.int64]
_Term = Callable[[_Floats, _Floats], _Floats]


class _Vectors:
    """The numbers of a vector at each row; a null vector has none."""

    def __init__(self, call: FunctionCall, place: int) -> None:
        values = call.read_column(place)
        self.numbers: _Floats = to_numpy(values.flatten()).astype(np.float64)
        lengths = pc.fill_null(pc.list_value_length(values), 0)
        self.lengths: _Places = to_numpy(lengths).astype(np.int64)
        self.starts: _Places = np.cumsum(self.lengths) - self.lengths


def _add_terms(call: FunctionCall, left: _Vectors, right: _Vectors, term: _Term) -> _Floats:
    total = np.zeros(call.rows)
    lengths = np.minimum(left.lengths, right.lengths)
    with np.errstate(all="ignore"):
        for at in range(int(lengths.max(initial=0))):
            call.poll()
            rows = np.flatnonzero(lengths > at)
            total[rows] += term(
                left.numbers[left.starts[rows] + at], right.numbers[right.starts[rows] + at]
            )
    return total


def _build(call: FunctionCall, found: _Floats, is_fault: Mask) -> pa.Array:
    return call.build_numbers(found, is_fault | ~np.isfinite(found))


def _find_distance(call: FunctionCall) -> pa.Array:
    """The length of the difference: not its square, by which `nearest` ranks."""
    left, right = _Vectors(call, 0), _Vectors(call, 1)
    squares = _add_terms(call, left, right, lambda one, other: (one - other) * (one - other))
    return _build(call, np.sqrt(squares), left.lengths != right.lengths)


def _find_product(call: FunctionCall) -> pa.Array:
    left, right = _Vectors(call, 0), _Vectors(call, 1)
    products = _add_terms(call, left, right, np.multiply)
    return _build(call, products, left.lengths != right.lengths)


def _find_cosine(call: FunctionCall) -> pa.Array:
    """The product of both by the product of their lengths; null for a vector of zeros."""
    left, right = _Vectors(call, 0), _Vectors(call, 1)
    products = _add_terms(call, left, right, np.multiply)
    sizes = _find_size(call, left) * _find_size(call, right)
    with np.errstate(all="ignore"):
        found = np.clip(products / sizes, -1.0, 1.0)
    return _build(call, found, left.lengths != right.lengths)


def _find_norm(call: FunctionCall) -> pa.Array:
    vectors = _Vectors(call, 0)
    return _build(call, _find_size(call, vectors), np.zeros(call.rows, np.bool_))


def _find_size(call: FunctionCall, vectors: _Vectors) -> _Floats:
    return np.sqrt(_add_terms(call, vectors, vectors, np.multiply))


VECTOR_KERNELS: Final[dict[str, Kernel]] = {
    "l2": _find_distance,
    "dot": _find_product,
    "cosine": _find_cosine,
    "norm": _find_norm,
}
