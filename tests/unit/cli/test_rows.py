"""The five formats of rows."""

from __future__ import annotations

import json

import pytest

from omnigraph.cli.views.query_views import (
    CELL_WIDTH_MAX,
    ResultRows,
    format_csv,
    format_jsonl,
    format_kv,
    format_table,
)

ON_MAIN = {"branch": "main", "snapshot": None}


def rows(*values: dict[str, object], columns: tuple[str, ...] = ("b", "a")) -> ResultRows:
    return ResultRows("q", ON_MAIN, columns, values, "01H")


def test_a_table_has_a_header_padded_columns_and_a_rule() -> None:
    lines = list(format_table(rows({"a": 1, "b": "x"}, {"a": None, "b": [1, {"c": "d"}]})))
    assert lines == [
        "2 rows from branch main via q",
        "b             | a",
        "--------------+-----",
        "x             | 1",
        '[1,{"c":"d"}] | null',
    ]


def test_a_table_of_a_snapshot_names_it() -> None:
    found = ResultRows("q", {"branch": None, "snapshot": "01HX"}, ["a"], [], "01HX")
    assert list(format_table(found)) == ["0 rows from snapshot 01HX via q", "a", "-"]


def test_one_row_is_not_several() -> None:
    assert next(iter(format_table(rows({"a": 1})))) == "1 row from branch main via q"


def test_a_long_cell_of_a_table_is_cut() -> None:
    fitting, long = "x" * CELL_WIDTH_MAX, "x" * (CELL_WIDTH_MAX + 1)
    lines = list(format_table(rows({"a": 1, "b": fitting}, {"a": 1, "b": long})))
    assert lines[3].startswith(fitting + " | ")
    assert lines[4].startswith("x" * (CELL_WIDTH_MAX - 1) + "… | ")


def test_control_characters_of_a_value_never_reach_the_terminal() -> None:
    found = rows({"a": "one\ntwo", "b": "\x1b[31m"})
    for lines in (list(format_table(found)), list(format_kv(found))):
        assert "\x1b" not in "".join(lines)
        assert "one\\ntwo" in "".join(lines)


def test_wide_characters_are_aligned() -> None:
    lines = list(format_table(rows({"a": 1, "b": "日本"}, {"a": 2, "b": "abcd"})))
    assert lines[3:] == ["日本 | 1", "abcd | 2"]


def test_kv_has_a_line_for_every_value() -> None:
    lines = list(format_kv(rows({"a": 1, "b": "x"}, {"a": 2, "b": None})))
    assert lines[1:] == ["row 1", "b: x", "a: 1", "", "row 2", "b: null", "a: 2"]
    assert list(format_kv(rows())) == ["0 rows from branch main via q", "(no rows)"]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("plain", "plain"),
        ("a,b", '"a,b"'),
        ('say "x"', '"say ""x"""'),
        ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (["x", 1], '"[""x"",1]"'),
    ],
)
def test_csv_quotes_what_needs_it(value: object, cell: str) -> None:
    assert list(format_csv(rows({"b": value}, columns=("b",)))) == ["b", cell]


def test_jsonl_starts_with_a_line_about_the_rows() -> None:
    first, *others = (json.loads(line) for line in format_jsonl(rows({"b": "x", "a": 1})))
    assert first == {"kind": "metadata", "query_name": "q", "target": ON_MAIN, "row_count": 1}
    assert others == [{"b": "x", "a": 1}]


def test_a_document_without_columns_leaves_them_out() -> None:
    assert list(rows({"a": 1, "b": 2}).to_json()) == [
        "query_name",
        "target",
        "row_count",
        "columns",
        "rows",
        "graph_commit_id",
    ]
    assert "columns" not in rows(columns=()).to_json()
