"""The merge rules: one value of two that both sides changed, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import MergeRule
from omnigraph.writers.merge.located_rows import Mask

_Codes: TypeAlias = npt.NDArray[np.int64]

# Wide enough for sums and differences of 64-bit integers, however often merges added them.
_COUNT = pa.decimal128(28, 0)
_WEIGHT = pa.decimal128(4, 0)


def join_values(
    rule: MergeRule, base: pa.ChunkedArray, ours: pa.ChunkedArray, theirs: pa.ChunkedArray
) -> tuple[pa.Array, Mask]:
    """The joined values of some rows, and those that there are: a counter may overflow."""
    before, mine, other = (each.combine_chunks() for each in (base, ours, theirs))
    match rule:
        case MergeRule.SET:
            return _join_sets(before, mine, other), np.ones(len(mine), np.bool_)
        case MergeRule.COUNTER:
            return _add_up(before, mine, other)
        case MergeRule.MAX:
            found = pc.max_element_wise(mine, other, skip_nulls=True)
        case MergeRule.MIN:
            found = pc.min_element_wise(mine, other, skip_nulls=True)
        case _:
            assert_never(rule)
    return found, np.ones(len(mine), np.bool_)


def _add_up(base: pa.Array, ours: pa.Array, theirs: pa.Array) -> tuple[pa.Array, Mask]:
    """What both sides counted since the base, and where the type can hold it."""
    return add_weighed([(ours, 1), (theirs, 1), (base, -1)])


def add_weighed(counts: Sequence[tuple[pa.Array, int]]) -> tuple[pa.Array, Mask]:
    """The sum of some counts, each some times over, and where their type can hold it."""
    type_ = counts[0][0].type
    total = pa.array(np.zeros(len(counts[0][0]), np.int64)).cast(_COUNT)
    for values, weight in counts:
        known = pc.fill_null(values, pa.scalar(0, type_)).cast(_COUNT)
        weighed = pc.multiply(known, pa.scalar(Decimal(weight), _WEIGHT))
        total = pc.add(total, weighed).cast(_COUNT)
    limits = np.iinfo(type_.to_pandas_dtype())
    low, high = (
        pa.scalar(int(limit), pa.int64() if limit < 2**63 else pa.uint64()).cast(_COUNT)
        for limit in (limits.min, limits.max)
    )
    is_within = pc.and_(pc.greater_equal(total, low), pc.less_equal(total, high))
    fitting = pc.if_else(is_within, total, pa.scalar(None, _COUNT)).cast(type_)
    return fitting, is_within.to_numpy(zero_copy_only=False)


def _join_sets(base: pa.Array, ours: pa.Array, theirs: pa.Array) -> pa.Array:
    """Ours without what theirs removed, then what theirs added; each element once."""
    lists = [pc.fill_null(each, pa.scalar([], each.type)) for each in (base, ours, theirs)]
    rows = [pc.list_parent_indices(each).to_numpy() for each in lists]
    elements = pa.chunked_array([pc.list_flatten(each) for each in lists])
    before, mine, other = _number_pairs(rows, elements)
    kept = ~np.isin(mine, before) | np.isin(mine, other)
    added = ~np.isin(other, before) & ~np.isin(other, mine)
    pairs = np.concatenate([mine[kept], other[added]])
    owners = np.concatenate([rows[1][kept], rows[2][added]])
    start = len(before)
    places = np.concatenate(
        [np.flatnonzero(kept) + start, np.flatnonzero(added) + start + len(mine)]
    )
    _, firsts = np.unique(pairs, return_index=True)
    firsts = np.sort(firsts)
    order = firsts[np.argsort(owners[firsts], kind="stable")]
    sizes = np.bincount(owners[order], minlength=len(ours))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    values = elements.take(pa.array(places[order])).combine_chunks()
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=ours.type)


def _number_pairs(rows: list[_Codes], elements: pa.ChunkedArray) -> list[_Codes]:
    """A number for each element of each side, equal for equal elements of one row."""
    encoded = elements.combine_chunks().dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = np.concatenate(rows).astype(np.int64) * max(len(encoded.dictionary), 1) + codes
    return np.split(pairs, np.cumsum([len(each) for each in rows])[:-1])
