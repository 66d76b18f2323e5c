"""Constant lists beside columns: together as one by one, and as long as nothing stops it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.ast import CompareOp
from omnigraph.rows import comparison
from omnigraph.rows.comparison import (
    Comparison,
    collect_matchable,
    fit_constant,
    is_in_constants,
)

KINDS: dict[str, pa.DataType] = {
    "i32": pa.int32(), "i64": pa.int64(), "u32": pa.uint32(), "u64": pa.uint64(),
    "f32": pa.float32(), "f64": pa.float64(), "date": pa.date32(), "time": pa.date64(),
}  # fmt: skip
integers = st.integers(-(2**63), 2**64) | st.integers(-3, 3)
numbers = integers | st.floats()


class StopError(Exception):
    """What a poll raises."""


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(integers) | st.lists(st.floats()) | st.lists(numbers | st.none()),
)
def test_items_that_are_converted_together_are_those_that_fit_one_by_one(
    name: str, items: list[Any]
) -> None:
    tests = [fit_constant(CompareOp.EQ, item, KINDS[name]) for item in items if item is not None]
    expected = [test.value for test in tests if isinstance(test, Comparison)]
    assert collect_matchable(tuple(items), KINDS[name]).to_pylist() == expected


def test_a_long_list_is_looked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_ITEMS_PER_POLL", 10)
    items = tuple(range(0, 2_000, 2))
    polls: list[None] = []
    wanted = collect_matchable(items, pa.int64(), lambda: polls.append(None))
    assert len(polls) == len(items) // 10
    values = pa.array([*range(2_002), None], pa.int64())
    found = is_in_constants(values, wanted, lambda: polls.append(None))
    assert len(polls) >= 2 * len(items) // 10 - 1
    assert found.to_pylist() == [value in items for value in range(2_002)] + [None]


def test_a_poll_stops_the_conversion_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_ITEMS_PER_POLL", 10)

    def stop() -> None:
        raise StopError

    with pytest.raises(StopError):
        collect_matchable(tuple(range(100)), pa.int64(), stop)
