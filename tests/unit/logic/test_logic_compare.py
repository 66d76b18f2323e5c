"""Comparison of rows, shapes and plan facts."""

from __future__ import annotations

import pytest

from logic.answers import AnswerColumn, RowsAnswer
from logic.case import ShapeColumn
from logic.compare import canonical_row, plan_problem, rows_problem, shape_problem
from logic.generate import Json


def answer(*rows: dict[str, Json], columns: str = "a: I64") -> RowsAnswer:
    pairs = (column.split(": ") for column in columns.split(", "))
    return RowsAnswer(tuple(AnswerColumn(name, kind) for name, kind in pairs), rows)


def shape(text: str) -> tuple[ShapeColumn, ...]:
    pairs = (line.split(": ") for line in text.split(", "))
    return tuple(ShapeColumn(name, kind.rstrip("?"), kind.endswith("?")) for name, kind in pairs)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('{"a": 2}', '{"a": 2.0}'),
        ('{"a": 1e2}', '{"a": 100}'),
        ('{"a": 0.1}', '{"a": 0.10000000000000001}'),
        ('{"a": 0.3333333333333333}', '{"a": 0.333333333333}'),
        ('{"a": -0.0}', '{"a": 0}'),
        ('{"a": null, "b": 1}', '{"b": 1}'),
        ('{"a": {"x": null, "y": 1}}', '{"a": {"y": 1}}'),
        ('{"b": 1, "a": 2}', '{"a": 2, "b": 1}'),
        ('{"a": [1, 2.0]}', '{"a": [1.0, 2]}'),
        ('{"a": 1e300}', '{"a": 1.0e+300}'),
    ],
)
def test_rows_that_mean_the_same_are_equal(left: str, right: str) -> None:
    assert canonical_row(left) == canonical_row(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('{"a": 2}', '{"a": 3}'),
        ('{"a": 2}', '{"a": "2"}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 0}', '{"a": false}'),
        ('{"a": 0.1}', '{"a": 0.100000000001}'),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}'),
        ('{"a": [1, null]}', '{"a": [1]}'),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ('{"a": "null"}', '{"a": null}'),
        ('{"a": []}', '{"a": null}'),
        ('{"a": {}}', '{"a": null}'),
        ('{"a": "x"}', '{"a": "X"}'),
    ],
)
def test_rows_that_differ_are_not_equal(left: str, right: str) -> None:
    assert canonical_row(left) != canonical_row(right)


def test_instants_are_compared_in_datetime_columns_only() -> None:
    left, right = '{"a": "2024-01-01T00:00:00"}', '{"a": "2024-01-01T00:00:00.000Z"}'
    assert canonical_row(left, instants={"a"}) == canonical_row(right, instants={"a"})
    assert canonical_row(left) != canonical_row(right)


def test_unordered_rows_are_a_multiset() -> None:
    actual = answer({"a": 1}, {"a": 2}, {"a": 1})
    one, two = '{"a": 1}', '{"a": 2}'
    assert rows_problem([two, one, one], actual, is_ordered=False, shape=()) is None
    missing = rows_problem([two, two, one], actual, is_ordered=False, shape=())
    assert missing is not None
    assert 'missing  {"a": 2}' in missing
    assert 'extra    {"a": 1}' in missing


def test_ordered_rows_are_compared_by_position() -> None:
    actual = answer({"a": 1}, {"a": 2})
    assert rows_problem(['{"a": 1}', '{"a": 2}'], actual, is_ordered=True, shape=()) is None
    assert rows_problem(['{"a": 2}', '{"a": 1}'], actual, is_ordered=True, shape=()) is not None
    short = rows_problem(['{"a": 1}'], actual, is_ordered=True, shape=())
    assert short is not None
    assert "(no row)" in short


@pytest.mark.parametrize(
    ("expected", "word"),
    [
        ("a: I64, c: String", "columns"),
        ("a: I64, b: String, c: I64", "columns"),
        ("b: String, a: I64", "columns"),
        ("a: I32, b: String?", "'a' should be I32"),
        ("a: I64, b: String", "'b' is declared without '?'"),
    ],
)
def test_a_shape_is_checked_by_count_names_types_and_nulls(expected: str, word: str) -> None:
    actual = answer({"a": 1, "b": None}, columns="a: I64, b: String")
    found = shape_problem(shape(expected), actual)
    assert found is not None
    assert word in found


def test_a_nullable_column_need_not_hold_a_null() -> None:
    actual = answer({"a": 1, "b": "x"}, columns="a: I64, b: String")
    assert shape_problem(shape("a: I64?, b: String?"), actual) is None


def test_an_empty_shape_always_fails() -> None:
    assert shape_problem((), RowsAnswer((), ())) is not None


def test_only_known_plan_facts_are_checked() -> None:
    actual = RowsAnswer((AnswerColumn("a", "I64"),), (), tiebreak=("p.@id", "q.@id"))
    facts = ["scan P as $p: columns [x]", "result columns [a]", "sort tiebreak [p.@id, q.@id]"]
    assert plan_problem(facts, actual) is None
    assert plan_problem(["result columns [b]"], actual) is not None
    assert plan_problem(["sort tiebreak [q.@id, p.@id]"], actual) is not None
