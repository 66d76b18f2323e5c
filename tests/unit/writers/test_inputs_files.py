"""Paths, folders, patterns, compression, CSV, and files that are broken in every way."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadError, ResourceLimit
from omnigraph.writers.inputs import (
    Dialect,
    InputOptions,
    Text,
    csv_lines,
    lines,
    read_input,
    reading,
)
from unit.writers.loaded_rows import DIALECTS, accept, edge, node, read, rows_of

SCHEMA = accept(
    "node P { name: String @key  age: I32?  day: Date?  ok: Bool?  x: F64?  l: [I32]? }"
)


def jsonl(*names: str) -> str:
    return "".join(f'{{"type":"P","data":{{"name":"{name}"}}}}\n' for name in names)


def names_of(source: Path | str, *, type_: str | None = None) -> list[str]:
    """The names of people; a `str` is a path here."""
    path = Path(source)
    found = read(path, SCHEMA, type=type_).types[node("P")]
    return [row["name"] for row in rows_of(found.rows, found.shape)]


def refusal(path: Path, *, type_: str | None = None) -> LoadError:
    with pytest.raises(LoadError) as failure:
        read(path, SCHEMA, type=type_)
    return failure.value


# ---- what a path may be ----


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "A.JSONL", "part.0.jsonl"])
def test_a_file_of_records_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(jsonl("ann", "bob"))
    assert names_of(tmp_path / name) == ["ann", "bob"]


def test_a_text_that_is_given_as_a_source_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(jsonl("ann"))
    found = read_input(str(tmp_path / "a.jsonl"), SCHEMA, InputOptions())
    assert found.types[node("P")].rows.num_rows == 1


def test_files_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(jsonl("ann").encode()))
    with pa.CompressedOutputStream(str(tmp_path / "b.jsonl.zst"), "zstd") as stream:
        stream.write(jsonl("bob").encode())
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"name\ncyd\n"))
    assert names_of(tmp_path / "a.jsonl.gz") == ["ann"]
    assert names_of(tmp_path / "b.jsonl.zst") == ["bob"]
    assert names_of(tmp_path / "c.csv.gz", type_="P") == ["cyd"]


def test_a_folder_and_a_pattern_stand_for_part_files_in_the_order_of_names(tmp_path: Path) -> None:
    for name, person in (("part-1", "bob"), ("part-0", "ann"), ("other", "cyd")):
        pq.write_table(pa.table({"name": [person]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").touch()
    assert names_of(tmp_path, type_="P") == ["cyd", "ann", "bob"]
    assert names_of(tmp_path / "part-*.parquet", type_="P") == ["ann", "bob"]
    assert names_of(tmp_path / "*", type_="P") == ["cyd", "ann", "bob"]


def test_a_problem_in_a_part_file_names_that_file_and_its_own_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"name": ["a", "b"], "age": [1, 2]}), tmp_path / "p0.parquet")
    pq.write_table(pa.table({"name": ["c", "d"], "age": [1, 2**40]}), tmp_path / "p1.parquet")
    assert f"{tmp_path}/p1.parquet row 2: P.age: 1099511627776 exceeds" in str(
        refusal(tmp_path, type_="P")
    )


def test_rows_of_several_files_know_where_they_came_from(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(jsonl("ann") + "\n" + jsonl("bob"))
    (tmp_path / "b.jsonl").write_text(jsonl("cyd"))
    origins = read(tmp_path, SCHEMA).types[node("P")].origins
    places = [origins.place(row) for row in range(3)]
    assert places == [
        f"{tmp_path}/a.jsonl line 1",
        f"{tmp_path}/a.jsonl line 3",
        f"{tmp_path}/b.jsonl line 1",
    ]
    assert origins.taken(pa.array([2])).place(0) == f"{tmp_path}/b.jsonl line 1"


@pytest.mark.parametrize(
    ("name", "fragment"),
    [("missing.jsonl", "no such file"), ("*.jsonl", "no file matches the pattern")],
)
def test_a_path_without_files_is_refused(tmp_path: Path, name: str, fragment: str) -> None:
    failure = refusal(tmp_path / name)
    assert str(failure) == f"{tmp_path}/{name}: {fragment}"
    assert failure.record == 0


def test_an_empty_folder_and_an_unknown_kind_of_file_are_refused(tmp_path: Path) -> None:
    assert "no files are in the folder" in str(refusal(tmp_path))
    (tmp_path / "a.xlsx").touch()
    assert "not a kind of file that can be loaded: .jsonl" in str(refusal(tmp_path))
    assert "not a kind of file" in str(refusal(tmp_path / "a.xlsx"))


def test_a_file_that_cannot_be_decoded_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.jsonl.gz", "a.csv"):
        (tmp_path / name).write_bytes(b"\xff\xfe garbage \xff")
        failure = refusal(tmp_path / name, type_=None if name == "a.jsonl.gz" else "P")
        assert str(failure).startswith(f"{tmp_path}/{name}")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(jsonl("a" * 5000).encode())[:-20])
    refusal(tmp_path / "cut.jsonl.gz")


def test_records_name_their_types_and_tables_do_not(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(jsonl("ann"))
    assert "leave the type out" in str(refusal(tmp_path / "a.jsonl", type_="P"))
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "a.parquet")
    assert "give the type" in str(refusal(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (jsonl("ann") * 20, "Text("),
        ("[" + jsonl("ann") * 20, "Text("),
        ('{"type":"P"}', "Text("),
        ("x" * 5000, None),
        ("a\0b.jsonl", None),
    ],
)
def test_a_text_that_cannot_be_a_path_is_refused_with_what_to_do(
    text: str, hint: str | None
) -> None:
    with pytest.raises(LoadError) as failure:
        read_input(text, SCHEMA, InputOptions())
    assert (failure.value.hint is None) == (hint is None)
    assert hint is None or hint in str(failure.value.hint)
    assert "\n" not in str(failure.value)


def test_whatever_the_system_says_about_a_path_is_an_error_with_its_name(tmp_path: Path) -> None:
    for method in ("is_file", "is_dir", "iterdir"):
        with patch.object(Path, method, side_effect=PermissionError(13, "Permission denied")):
            if method == "is_dir":
                assert str(refusal(tmp_path / "x")) == f"{tmp_path}/x: Permission denied"
            else:
                assert str(refusal(tmp_path)) == f"{tmp_path}: Permission denied"


# ---- CSV ----


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
        ("name,age\nann,1\nbob,2147483648\n", "line 3: P.age: expects Int32, got '2147483648'"),
        ("name,age\nann,1.5\n", "line 2: P.age"),
        ("name,x\nann,nan\n", "line 2: P.x"),
        ("name,x\nann,1e999\n", "line 2: P.x"),
        ("name,ok\nann,1\n", "line 2: P.ok"),
        ("name,l\nann,1\n", "a CSV file cannot hold [I32]?"),
        ("nme\nann\n", "unknown column 'nme'"),
        ("name,age\nann\n", "line 2: has 1 of the 2 values, the header names 2 columns: ann"),
        ("name,age\nann,1\nbob,1,2\n", "line 3: has 3 values, the header names 2 columns: bob,1,2"),
        ('name,age\n\n"a\n\nb",1\r\n"""x,\n",2\ncyd\n', "line 8: has 1 of the 2 values"),
        ('name,age\n\n"a\n\nb",1\r\na"b,x\ncyd,2\n', "line 6: P.age: expects Int32, got 'x'"),
        ("", "Empty CSV file"),
    ],
)
def test_a_csv_file_is_refused_with_its_line(tmp_path: Path, text: str, fragment: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert fragment in str(refusal(tmp_path / "a.csv", type_="P"))


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
        failure = refusal(tmp_path / "a.csv", type_="P")
        assert str(failure).startswith(f"{tmp_path}/a.csv: the header is not UTF-8")


def test_a_rule_is_told_with_the_line_of_a_csv_file_and_the_row_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('name\n"ann\nb"\ncyd\n')
    pq.write_table(pa.table({"name": ["dov"]}), tmp_path / "b.parquet")
    origins = read(tmp_path, SCHEMA, type="P").types[node("P")].origins
    places = [origins.place(row) for row in range(3)]
    assert places == [
        f"{tmp_path}/{place}" for place in ("a.csv line 2", "a.csv line 4", "b.parquet row 1")
    ]
    (tmp_path / "a.csv").unlink()
    origins = read(tmp_path, SCHEMA, type="P").types[node("P")].origins
    assert origins.place(0) == f"{tmp_path}/b.parquet row 1"


def test_rows_are_counted_where_the_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name\nann\n")
    origins = read(tmp_path, SCHEMA, type="P").types[node("P")].origins
    (tmp_path / "a.csv").unlink()
    assert origins.place(0) == f"{tmp_path}/a.csv row 1"


cells = st.text('ab"\n, ', max_size=5)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
@settings(deadline=None)
def test_the_line_of_a_row_is_where_its_text_starts(
    rows: list[tuple[str, str]], line_end: str
) -> None:
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=line_end)
    writer.writerow(("a", "b"))
    expected = []
    for row in rows:
        expected.append(written.getvalue().count("\n") + 1)
        writer.writerow(row)
    data = written.getvalue().encode()
    for size in (1, 3, 10_000):
        with patch.object(csv_lines, "_BLOCK_BYTES", size):
            found = csv_lines.CsvLines(lambda: io.BytesIO(data))
            assert [found.of_row(row) for row in range(1, len(rows) + 1)] == expected
            assert found.of_row(len(rows) + 1) is None


