"""Functions of lists."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import to_comparable, to_numpy
from omnigraph.rows.group_aggregates import encode_group_keys
from omnigraph.rows.kernels.function_call import Argument, FunctionCall, Kernel, Mask, make_column
from omnigraph.rows.kernels.text_kernels import drop_where_null


def _count_items(call: FunctionCall) -> Argument:
    return pc.list_value_length(make_column(call.arguments[0], call.rows)).cast(call.result)


def _take_item(call: FunctionCall) -> Argument:
    """The item at a place from 0, or from the end if it is negative; null outside."""
    lists = call.read_column(0)
    starts = to_numpy(lists.offsets)[:-1].astype(np.int64)
    counts = np.diff(to_numpy(lists.offsets)).astype(np.int64)
    at = np.broadcast_to(call.read_places(1), call.rows)
    at = np.where(at < 0, at + counts, at)
    is_inside = (at >= 0) & (at < counts)
    places = pa.array(np.where(is_inside, starts + at, 0), mask=~is_inside)
    # The values of all lists: offsets are places in them, whatever part of a column this is.
    return drop_where_null(lists.values.take(places).cast(call.result), call)


def _has_any(call: FunctionCall) -> Argument:
    owners, is_common = _find_common(call)
    found = np.bincount(owners[is_common], minlength=call.rows) > 0
    return drop_where_null(pa.array(found), call)


def _has_all(call: FunctionCall) -> Argument:
    """Whether every item of the second list is in the first."""
    swapped = FunctionCall(call.function, call.arguments[::-1], call.rows, call.result, call.poll)
    owners, is_common = _find_common(swapped)
    found = np.bincount(owners[~is_common], minlength=call.rows) == 0
    return drop_where_null(pa.array(found), call)


def _find_common(call: FunctionCall) -> tuple[np.ndarray, Mask]:
    """The rows of the known items of the first lists, and whether the second lists have them."""
    parents, items = [], []
    for place in (0, 1):
        lists = call.read_column(place)
        values = to_comparable(lists.flatten())
        is_known = to_numpy(values.is_valid())
        parents.append(to_numpy(pc.list_parent_indices(lists)).astype(np.int64)[is_known])
        items.append(values.filter(pa.array(is_known)))
    kind = items[0].type if items[0].type == items[1].type else _common_type_of(*items)
    codes = encode_group_keys(pa.concat_arrays([each.cast(kind) for each in items]))
    count = len(items[0])
    size = int(codes.max(initial=0)) + 1
    keys = [parents[0] * size + codes[:count], parents[1] * size + codes[count:]]
    return parents[0], np.isin(keys[0], keys[1])


def _common_type_of(*values: pa.Array) -> pa.DataType:
    """The type of numbers of two types, all integers or all floats."""
    if pa.types.is_floating(values[0].type):
        return pa.float64()
    is_unsigned = any(pa.types.is_uint64(each.type) for each in values)
    # Integers of both kinds have no type of 64 bits in common: their digits do.
    return pa.utf8() if is_unsigned else pa.int64()


LIST_KERNELS: Final[dict[str, Kernel]] = {
    "size": _count_items,
    "item": _take_item,
    "has_any": _has_any,
    "has_all": _has_all,
}
