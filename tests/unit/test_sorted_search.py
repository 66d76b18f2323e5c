from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.sorted_search import are_among, count_among, drop_repeated, find_positions

NUMBERS = st.lists(st.integers(0, 9), max_size=12)


@given(NUMBERS, NUMBERS)
def test_values_are_found_where_python_finds_them(values: list[int], known: list[int]) -> None:
    asked, ordered = np.array(values, np.int64), np.sort(np.array(known, np.int64))
    positions, is_found = find_positions(asked, ordered)
    assert is_found.tolist() == [each in known for each in values]
    assert are_among(asked, ordered).tolist() == is_found.tolist()
    assert ordered.take(positions[is_found]).tolist() == asked[is_found].tolist()
    assert count_among(asked, ordered).tolist() == [known.count(each) for each in values]


@given(NUMBERS)
def test_repeated_values_are_dropped(values: list[int]) -> None:
    ordered = np.sort(np.array(values, np.uint64))
    assert drop_repeated(ordered).tolist() == sorted(set(values))
