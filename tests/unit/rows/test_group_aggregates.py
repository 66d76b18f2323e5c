"""Groups and their aggregates, where a table would only be in the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import aggregate, sort_key
from omnigraph.query.ast import AggregateFunction
from omnigraph.rows import group_aggregates as groups_module
from omnigraph.rows.group_aggregates import (
    aggregate_groups,
    group_by_codes,
    group_rows,
    make_single_group,
)
from unit.execution.items import FLOATS, INTEGERS, ODD, TEXTS


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(1, 4))
def test_sums_of_floats_are_rounded_once(values: list[float], count: int) -> None:
    _assert_sums(values, pa.float64(), count)


@given(st.lists(st.sampled_from([*FLOATS, 1e308, -1e308, 1.7e308]), min_size=1, max_size=8))
def test_sums_of_floats_may_pass_beyond_the_largest(values: list[float]) -> None:
    _assert_sums(values, pa.float64(), 1)


@given(st.lists(st.sampled_from(INTEGERS), min_size=1, max_size=12), st.integers(1, 3))
def test_sums_of_integers_are_rounded_once(values: list[int], count: int) -> None:
    _assert_sums([value for value in values if value >= 0] or [0], pa.uint64(), count)
    _assert_sums([value for value in values if value < 2**63] or [0], pa.int64(), count)


def _assert_sums(values: list[Any], kind: pa.DataType, count: int) -> None:
    keys = [place % count for place in range(len(values))]
    groups = group_rows([pa.array(keys)], len(values))
    members = [values[key::count] for key in sorted(set(keys))]
    for function in (AggregateFunction.SUM, AggregateFunction.AVG):
        found = aggregate_groups(function, pa.array(values, kind), groups).to_pylist()
        assert found == [aggregate(function, each) for each in members]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(ODD) | st.none()), max_size=20),
    st.sampled_from([AggregateFunction.MIN, AggregateFunction.MAX]),
)
def test_extremes_are_those_of_the_model(
    rows: list[tuple[int, float | None]], function: AggregateFunction
) -> None:
    groups = group_rows([pa.array([key for key, _ in rows], pa.int64())], len(rows))
    values = pa.array([value for _, value in rows], pa.float64())
    found = aggregate_groups(function, values, groups)
    for place, first in enumerate(groups.first_rows):
        members = [value for key, value in rows if key == rows[first][0]]
        assert sort_key(found[place].as_py()) == sort_key(aggregate(function, members))


def test_nan_is_the_greatest_number_of_a_group_and_one_key() -> None:
    values = pa.array([math.nan, 1.0, None, -math.nan, -0.0, 0.0], pa.float32())
    groups = make_single_group(6)
    assert math.isnan(aggregate_groups(AggregateFunction.MAX, values, groups)[0].as_py())
    assert aggregate_groups(AggregateFunction.MIN, values, groups).to_pylist() == [0.0]
    assert group_rows([values], 6).of_row.tolist() == [0, 1, 2, 0, 3, 3]


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(TEXTS) | st.none(), st.integers(0, 2)),
        max_size=30,
    ),
    st.sampled_from([1, 50, 2**20]),
)
def test_rows_with_equal_keys_are_together_however_their_codes_are_packed(
    rows: list[tuple[int, str | None, int]], room: int
) -> None:
    columns = [pa.array([row[place] for row in rows]) for place in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_module, "RADIX_MAX", room)
        patch.setattr(groups_module, "RADIX_ROWS", 1)
        groups = group_rows(columns, len(rows))
    _assert_grouped(rows, groups)


def test_many_large_codes_are_told_apart() -> None:
    random = np.random.default_rng(5)
    keys = [random.integers(0, 2**40, 500) for _ in range(4)]
    keys = [np.concatenate([key, key[:100]]) for key in keys]
    groups = group_by_codes(keys, 600)
    assert groups.count == 500
    _assert_grouped(list(zip(*(key.tolist() for key in keys), strict=True)), groups)


def _assert_grouped(rows: Sequence[tuple[Any, ...]], groups: groups_module.Groups) -> None:
    assert groups.count == len(set(rows))
    assert [rows[groups.first_rows[each]] for each in groups.of_row] == list(rows)
    firsts = [rows.index(rows[first]) for first in groups.first_rows]
    assert firsts == groups.first_rows.tolist()


def test_both_zeros_have_one_extreme() -> None:
    found = aggregate_groups(
        AggregateFunction.MIN, pa.array([-0.0, 0.0]), make_single_group(2)
    ).to_pylist()
    assert [math.copysign(1, each) for each in found] == [1]
