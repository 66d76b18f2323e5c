"""Positions compare as rows are sorted, and come back from a document as they were."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.rows.row_order import ValuesKey, sort_row_indices
from omnigraph.rows.row_position import PositionError, compare_with, encode_keys

COLUMNS = {
    "text": pa.array(["b", None, "", "ä", "aa", "b", "\U0001f600", "z"]),
    "i64": pa.array([3, None, -(2**63), 2**63 - 1, 0, 3], pa.int64()),
    "u64": pa.array([2**64 - 1, None, 0, 2**63], pa.uint64()),
    "f64": pa.array([1.5, None, math.nan, -math.inf, math.inf, -0.0, 0.0, math.nan], pa.float64()),
    "f32": pa.array([1.5, None, math.nan, 0.1], pa.float32()),
    "bool": pa.array([True, None, False, True]),
    "date": pa.array([10, None, -5], pa.date32()),
    "datetime": pa.array([10, None, -5, 1], pa.date64()),
    "duration": pa.array([10, None, -5, 1], pa.duration("ms")),
    "list": pa.array([[1, 2], None, [], [1], [None], [1, None]], pa.list_(pa.int64())),
    "texts": pa.array([["b"], ["a", "b"], None, []], pa.list_(pa.string())),
    "nothing": pa.nulls(2, pa.string()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_row_compares_with_others_as_it_is_sorted(name: str) -> None:
    values = COLUMNS[name]
    order = sort_row_indices([ValuesKey(values)], len(values))
    for row in range(len(values)):
        (key,) = json.loads(json.dumps(encode_keys([values], row)))
        signs = compare_with(values, key)
        assert signs[row] == 0
        # Rising along the order: before, equal, after.
        assert all(one <= other for one, other in pairwise(signs.take(order)))
        backwards = [compare_with(values, encode_keys([values], other)[0])[row] for other in order]
        assert [-each for each in backwards] == list(signs.take(order))


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (pa.int64(), "1"),
        (pa.int64(), True),
        (pa.int64(), 1.0),
        (pa.int64(), 2**63),
        (pa.float64(), 1),
        (pa.float64(), "infinite"),
        (pa.bool_(), 1),
        (pa.string(), 1),
        (pa.string(), "\ud800"),
        (pa.date32(), "2026-01-01"),
        (pa.list_(pa.int64()), 1),
        (pa.list_(pa.int64()), ["x"]),
        (pa.string(), ["x"]),
    ],
)
def test_a_key_of_another_type_is_refused(kind: pa.DataType, key: object) -> None:
    with pytest.raises(PositionError):
        compare_with(pa.nulls(1, kind), key)  # type: ignore[arg-type]  # what a forged text has


def test_no_rows_compare_with_nothing() -> None:
    assert compare_with(pa.array([], pa.string()), "x").dtype == np.int8
