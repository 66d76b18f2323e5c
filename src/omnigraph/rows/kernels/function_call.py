"""A call of a function: its arguments in the forms that kernels compute with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimitError
from omnigraph.rows.comparison import Poll, Values, flatten_chunks, to_comparable, to_numpy

# A scalar is a value that is the same at every row.
Argument: TypeAlias = Values | pa.Scalar
Numbers: TypeAlias = npt.NDArray[Any]  # Any: int64, uint64 or float64
Mask: TypeAlias = npt.NDArray[np.bool_]
# Raises when a request may not take so many bytes.
RequireMemory: TypeAlias = Callable[[int], None]

I64_MAX: Final = 2**63 - 1
# A column of texts or lists holds no more.
COLUMN_BYTES_MAX: Final = 2**31 - 1


def skip_memory(_nbytes: int) -> None:
    """The check of memory of work that nothing bounds."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function, its arguments, and how many values of which type it gives."""

    function: str
    arguments: tuple[Argument, ...]
    rows: int
    result: pa.DataType
    poll: Poll
    require_memory: RequireMemory = skip_memory

    def read_numbers(self, place: int) -> Numbers:
        """An argument as int64, uint64 or float64, one value for a scalar; a null is zero."""
        values = to_comparable(make_column(self.arguments[place], 1))
        kind = values.type
        if pa.types.is_floating(kind):
            return to_numpy(values.cast(pa.float64()))
        if pa.types.is_uint64(kind):
            return to_numpy(values)
        return to_numpy(values.cast(pa.int64()))

    def read_places(self, place: int) -> npt.NDArray[np.int64]:
        """Integers that count something, as int64: beyond it, the greatest one."""
        numbers = self.read_numbers(place)
        if numbers.dtype == np.uint64:
            numbers = np.minimum(numbers, np.uint64(I64_MAX))
        return numbers.astype(np.int64)

    def read_column(self, place: int) -> pa.Array:
        """An argument with a value for each row."""
        value = self.arguments[place]
        if isinstance(value, pa.Scalar) and self.rows > 1:
            # A constant may be long.
            self.require_room(self.rows * pa.repeat(value, 1).nbytes)
        return flatten_chunks(make_column(value, self.rows))

    def find_nulls(self) -> Mask | None:
        """The rows at which an argument is null; None if there are none."""
        nulls = [
            to_numpy(make_column(each, 1).is_null()) for each in self.arguments if _has_nulls(each)
        ]
        return reduce(np.logical_or, nulls) if nulls else None

    def require_room(self, nbytes: float) -> None:
        """Refuse to make values of so many bytes, before the memory is taken."""
        if nbytes > COLUMN_BYTES_MAX:
            raise self.build_overflow(int(nbytes))
        self.require_memory(int(nbytes))

    def build_overflow(self, nbytes: int) -> ResourceLimitError:
        """The error of values of so many bytes."""
        return ResourceLimitError(
            f"the number of bytes of the values that '{self.function}' makes at once",
            limit=COLUMN_BYTES_MAX,
            actual=nbytes,
            hint="make shorter values, or put a selective condition first",
        )

    def build_numbers(self, values: Numbers, is_fault: Mask | None = None) -> pa.Array:
        """The result from its numbers: null where an argument is, and at a fault."""
        nulls = self.find_nulls()
        if is_fault is not None and is_fault.any():
            nulls = is_fault if nulls is None else nulls | is_fault
        whole = np.broadcast_to(values, self.rows)
        mask = None if nulls is None else np.broadcast_to(nulls, self.rows)
        return pa.array(whole, mask=mask).cast(self.result)


Kernel: TypeAlias = Callable[[FunctionCall], Argument]


def make_column(value: Argument, rows: int) -> Values:
    """A column; a scalar as so many equal values."""
    if not isinstance(value, pa.Scalar):
        return value
    if not rows:
        return pa.array([], value.type)
    return pa.repeat(value, rows)


def cast_argument(value: Argument, kind: pa.DataType) -> Argument:
    """A value of the common type of several, which can hold it."""
    if value.type == kind:
        return value
    if isinstance(value, pa.Scalar) and not value.is_valid:
        return pa.scalar(None, kind)
    return value.cast(kind, safe=False)


def drop_misfits(value: Argument, kind: pa.DataType) -> Argument:
    """A value of a type; an integer beyond it is null."""
    if value.type == kind:
        return value
    is_fit = pc.less_equal(value, pa.scalar(I64_MAX, value.type))
    if not pa.types.is_unsigned_integer(value.type):
        lowest = pa.scalar(-I64_MAX - 1, value.type)
        is_fit = pc.and_(is_fit, pc.greater_equal(value, lowest))
    return pc.if_else(is_fit, value, pa.scalar(None, value.type)).cast(kind)


def _has_nulls(value: Argument) -> bool:
    return not value.is_valid if isinstance(value, pa.Scalar) else value.null_count > 0