def test_a_csv_file_may_hold_edges(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("from,to,id\nann,bob,e1\nbob,ann,\n")
    schema = "node P { name: String @key }  edge Knows: P -> P"
    found = read(tmp_path / "e.csv", schema, type="Knows").types[edge("Knows")]
    assert found.rows.to_pydict() == {
        "__id": ["e1", None],
        "__src": ["ann", "bob"],
        "__dst": ["bob", "ann"],
    }


# ---- broken text ----


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_that_is_no_utf8_is_refused_at_its_record(dialect: Dialect) -> None:
    good = jsonl(*(f"p{n}" for n in range(200))).encode()
    for broken in (b'{"type":"P","data":{"name":"\xff"}}\n', b'{"type":"\xed\xa0\x80"}\n'):
        with pytest.raises(LoadError, match="invalid UTF-8") as failure:
            read(Text(good + broken + good), SCHEMA, dialect=dialect)
        assert (failure.value.record, failure.value.count) == (201, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_half_a_surrogate_pair_in_a_text_is_refused(dialect: Dialect) -> None:
    with pytest.raises(LoadError, match="invalid UTF-8"):
        read('{"type":"P","data":{"name":"\ud800"}}', SCHEMA, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("mark", "fragment"), [("utf-8-sig", "byte order mark"), ("utf-16", "UTF-16")]
)
def test_a_byte_order_mark_is_refused_in_words(mark: str, fragment: str, dialect: Dialect) -> None:
    with pytest.raises(LoadError, match=fragment):
        read(Text(jsonl("ann").encode(mark)), SCHEMA, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_deep_nesting_is_refused_wherever_it_is(dialect: Dialect) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    good = jsonl(*(f"p{n}" for n in range(100)))
    for line in (deep, f'{{"type":"P","data":{deep}}}', f'{{"type":"P","data":{{"name":{deep}}}}}'):
        with pytest.raises(LoadError, match="nested too deeply") as failure:
            read(good + line, SCHEMA, dialect=dialect)
        assert failure.value.record == 101


def test_a_line_that_is_too_long_is_a_limit_of_its_own() -> None:
    with patch.object(lines, "LINE_BYTES_MAX", 100), pytest.raises(ResourceLimit) as failure:
        read(jsonl("ann", "b" * 100), SCHEMA)
    assert "input line 2: the length of a line" in str(failure.value)
    assert failure.value.limit == 100


def test_a_line_may_be_as_long_as_several_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(jsonl("ann", "b" * 300_000, "cyd") + jsonl("dov").rstrip("\n"))
    for dialect in DIALECTS:
        module = "omnigraph.writers.inputs.json_input"
        with (
            patch(f"{module}.BLOCK_BYTES", 1000),
            patch(f"{module}._STREAM_BLOCK_BYTES", 1000),
        ):
            found = read(path, SCHEMA, dialect=dialect).types[node("P")]
        names = [row["name"] for row in rows_of(found.rows, found.shape)]
        assert names == ["ann", "b" * 300_000, "cyd", "dov"]
        assert [found.origins.order(row) for row in range(4)] == [(0, n) for n in (1, 2, 3, 4)]


def test_a_load_beyond_its_bound_says_what_to_do() -> None:
    with patch.object(reading, "LOAD_BYTES_MAX", 1000), pytest.raises(ResourceLimit) as failure:
        read(jsonl(*(f"p{n}" for n in range(500))), SCHEMA)
    assert failure.value.hint == "split the input into several loads"


def test_progress_is_told_in_records_read() -> None:
    told: list[int] = []
    text = Text(jsonl("ann", "bob") + "\n\n")
    read_input(text, SCHEMA, InputOptions(progress=told.append))
    assert told == [2]


def test_something_else_is_no_source() -> None:
    for source in (b"{}", {"type": "P"}, 3):
        with pytest.raises(LoadError, match="cannot load a"):
            read(source, SCHEMA)
