"""CSV files: what their texts become, where their records are, and which of them are no rows."""

from __future__ import annotations

import io
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.errors import LoadError
from omnigraph.writers.inputs import InputOptions, csv_records
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.row_sink import RowSink
from unit.writers.loaded_rows import accept, edge, node, read, rows_of

SCHEMA = accept(
    "node P { name: String @key  age: I32?  day: Date?  ok: Bool?  x: F64?  l: [I32]? }"
)


def refusal(path: Path) -> LoadError:
    with pytest.raises(LoadError) as failure:
        read(path, SCHEMA, type="P")
    return failure.value


def test_a_csv_file_has_texts_that_become_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'name,age,day,ok,x\nann,1,2024-01-02,true,1.5\n"b,\nob",,,FALSE,-2e3\n"",+7,5,,\n'
    )
    with pytest.raises(LoadError) as failure:
        read(path, SCHEMA, type="P")
    assert f"{path} line 5: P.day: invalid Date literal '5'" in str(failure.value)
    path.write_text(path.read_text().replace(",5,", ",1970-01-06,"))
    found = read(path, SCHEMA, type="P").types[node("P")]
    assert [tuple(row.values())[1:6] for row in rows_of(found.rows, found.shape)] == [
        (1, 19724, None, "ann", True),
        (None, None, None, "b,\nob", False),
        (7, 5, None, "", None),
    ]
    assert found.rows[found.shape.columns["x"]].to_pylist() == [1.5, -2000.0, None]


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("name,age\nann,x\n", "line 2: P.age: expects Int32, got 'x'"),
        ("name,age\nann,1\nbob,2147483648\n", "line 3: P.age: 2147483648 exceeds Int32 range"),
        ("name,age\nann,1.5\n", "line 2: P.age: expects Int32, got '1.5'"),
        ("name,x\nann,nan\n", "line 2: P.x: NaN is not a finite number, as F64 needs"),
        ("name,x\nann,1e999\n", "line 2: P.x: 1E+999 exceeds F64 range"),
        ("name,age\nann,1_000\n", "line 2: P.age: expects Int32, got '1_000'"),
        ("name,ok\nann,1\n", "line 2: P.ok"),
        ("name,l\nann,1\n", "line 2: P.l"),
        ('name,l\nann,"[1]"\nbob,"[1,x]"\n', "line 3: P.l"),
        ('name,l\nann,"[1], ""w"": [2]"\n', "line 2: P.l"),
        ('name,l\nann,"[3000000000]"\n', "line 2: P.l"),
        ("nme\nann\n", "unknown column 'nme'"),
        ("name,age\nann\n", "line 2: has 1 value, the header names 2 columns: ann"),
        ("name,age\nann,1\nbob,1,2\n", "line 3: has 3 values, the header names 2 columns: bob,1,2"),
        ('name,age\n\n"a\n\nb",1\r\n"""x,\n",2\ncyd\n', "line 8: has 1 value, the header"),
        ('name,age\n\n"a\n\nb",1\r\na"b,x\ncyd,2\n', "line 6: P.age: expects Int32, got 'x'"),
        ('name,age\n"ann\nb\nc"\n', "line 2: has 1 value on 3 lines, the header names 2"),
        ("name\nann,1\n", "line 2: has 2 values, the header names 1 column: ann,1"),
        ("name,age\rann,x\rbob\r", "line 2: P.age"),
        ("\n\n", "Empty CSV file"),
        ("", "Empty CSV file"),
        ('"name,age\nann,1\n', "line 1: a value opens with a quote that is never closed"),
    ],
)
def test_a_csv_file_is_refused_with_its_line(tmp_path: Path, text: str, fragment: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert fragment in str(refusal(tmp_path / "a.csv"))


@pytest.mark.parametrize("column", ["name", "age", "ok", "day", "x"])
def test_a_csv_text_that_is_no_utf8_is_refused_with_its_line(tmp_path: Path, column: str) -> None:
    schema = accept("node P { name: String?  age: I32?  day: Date?  ok: Bool?  x: F64? }")
    (tmp_path / "a.csv").write_bytes(f"{column}\n\n1\n".encode() + b"J\xf6rg\n")
    with pytest.raises(LoadError) as failure:
        read(tmp_path / "a.csv", schema, type="P")
    found = [str(each) for each in failure.value.violations]
    assert f"{tmp_path}/a.csv line 4: P.{column}: invalid UTF-8 at byte 2" in found
    assert failure.value.hint == "save the text as UTF-8"


def test_a_csv_header_that_is_no_utf8_is_refused_as_such(tmp_path: Path) -> None:
    for header in (b"n\xf6me\nann\n", "name\nann\n".encode("utf-16")):
        (tmp_path / "a.csv").write_bytes(header)
        failure = refusal(tmp_path / "a.csv")
        assert str(failure).startswith(f"{tmp_path}/a.csv: the header is not UTF-8")


def test_a_rule_is_told_with_the_line_of_a_csv_file_and_the_row_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('name\n"ann\nb"\ncyd\n')
    pq.write_table(pa.table({"name": ["dov"]}), tmp_path / "b.parquet")
    origins = read(tmp_path, SCHEMA, type="P").types[node("P")].origins
    places = [origins.location_of(row) for row in range(3)]
    assert places == [
        f"{tmp_path}/{place}" for place in ("a.csv line 2", "a.csv line 4", "b.parquet row 1")
    ]


def test_a_csv_file_may_hold_edges(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("from,to,id\nann,bob,e1\nbob,ann,\n")
    schema = "node P { name: String @key }  edge Knows: P -> P"
    found = read(tmp_path / "e.csv", schema, type="Knows").types[edge("Knows")]
    assert found.rows.to_pydict() == {
        "__id": ["e1", None],
        "__src": ["ann", "bob"],
        "__dst": ["bob", "ann"],
    }


# ---- records that are no rows ----


@pytest.mark.parametrize("size", [1, 10, 1_000_000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_record_that_is_no_row_is_told_with_all_other_mistakes(
    tmp_path: Path, size: int, line_end: str
) -> None:
    lines = ["\ufeffname,age", "ann", "bob,2", "", "cyd,x", "dov,1,2,3", '"e\nf",', "gus,y", ","]
    (tmp_path / "a.csv").write_bytes(line_end.join(lines).encode())
    with patch.object(csv_records, "BLOCK_BYTES", size):
        failure = refusal(tmp_path / "a.csv")
    assert [str(each) for each in failure.violations] == [
        f"{tmp_path}/a.csv {told}"
        for told in (
            "line 2: has 1 value, the header names 2 columns: ann",
            "line 5: P.age: expects Int32, got 'x'",
            "line 6: has 4 values, the header names 2 columns: dov,1,2,3",
            "line 9: P.age: expects Int32, got 'y'",
            "line 10: non-nullable property 'name' has null or invalid values (P)",
        )
    ]
    assert (failure.count, failure.record) == (5, 2)
    assert "write an empty value for null" in str(failure.hint)


def test_a_file_of_nothing_but_short_records_is_told_in_few_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,age\n" + "ann\n" * 100_000)
    failure = refusal(tmp_path / "a.csv")
    assert (failure.count, len(failure.violations)) == (100_000, 20)


@pytest.mark.parametrize("size", [3, 1_000_000])
@pytest.mark.parametrize("last", ['cyd,"', '"cyd,3', 'cyd,"3\ndov,4\n', 'c"yd,"3', '5"\n6",""",'])
def test_a_quote_that_is_never_closed_is_told_where_its_record_starts(
    tmp_path: Path, size: int, last: str
) -> None:
    (tmp_path / "a.csv").write_text(f"name,age\nann,1\nbob\n{last}")
    with patch.object(csv_records, "BLOCK_BYTES", size):
        failure = refusal(tmp_path / "a.csv")
    found = [str(each).partition(".csv ")[2] for each in failure.violations]
    line = 5 if last.startswith("5") else 4
    closed = f"line {line}: a value opens with a quote that is never closed"
    assert found[0] == "line 3: has 1 value, the header names 2 columns: bob"
    assert any(each.startswith(closed) for each in found)


def test_a_record_without_an_end_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,age\nann,1\n" + 'bob,"2\n' + "cyd,3\n" * 100)
    with (
        patch.object(csv_records, "BLOCK_BYTES", 10),
        patch.object(csv_records, "RECORD_BYTES_MAX", 100),
    ):
        failure = refusal(tmp_path / "a.csv")
    assert "line 3: a record starts here that does not end within 100 bytes" in str(failure)


def arrow_records(data: bytes) -> list[tuple[int, str]]:
    """The records as Arrow sees them: none has as many values as there are columns."""
    found: list[tuple[int, str]] = []

    def note(row: pcsv.InvalidRow) -> str:
        found.append((row.actual_columns, row.text))
        return "skip"

    names = [f"c{number}" for number in range(40)]
    pcsv.read_csv(
        pa.py_buffer(data),
        read_options=pcsv.ReadOptions(column_names=names, use_threads=False),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
    )
    return found


@pytest.mark.slow
@given(st.text('ab"",,\n\n\r', max_size=24), st.sampled_from([1, 2, 3, 5, 1000]))
@example('5" x,"6"\n7,"\n"', 1)
@example('a\r\n"""\r",b\n"', 2)
def test_records_are_where_arrow_sees_them(text: str, size: int) -> None:
    data = text.encode()
    reading = RowSink(SCHEMA, InputOptions())
    with patch.object(csv_records, "BLOCK_BYTES", size):
        records = CsvRecords(io.BytesIO(b"head\n" + data), reading.build_failure)
        blocks = list(records.iter_blocks())
    found = [
        (
            int(block.frame.widths[record]),
            block.format_record(record),
            int(block.frame.lines[record]),
        )
        for block in blocks
        for record in range(len(block.frame.lines))
    ]
    expected = arrow_records(data) if text.strip("\r\n") else []
    if blocks and blocks[-1].is_open:
        found, expected = found[:-1], expected[: len(found) - 1]
    assert [record[:2] for record in found] == expected
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for _, told, line in found:
        assert told.replace("\r", "\n").startswith(lines[line - 2])
