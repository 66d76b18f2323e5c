"""Columns of results as JSON values: a few values and many have the same ones."""

from __future__ import annotations

import datetime
import json
import struct
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.result import Result
from omnigraph.rows.json_encoding import FEW_VALUES, encode_json_values

_MOMENT = pa.timestamp("ms", "UTC")
_SINGLES = st.floats(width=32) | st.sampled_from([0.1, 1e-45, 3.4e38, 2.0**-126])
_KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.utf8(): st.text(),
    pa.bool_(): st.booleans(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float32(): _SINGLES.map(lambda value: struct.unpack("f", struct.pack("f", value))[0]),
    pa.date32(): st.integers(-(2**31), 2**31 - 1),
    _MOMENT: st.integers(-(10**14), 10**15),
}


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@given(data=st.data())
def test_a_few_values_are_encoded_as_many_are(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | _KINDS[kind], min_size=1, max_size=3))
    stored = {pa.date32(): pa.int32(), _MOMENT: pa.int64()}.get(kind, kind)
    few = pa.array(values, stored).view(kind)
    many = pa.concat_arrays([few] * (FEW_VALUES + 1))
    expected = encode_json_values(many)[: len(few)]
    assert json.dumps(encode_json_values(few)) == json.dumps(expected)
    assert json.dumps(encode_json_values(pa.chunked_array([few[:1], few[1:]]))) == json.dumps(
        expected
    )
    lists = pa.array([values, None], pa.list_(stored)).cast(pa.list_(kind))
    assert json.dumps(encode_json_values(lists)) == json.dumps([expected, None])


def test_a_row_costs_little_more_than_its_python_values() -> None:
    row = pa.table(
        {
            "name": ["x"],
            "age": pa.array([3], pa.int64()),
            "score": [1.5],
            "day": [datetime.date(2020, 1, 1)],
            "at": pa.array([0], _MOMENT),
            "ratio": pa.array([0.1], pa.float32()),
        }
    )
    result = Result((), row)
    assert _cost(result.to_json_rows) < 6 * _cost(row.to_pylist)


def _cost(work: Callable[[], object]) -> float:
    best = 1.0
    for _ in range(20):
        started = time.thread_time()
        for _ in range(50):
            work()
        best = min(best, time.thread_time() - started)
    return best
