"""Sums are exact: rounded once, whatever the order and the size of the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import aggregate
from omnigraph.query.ast import AggregateFunction
from omnigraph.rows import exact_sums
from omnigraph.rows.exact_sums import sum_floats, sum_integers

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NEAR = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-60, 60))
HALVES = st.sampled_from([1.0, -1.0, 2.0**53, 2.0**53 + 2, 0.5, -0.5, 2.0**-60, 2.0**106, 0.0])


@given(st.lists(st.tuples(st.integers(0, 2), NEAR | HALVES), max_size=20))
def test_sums_of_floats_near_each_other_are_exact(rows: list[tuple[int, float]]) -> None:
    _assert_sums(rows)


@given(st.lists(st.tuples(st.integers(0, 2), FINITE), max_size=20))
def test_sums_of_any_floats_are_exact(rows: list[tuple[int, float]]) -> None:
    _assert_sums(rows)


def _assert_sums(rows: list[tuple[int, float]]) -> None:
    groups = np.array([group for group, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.float64)
    expected = [
        aggregate(AggregateFunction.SUM, [v for group, v in rows if group == each]) or 0.0
        for each in range(3)
    ]
    assert sum_floats(values, groups, 3).tolist() == expected


def test_infinite_and_absent_numbers_are_sums_too() -> None:
    values = np.array([math.inf, 1.0, math.inf, -math.inf, math.nan, 2.0, -math.inf, 3.0, 0.25])
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4])
    found = sum_floats(values, groups, 6).tolist()
    assert [str(each) for each in found] == ["inf", "nan", "nan", "-inf", "3.25", "0.0"]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12),
    st.lists(st.integers(0, 2**64 - 1), max_size=12),
)
def test_sums_of_integers_are_exact(signed: list[int], unsigned: list[int]) -> None:
    for numbers, kind in ((signed, np.int64), (unsigned, np.uint64)):
        groups = np.arange(len(numbers)) % 2
        found = sum_integers(np.array(numbers, kind), groups, 2).tolist()
        assert found == [float(sum(numbers[each::2])) for each in range(2)]


def test_many_groups_of_floats_are_summed_without_looking_at_each() -> None:
    def refuse(*_: object) -> np.ndarray:
        raise AssertionError("one by one")

    random = np.random.default_rng(3)
    values, groups = random.random(50_000) * 100, random.integers(0, 5_000, 50_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sums, "_sum_one_by_one", refuse)
        found = sum_floats(values, groups, 5_000)
    assert found.tolist() == exact_sums._sum_one_by_one(values, groups, 5_000, None).tolist()


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), NEAR | HALVES), max_size=20))
def test_means_of_floats_near_each_other_are_exact(rows: list[tuple[int, float]]) -> None:
    _assert_means(rows)


@given(st.lists(st.tuples(st.integers(0, 2), FINITE), max_size=20))
def test_means_of_any_floats_are_exact(rows: list[tuple[int, float]]) -> None:
    _assert_means(rows)


def _assert_means(rows: list[tuple[int, float]]) -> None:
    groups = np.array([group for group, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.float64)
    divisors = np.maximum(np.bincount(groups, minlength=3), 1)
    expected = [
        aggregate(AggregateFunction.AVG, [v for group, v in rows if group == each]) or 0.0
        for each in range(3)
    ]
    assert sum_floats(values, groups, 3, divisors).tolist() == expected


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12),
    st.lists(st.integers(0, 2**64 - 1), max_size=12),
    st.integers(1, 2**62),
)
def test_means_of_integers_are_exact(signed: list[int], unsigned: list[int], divisor: int) -> None:
    for numbers, kind in ((signed, np.int64), (unsigned, np.uint64)):
        groups = np.arange(len(numbers)) % 2
        for by in (divisor, divisor % 1_000 + 1):
            divisors = np.array([by, 3], np.int64)
            found = sum_integers(np.array(numbers, kind), groups, 2, divisors).tolist()
            assert found == [sum(numbers[0::2]) / by, sum(numbers[1::2]) / 3]


def test_the_mean_of_the_largest_floats_does_not_overflow() -> None:
    values = np.full(1_000, 1.7e308)
    groups, divisors = np.zeros(1_000, np.int64), np.array([1_000])
    assert sum_floats(values, groups, 1).tolist() == [math.inf]
    assert sum_floats(values, groups, 1, divisors).tolist() == [1.7e308]
    values[::2] *= -1
    assert sum_floats(values, groups, 1, divisors).tolist() == [0.0]
