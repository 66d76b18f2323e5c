from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.schema.catalog import MergeRule
from omnigraph.writers.merge.joined_values import join_values

LIST = pa.list_(pa.field("item", pa.utf8()))
FLOATS = pa.list_(pa.field("item", pa.float64()))


def joined(rule: MergeRule, type_: pa.DataType, *rows: tuple[Any, Any, Any]) -> list[Any]:
    """The values of rows of base, ours and theirs; an overflow is a text."""
    sides = [pa.chunked_array([pa.array(side, type_)]) for side in zip(*rows, strict=True)]
    values, is_there = join_values(rule, *sides)
    assert values.type == type_
    found = zip(values.to_pylist(), is_there.tolist(), strict=True)
    return [value if there else "overflow" for value, there in found]


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (pa.int32(), -(2**31), 2**31 - 1),
        (pa.uint32(), 0, 2**32 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.uint64(), 0, 2**64 - 1),
    ],
)
def test_a_counter_adds_up_exactly_within_its_type(type_: pa.DataType, low: int, high: int) -> None:
    rows = [(1, 3, 4), (None, 2, 1), (5, None, 7), (high, high - 1, high - 2), (low, high, low + 1)]
    assert joined(MergeRule.COUNTER, type_, *rows) == [6, 3, 2, high - 3, "overflow"]
    assert joined(MergeRule.COUNTER, type_, (high, low, low + 1)) == ["overflow"]


def test_a_set_keeps_additions_loses_removals_and_repeats_nothing() -> None:
    rows = [
        (["a", "b"], ["b", "c"], ["a", "b", "d"]),
        (None, ["q", "q"], ["r", "q"]),
        (["a"], None, ["a", "z"]),
        (["x"], [], ["x", "y"]),
        ([], ["n", None], [None, "m"]),
        (["k"], ["k", "k", "l"], []),
    ]
    assert joined(MergeRule.SET, LIST, *rows) == [
        ["b", "c", "d"],
        ["q", "r"],
        ["z"],
        ["y"],
        ["n", None, "m"],
        ["l"],
    ]
    assert joined(MergeRule.SET, FLOATS, ([1.5], [2.5, 1.5], [1.5, 3.5])) == [[2.5, 1.5, 3.5]]


def test_the_extreme_wins_and_null_loses() -> None:
    rows = [("b", "a", "c"), (None, "z", "é"), ("x", None, "a"), ("x", "b", None)]
    assert joined(MergeRule.MAX, pa.utf8(), *rows) == ["c", "é", "a", "b"]
    assert joined(MergeRule.MIN, pa.utf8(), *rows) == ["a", "z", "a", "b"]
    assert joined(MergeRule.MAX, pa.float64(), (0.0, -1.5, 2.5)) == [2.5]
