"""Functions of lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import to_comparable, to_numpy
from omnigraph.rows.group_aggregates import encode_group_keys
from omnigraph.rows.kernels.function_call import (
    I64_MAX,
    Argument,
    FunctionCall,
    Kernel,
    Mask,
    make_column,
)
from omnigraph.rows.kernels.text_kernels import cut_range, drop_where_null

_Places = npt.NDArray[np.int64]

# The items of a range: more are a mistake, and would fill the memory.
_RANGE_MAX: Final = 1_000_000


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
    swapped = replace(call, arguments=call.arguments[::-1])
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


class _Lists:
    """The items of lists, one list after the other; a null list has none."""

    def __init__(self, call: FunctionCall, place: int) -> None:
        lists = call.read_column(place)
        self.items: pa.Array = lists.flatten()
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        self.counts: _Places = to_numpy(lengths).astype(np.int64)

    @property
    def owners(self) -> _Places:
        """The row of each item."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def find_places(self, first: _Places, last: _Places) -> _Places:
        """The places of a range of the items of each row."""
        starts = np.cumsum(self.counts) - self.counts
        return _list_ranges(starts + first, last - first)


def _list_ranges(starts: _Places, lengths: _Places) -> _Places:
    """Integers from each start, as many as there are to be."""
    before = np.cumsum(lengths) - lengths
    found: _Places = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return found


def _build_lists(call: FunctionCall, items: pa.Array, counts: _Places) -> pa.Array:
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    kind = call.result.value_type
    found = pa.ListArray.from_arrays(offsets, items.cast(kind)).cast(call.result)
    return drop_where_null(found, call)


def slice_lists(call: FunctionCall) -> Argument:
    """The items from one place up to another; negative places count from the end."""
    lists = _Lists(call, 0)
    end = call.read_places(2) if len(call.arguments) > 2 else None
    first, last = cut_range(lists.counts, call.read_places(1), end)
    places = lists.find_places(first, last)
    return _build_lists(call, lists.items.take(pa.array(places)), last - first)


def _reverse(call: FunctionCall) -> Argument:
    lists = _Lists(call, 0)
    starts = np.cumsum(lists.counts) - lists.counts
    ends = np.repeat(2 * starts + lists.counts - 1, lists.counts)
    places = ends - np.arange(len(lists.items))
    return _build_lists(call, lists.items.take(pa.array(places)), lists.counts)


def _sort(call: FunctionCall) -> Argument:
    """The items from the least one; null is less than all others."""
    lists = _Lists(call, 0)
    items = to_comparable(lists.items)
    if pa.types.is_string(items.type):
        keys = to_numpy(pc.rank(items, sort_keys="ascending", tiebreaker="dense"))
    else:
        keys = to_numpy(items)
    places = np.lexsort((keys, to_numpy(items.is_valid()), lists.owners))
    return _build_lists(call, lists.items.take(pa.array(places)), lists.counts)


def _drop_repeated(call: FunctionCall) -> Argument:
    """The first of equal items."""
    lists = _Lists(call, 0)
    codes, owners = encode_group_keys(lists.items), lists.owners
    _, firsts = np.unique(owners * (int(codes.max(initial=0)) + 1) + codes, return_index=True)
    firsts.sort()
    counts = np.bincount(owners[firsts], minlength=call.rows)
    return _build_lists(call, lists.items.take(pa.array(firsts)), counts)


def join_lists(call: FunctionCall) -> Argument:
    """The items of one list, and then those of the other."""
    left, right = _Lists(call, 0), _Lists(call, 1)
    kind = call.result.value_type
    call.require_room(left.items.nbytes + right.items.nbytes)
    items = pa.concat_arrays([left.items.cast(kind), right.items.cast(kind)])
    places = np.argsort(np.concatenate([left.owners, right.owners]), kind="stable")
    return _build_lists(call, items.take(pa.array(places)), left.counts + right.counts)


def _count_up(call: FunctionCall) -> Argument:
    """The integers from one up to another; null for more than a million, or beyond I64."""
    numbers = [np.broadcast_to(call.read_numbers(place), call.rows) for place in (0, 1)]
    first, last = (np.broadcast_to(call.read_places(place), call.rows) for place in (0, 1))
    about = last.astype(np.float64) - first.astype(np.float64)
    is_fault = (about > 2 * _RANGE_MAX) | (last - first > _RANGE_MAX) & (about > 0)
    for each in numbers:
        is_fault |= each > I64_MAX if each.dtype == np.uint64 else False
    lengths = np.where(is_fault | (about <= 0), 0, last - first)
    nulls = call.find_nulls()
    lengths = lengths if nulls is None else np.where(nulls, 0, lengths)
    call.require_room(float(lengths.sum()) * 8)
    found = _build_lists(call, pa.array(_list_ranges(first, lengths)), lengths)
    return pc.if_else(pa.array(~is_fault), found, pa.scalar(None, found.type))


LIST_KERNELS: Final[dict[str, Kernel]] = {
    "size": _count_items,
    "item": _take_item,
    "has_any": _has_any,
    "has_all": _has_all,
    "reverse": _reverse,
    "sort": _sort,
    "unique": _drop_repeated,
    "range": _count_up,
}
