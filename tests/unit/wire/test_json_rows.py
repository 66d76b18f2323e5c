"""Rows as JSON bytes: those of Python values and of Arrow's columns are the same."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.execution.result import Result
from omnigraph.wire.json_rows import FEW_ROWS, encode_document, encode_read, encode_rows

_MOMENT = pa.timestamp("ms", "UTC")
_SINGLES = st.floats(width=32) | st.sampled_from([0.1, 1e-45, 3.4e38, 1e10, 2.0**-126])
_KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.utf8(): st.text(),
    pa.large_utf8(): st.text(),
    pa.bool_(): st.booleans(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats() | st.sampled_from([1e10, 1e15, 1e16, 1e-4, 9.9e-5, 3.0, -0.0]),
    pa.float32(): _SINGLES.map(lambda value: struct.unpack("f", struct.pack("f", value))[0]),
    pa.date32(): st.integers(-(2**31), 2**31 - 1),
    _MOMENT: st.integers(-(10**14), 10**15),
}
_STORED = {pa.date32(): pa.int32(), _MOMENT: pa.int64()}


def read(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(encode_rows(Result((), table)))
    return rows


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_many_rows_have_the_values_of_a_few(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | _KINDS[kind], min_size=1, max_size=4))
    stored = _STORED.get(kind, kind)
    column = pa.array(values, stored).view(kind)
    lists = pa.array([values, None, []], pa.list_(stored)).cast(pa.list_(kind))
    for found in (column, lists, pa.StructArray.from_arrays([column], ["inner"])):
        few = pa.table({"found": found})
        expected = Result((), few).to_json_rows()
        assert json.dumps(read(few)) == json.dumps(expected)
        times = FEW_ROWS // len(few) + 1
        assert json.dumps(read(pa.concat_tables([few] * times))) == json.dumps(expected * times)


def test_members_keep_their_order_and_their_names() -> None:
    names = ["b", "a", 'say "hi"', "ä\n"]
    columns = [["x"] * 30, range(30), [None, "y"] * 15, [1.5] * 30]
    table = pa.table(columns, names)
    assert [list(row) for row in read(table)] == [names] * 30
    assert read(table) == Result((), table).to_json_rows()


def test_a_part_of_a_column_is_encoded_alone() -> None:
    table = pa.table({"text": ['a "quoted" one', *["plain"] * 40]}).slice(1)
    assert read(table) == [{"text": "plain"}] * 40


def test_rows_without_columns_and_no_rows_are_arrays_of_objects() -> None:
    assert read(pa.table({"a": pa.array([], pa.int64())})) == []
    empty = pa.table({"a": range(3)}).select([])
    assert encode_rows(Result((), empty)) in (b"[]", b"[{},{},{}]")


def test_odd_numbers_are_texts_and_long_ones_are_numbers() -> None:
    table = pa.table({"f": [math.nan, math.inf, -math.inf] * 10})
    assert {row["f"] for row in read(table)} == {"NaN", "Infinity", "-Infinity"}
    assert encode_document({"n": 2**70}) == b'{"n":%d}' % 2**70


def test_a_read_is_one_document_with_its_rows() -> None:
    table = pa.table({"a": range(50)})
    found = orjson.loads(encode_read({"query_name": "q", "row_count": 50}, Result((), table)))
    assert found == {"query_name": "q", "row_count": 50, "rows": table.to_pylist()}
