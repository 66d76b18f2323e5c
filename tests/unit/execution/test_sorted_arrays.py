"""Sets of numbers and of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution import sorted_arrays
from omnigraph.execution.sorted_arrays import (
    count_occurrences,
    expand_runs,
    find_distinct,
    is_among,
    pack_pairs,
    sort_distinct,
    sort_distinct_pairs,
    unpack_pairs,
)
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices

# Dense numbers are told apart by a bitmap, scattered ones by a sort.
_NUMBERS = st.lists(st.integers(0, 40) | st.integers(0, 2**31 - 1), max_size=60)
_PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=60)


@given(_NUMBERS)
def test_numbers_are_told_apart(values: list[int]) -> None:
    given_ = np.array(values, np.int32)
    found, places = find_distinct(given_)
    assert found.tolist() == sorted(set(values))
    assert found.take(places).tolist() == values
    assert found.dtype == np.int32
    assert sort_distinct(given_).tolist() == sorted(set(values))
    assert count_occurrences(places, found).tolist() == [
        values.count(each) for each in sorted(set(values))
    ]


@given(_PAIRS)
def test_pairs_sort_by_place_and_then_by_number(pairs: list[tuple[int, int]]) -> None:
    places, ends = unpack_pairs(sort_distinct_pairs(pack_pairs(*_columns(pairs))))
    assert list(zip(places.tolist(), ends.tolist(), strict=True)) == sorted(set(pairs))


def test_a_pair_holds_the_largest_numbers() -> None:
    pairs = pack_pairs(np.array([0, 2**31 - 1]), np.array([2**31 - 1, 2**31 - 1], np.int32))
    places, ends = unpack_pairs(pairs)
    assert places.tolist() == [0, 2**31 - 1]
    assert ends.tolist() == [2**31 - 1, 2**31 - 1]


@pytest.mark.parametrize("marked_min", [0, 1_000])
def test_pairs_are_found_among_known_ones(marked_min: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_arrays, "_MARKED_MIN", marked_min)
    random = np.random.default_rng(7)
    for size in (0, 1, 5, 300):
        known = sort_distinct_pairs(random.integers(0, 500, size))
        asked = random.integers(0, 500, 400)
        expected = [each in set(known.tolist()) for each in asked.tolist()]
        assert is_among(asked, known).tolist() == expected


@given(st.lists(st.integers(0, 4), max_size=20))
def test_runs_say_whose_turn_it_is(counts: list[int]) -> None:
    of_run, within = expand_runs(np.array(counts, np.int64))
    expected = [(run, place) for run, count in enumerate(counts) for place in range(count)]
    assert list(zip(of_run.tolist(), within.tolist(), strict=True)) == expected


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[RowIndices, DenseIds]:
    return (
        np.array([place for place, _ in pairs], np.int64),
        np.array([end for _, end in pairs], np.int32),
    )
