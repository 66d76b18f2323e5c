"""Whether values are in lists: exact equality with an element; null elements match nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import (
    Comparison,
    Values,
    comparable_type_of,
    compare_constant,
    compare_values,
    fit_constant,
    flatten_chunks,
    to_comparable,
    to_numpy,
)
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import Value


def is_in_constants(values: Values, items: Iterable[Value]) -> Values:
    """Which values are among constants; nulls stay null."""
    values = to_comparable(values)
    wanted = pa.array(list(iter_matchable(items, values.type)), values.type)
    found = pc.is_in(values, value_set=with_both_zeros(wanted))
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))


def iter_matchable(items: Iterable[Value], kind: pa.DataType) -> Iterator[bool | int | float | str]:
    """The constants that a column of a type can hold, as values of that (plain) type."""
    for item in items:
        if item is not None:
            test = fit_constant(CompareOp.EQ, item, comparable_type_of(kind))
            if isinstance(test, Comparison):
                yield test.value


def is_constant_in(item: Value, items: Value) -> bool:
    """Whether a constant is in a constant list; neither is null."""
    assert isinstance(items, tuple)
    return any(item == each for each in items)


def is_in_lists(item: Value | Values, lists: Values) -> pa.Array:
    """Which lists hold a constant, or the value of their row; null where either is null."""
    together = flatten_chunks(lists)
    starts = together.offsets.to_numpy()
    elements = together.values.slice(starts[0], starts[-1] - starts[0])
    rows = np.repeat(np.arange(len(together)), np.diff(starts))
    is_known = together.is_valid()
    if isinstance(item, pa.Array | pa.ChunkedArray):
        is_known = pc.and_(is_known, flatten_chunks(item.is_valid()))
        equal = compare_values(CompareOp.EQ, elements, flatten_chunks(item).take(pa.array(rows)))
    else:
        equal = compare_constant(CompareOp.EQ, elements, item)
    found = np.zeros(len(together), np.bool_)
    found[rows[to_numpy(equal)]] = True
    return pa.array(found, pa.bool_(), mask=~to_numpy(is_known))


def with_both_zeros(wanted: pa.Array) -> pa.Array:
    """Values to look for: a zero among floats stands for both, which look-ups tell apart."""
    if not pa.types.is_floating(wanted.type) or not pc.any(pc.equal(wanted, 0.0)).as_py():
        return wanted
    zeros = pa.array([0.0, math.copysign(0.0, -1)], wanted.type)
    return pa.concat_arrays([wanted, zeros])
