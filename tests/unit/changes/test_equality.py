from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.changes.row_comparison import compare_columns

NAN, ZERO = float("nan"), 0.0


@pytest.mark.parametrize(
    ("kind", "ours", "theirs", "expected"),
    [
        (pa.int32(), [1, 2, None, None, 5], [1, 3, None, 4, None], "01011"),
        (pa.utf8(), ["a", "", None], ["a", None, None], "010"),
        (pa.bool_(), [True, False, None], [True, True, False], "011"),
        (pa.large_binary(), [b"", b"x", None], [None, b"x", b""], "101"),
        (pa.float64(), [NAN, ZERO, 1.5, NAN], [NAN, -ZERO, 1.5, None], "0101"),
        (pa.float32(), [NAN, ZERO], [NAN, -ZERO], "01"),
        (pa.date32(), [1, 2], [1, 3], "01"),
        (pa.date64(), [1, 2], [1, 3], "01"),
        (
            pa.list_(pa.utf8()),
            [["a", "b"], ["a"], [], None, ["a", None], [None], None],
            [["a", "c"], ["a", "a"], None, None, ["a", None], ["x"], []],
            "1110011",
        ),
        (pa.list_(pa.float64()), [[NAN], [1.0, 2.0], []], [[NAN], [2.0, 1.0], []], "010"),
        (
            pa.list_(pa.float32(), 2),
            [[1, 2], [1, NAN], None, [0, 0], None],
            [[1, 3], [1, NAN], None, None, [0, 0]],
            "10011",
        ),
        (pa.utf8(), [], [], ""),
        (pa.list_(pa.float32(), 2), [], [], ""),
        (pa.list_(pa.int64()), [None, None], [None, None], "00"),
    ],
)
def test_rows_that_are_not_the_same_are_found(
    kind: pa.DataType, ours: list[Any], theirs: list[Any], expected: str
) -> None:
    left, right = pa.array(ours, kind), pa.array(theirs, kind)
    assert "".join(str(int(each)) for each in compare_columns(left, right)) == expected
    chunked = pa.chunked_array([left[:1], left[1:]])
    assert "".join(str(int(each)) for each in compare_columns(chunked, right)) == expected


def test_columns_of_converted_properties_are_compared_by_value() -> None:
    narrow = pa.array([1, 2, None, 4], pa.int32())
    wide = pa.array([1, 2**40, None, None], pa.int64())
    for left, right in ((narrow, wide), (wide, narrow)):
        assert compare_columns(left, right).tolist() == [False, True, False, True]


def test_columns_of_other_lengths_are_not_compared() -> None:
    with pytest.raises(AssertionError, match="1 and 2 rows"):
        compare_columns(pa.array([1]), pa.array([1, 2]))


def test_a_nan_is_a_nan_whatever_its_bits() -> None:
    for bits, kind, odd in (
        (np.int64, np.float64, 0x7FF8000000000001),
        (np.int32, np.float32, 0x7FC00001),
    ):
        left = pa.array(np.array([odd, 0], bits).view(kind))
        right = pa.array(np.array([np.nan, 1], kind))
        assert compare_columns(left, right).tolist() == [False, True]
