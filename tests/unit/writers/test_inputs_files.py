"""Paths, folders, patterns, compression, and files that are broken in every way."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import LoadError, ResourceLimitError
from omnigraph.writers.inputs import Dialect, InputOptions, Text, line_blocks, read_input, row_sink
from unit.writers.loaded_rows import DIALECTS, accept, node, read, rows_of

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
    places = [origins.location_of(row) for row in range(3)]
    assert places == [
        f"{tmp_path}/a.jsonl line 1",
        f"{tmp_path}/a.jsonl line 3",
        f"{tmp_path}/b.jsonl line 1",
    ]
    assert origins.select_rows(pa.array([2])).location_of(0) == f"{tmp_path}/b.jsonl line 1"


@pytest.mark.parametrize(
    ("name", "fragment"),
    [("missing.jsonl", "no such file"), ("*.jsonl", "no file matches the pattern")],
)
def test_a_path_without_files_is_refused(tmp_path: Path, name: str, fragment: str) -> None:
    failure = refusal(tmp_path / name)
    assert str(failure) == f"{tmp_path}/{name}: {fragment}"
    assert failure.record == 0


def test_a_pipe_is_refused_as_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.jsonl")
    failure = refusal(tmp_path / "p.jsonl")
    assert str(failure).endswith(
        "p.jsonl: a pipe or a device is not read; write the data to a file"
    )


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
    (tmp_path / "a.csv").write_text("name\na\n")
    for name in ("a.parquet", "a.csv"):
        failure = refusal(tmp_path / name)
        assert "give the type" in str(failure)
        assert failure.hint == "--type NAME on the command line, type=NAME in Python"


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
    with (
        patch.object(line_blocks, "LINE_BYTES_MAX", 100),
        pytest.raises(ResourceLimitError) as failure,
    ):
        read(jsonl("ann", "b" * 100), SCHEMA)
    assert "input line 2: the length of a line" in str(failure.value)
    assert failure.value.limit == 100


def test_a_line_may_be_as_long_as_several_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(jsonl("ann", "b" * 300_000, "cyd") + jsonl("dov").rstrip("\n"))
    for dialect in DIALECTS:
        module = "omnigraph.writers.inputs.json_reader"
        with (
            patch(f"{module}.BLOCK_BYTES", 1000),
            patch(f"{module}._STREAM_BLOCK_BYTES", 1000),
        ):
            found = read(path, SCHEMA, dialect=dialect).types[node("P")]
        names = [row["name"] for row in rows_of(found.rows, found.shape)]
        assert names == ["ann", "b" * 300_000, "cyd", "dov"]
        assert [found.origins.order_of(row) for row in range(4)] == [(0, n) for n in (1, 2, 3, 4)]


def test_a_load_beyond_its_bound_says_what_to_do() -> None:
    with (
        patch.object(row_sink, "LOAD_BYTES_MAX", 1000),
        pytest.raises(ResourceLimitError) as failure,
    ):
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
