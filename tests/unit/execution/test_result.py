"""Results in every form."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ExecutionError
from omnigraph.execution.result import HTML_ROWS_MAX, TEXT_ROWS_MAX, Result
from omnigraph.query.logical_plan import ResultColumn
from omnigraph.query.typed_tree import F64, NodeObject
from omnigraph.rows.json_encoding import encode_json_values
from omnigraph.schema.property_types import Scalar, make_scalar_type
from omnigraph.schema.property_values import (
    DATE_MAX,
    DATETIME_MAX,
    DATETIME_MIN,
    compute_shortest_f32,
    format_datetime,
)

I64 = make_scalar_type(Scalar.I64)
COLUMNS = (
    ResultColumn("n", I64),
    ResultColumn("at", make_scalar_type(Scalar.DATETIME, is_nullable=True)),
    ResultColumn("node", NodeObject("Person")),
)
ROWS = pa.table(
    {
        "n": pa.array([2**63 - 1, 2], pa.int64()),
        "at": pa.array([1_600_000_000_123, None], pa.timestamp("ms", "UTC")),
        "node": pa.array([{"@id": "ada", "day": 0}, {"@id": "<b>", "day": None}],
                         pa.struct([("@id", pa.utf8()), ("day", pa.date32())])),
    }
)  # fmt: skip
RESULT = Result(COLUMNS, ROWS)


def test_a_result_is_arrow_inside() -> None:
    assert RESULT.to_arrow() is ROWS
    assert RESULT.columns == COLUMNS
    assert len(RESULT) == 2
    assert pa.table(RESULT).equals(ROWS)


def test_rows_are_dictionaries_of_python_values() -> None:
    first = {
        "n": 2**63 - 1,
        "at": datetime(2020, 9, 13, 12, 26, 40, 123_000, UTC),
        "node": {"@id": "ada", "day": date(1970, 1, 1)},
    }
    assert RESULT.to_pylist()[0] == first
    assert list(RESULT) == RESULT.to_pylist()


def test_frames_have_the_same_rows() -> None:
    frame = RESULT.to_pandas()
    assert type(frame).__module__.startswith("pandas.")
    assert list(frame["n"]) == [2**63 - 1, 2]
    other = RESULT.to_polars()
    assert isinstance(other, pl.DataFrame)
    assert other["n"].to_list() == [2**63 - 1, 2]


def test_json_rows_have_explicit_nulls_and_keep_the_order_of_columns() -> None:
    rows = RESULT.to_json_rows()
    assert json.dumps(rows) == json.dumps(
        [
            {
                "n": 2**63 - 1,
                "at": "2020-09-13T12:26:40.123Z",
                "node": {"@id": "ada", "day": "1970-01-01"},
            },
            {"n": 2, "at": None, "node": {"@id": "<b>", "day": None}},
        ]
    )


def test_numbers_that_json_has_no_word_for_are_texts() -> None:
    for kind in (pa.float32(), pa.float64()):
        values = pa.array([math.nan, math.inf, -math.inf, None, -0.0, 0.5], kind)
        assert encode_json_values(values) == ["NaN", "Infinity", "-Infinity", None, -0.0, 0.5]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_a_32_bit_float_has_its_shortest_digits(values: list[float]) -> None:
    found = encode_json_values(pa.array(values, pa.float32()))
    assert list(map(repr, found)) == [repr(compute_shortest_f32(value)) for value in values]


@given(st.lists(st.integers(DATETIME_MIN, DATETIME_MAX) | st.none()))
def test_a_datetime_is_a_text_with_milliseconds(values: list[int | None]) -> None:
    found = encode_json_values(pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC")))
    assert found == [None if value is None else format_datetime(value) for value in values]


def test_lists_and_objects_nest_also_where_they_are_slices() -> None:
    lists = pa.array([[0.5], None, [], [1.5, None]], pa.list_(pa.float32()))
    assert encode_json_values(lists) == [[0.5], None, [], [1.5, None]]
    assert encode_json_values(lists.slice(1, 3)) == [None, [], [1.5, None]]
    vectors = pa.array([[0.5, 1.5], None, [2.5, 3.5]], pa.list_(pa.float32(), 2))
    assert encode_json_values(vectors.slice(1)) == [None, [2.5, 3.5]]
    structs = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())]))
    assert encode_json_values(structs.slice(1)) == [None, {"a": None}]
    assert encode_json_values(pa.chunked_array([lists, lists.slice(3)])) == [
        [0.5], None, [], [1.5, None], [1.5, None],
    ]  # fmt: skip


def test_a_date_beyond_pythons_calendar_is_json_and_an_error_as_python() -> None:
    days = pa.array([DATE_MAX, 0], pa.int32()).cast(pa.date32())
    result = Result((ResultColumn("d", make_scalar_type(Scalar.DATE)),), pa.table({"d": days}))
    assert [row["d"] for row in result.to_json_rows()] == ["+5881580-07-11", "1970-01-01"]
    with pytest.raises(ExecutionError, match="Date") as failure:
        result.to_pylist()
    assert "to_json_rows" in str(failure.value.hint)


def test_a_notebook_sees_escaped_cells_and_the_count_of_all_rows() -> None:
    shown = RESULT._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<th>n</th>" in shown
    many = Result((ResultColumn("n", F64),), pa.table({"n": [0.5] * (HTML_ROWS_MAX + 7)}))
    assert many._repr_html_().count("<tr>") == HTML_ROWS_MAX + 1
    assert f"{HTML_ROWS_MAX + 7} rows" in many._repr_html_()


def test_a_shell_sees_the_first_rows_as_a_table() -> None:
    names = pa.table({"n": [1, None], "text": ["x" * 50, "a\nb"]})
    columns = (ResultColumn("n", I64), ResultColumn("text", make_scalar_type(Scalar.STRING)))
    assert repr(Result(columns, names)).splitlines() == [
        "n  text",
        "-  ----------------------------------------",
        f"1  {'x' * 39}…",
        r"   a\nb",
        "(2 rows)",
    ]
    many = Result((ResultColumn("n", F64),), pa.table({"n": [0.5] * (TEXT_ROWS_MAX + 7)}))
    assert repr(many).splitlines()[-1] == f"({TEXT_ROWS_MAX + 7} rows, 7 more not shown)"
    assert len(repr(many).splitlines()) == TEXT_ROWS_MAX + 3
    assert repr(Result((), pa.table({}))) == "(0 rows)"


def test_long_vectors_are_abbreviated_in_shells_and_notebooks() -> None:
    vectors = Result((ResultColumn("v", F64),), pa.table({"v": [[0.5] * 300]}))
    assert "[0.5, 0.5, 0.5, … 300 values]" in vectors._repr_html_()
    assert "[0.5, 0.5, 0.5, … 300 values]" in repr(vectors)
    assert len(vectors._repr_html_()) < 700


def test_integers_and_booleans_with_nulls_keep_their_type_in_pandas() -> None:
    rows = pa.table(
        {
            "i": pa.array([2**53 + 1, None], pa.int64()),
            "u": pa.array([1, None], pa.uint32()),
            "b": pa.array([True, None]),
            "n": pa.array([1, 2], pa.int32()),
        }
    )
    frame = Result(tuple(ResultColumn(name, I64) for name in rows.column_names), rows).to_pandas()
    assert list(map(str, frame.dtypes)) == ["Int64", "UInt32", "boolean", "int32"]
    assert frame["i"][0] == 2**53 + 1
    assert frame["i"].isna().tolist() == [False, True]
