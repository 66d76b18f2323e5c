"""The order of values: total, and the same however few rows are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import sort_key
from omnigraph.rows.row_order import Codes, RowIndices, ValuesKey, sort_row_indices
from unit.execution.items import INTEGERS, TEXTS


@given(
    st.lists(st.tuples(st.floats() | st.none(), st.sampled_from(TEXTS) | st.none()), max_size=12),
    st.booleans(),
    st.booleans(),
    st.integers(0, 14),
)
def test_a_limited_sort_is_the_beginning_of_the_whole(
    rows: list[tuple[float | None, str | None]], first: bool, second: bool, limit: int
) -> None:
    columns = [(pa.float64(), first), (pa.utf8(), second)]
    _assert_sorted(rows, columns, limit)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([each for each in INTEGERS if each >= 0]) | st.none(),
            st.sampled_from([each for each in INTEGERS if -(2**63) <= each < 2**63]),
            st.booleans() | st.none(),
        ),
        max_size=30,
    ),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.integers(0, 12),
)
def test_integers_of_any_width_are_sorted_together(
    rows: list[tuple[Any, ...]], are_descending: list[bool], limit: int
) -> None:
    kinds = [pa.uint64(), pa.int64(), pa.bool_()]
    _assert_sorted(rows, list(zip(kinds, are_descending, strict=True)), limit)


def _assert_sorted(
    rows: Sequence[tuple[Any, ...]], columns: list[tuple[pa.DataType, bool]], limit: int
) -> None:
    expected = list(range(len(rows)))
    for number, (_, is_descending) in reversed(list(enumerate(columns))):
        expected.sort(key=lambda place: sort_key(rows[place][number]), reverse=is_descending)
    keys = [
        ValuesKey(pa.array([row[number] for row in rows], kind), is_descending)
        for number, (kind, is_descending) in enumerate(columns)
    ]

    def shown(places: Sequence[int]) -> list[list[Any]]:
        return [[sort_key(value) for value in rows[place]] for place in places]

    for count in (None, limit):
        places = sort_row_indices(keys, len(rows), limit=count)
        assert shown(places.tolist()) == shown(expected)[:count]


@dataclass
class _Watched:
    """A key that remembers how many rows it was asked about."""

    values: Codes
    is_descending: bool = False
    asked: list[int] = field(default_factory=list)

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        found = self.values if places is None else self.values.take(places)
        self.asked.append(len(found))
        return [found]


@pytest.mark.parametrize("is_descending", [False, True])
def test_later_keys_are_asked_about_ties_among_the_first_rows_only(is_descending: bool) -> None:
    random = np.random.default_rng(1)
    first = _Watched(random.integers(0, 1000, 100_000), is_descending)
    second = _Watched(random.permutation(100_000))
    places = sort_row_indices([first, second], 100_000, limit=10)
    rows = list(zip(first.values.tolist(), second.values.tolist(), strict=True))
    sign = -1 if is_descending else 1
    expected = sorted(range(len(rows)), key=lambda place: (sign * rows[place][0], rows[place][1]))
    assert places.tolist() == expected[:10]
    assert first.asked == [100_000, 10]
    assert max(second.asked) < 200


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.randoms(use_true_random=False))
def test_codes_that_differ_in_their_last_bits_only_are_told_apart(
    last_bits: list[int], random: Random
) -> None:
    # The widest span there is: not all bits of a code fit beside the place of a row.
    wide = [0, 2**64 - 1, *(2**63 + 2**40 + each for each in last_bits)]
    random.shuffle(wide)
    second = [random.choice([-(2**63), 0, 1, 2**63 - 1]) for _ in wide]
    third = list(range(len(wide)))
    random.shuffle(third)
    keys = [
        ValuesKey(pa.array(wide, pa.uint64()), is_descending=True),
        ValuesKey(pa.array(second, pa.int64())),
        ValuesKey(pa.array(third, pa.int64())),
    ]
    expected = sorted(range(len(wide)), key=lambda row: (-wide[row], second[row], third[row]))
    assert sort_row_indices(keys, len(wide)).tolist() == expected
