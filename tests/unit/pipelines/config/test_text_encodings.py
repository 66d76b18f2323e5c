"""Text is decoded strictly: bytes that are not text spoil their record, and nothing else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config import text_encodings
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.config.text_encodings import (
    ENCODINGS,
    decode_text,
    find_absent_names,
    find_first_line,
    has_half_characters,
    iter_text_lines,
    mark_undecodable,
    normalize_encoding,
)
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.sources.csv_frames import plan_csv_inputs, read_csv_inputs, read_csv_names
from omnigraph.pipelines.sources.file_source import find_files, list_files, read_lines
from unit.pipelines.definitions import PEOPLE, read

BAD = b"login,name\nada,Ad\xe9\nbo,B\xef\xbf\xbd\ncy,\xff\n"


def _numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(count), pa.int64())})


def _source(folder: Path, name: str, data: bytes, encoding: str = "utf-8") -> FileSource:
    (folder / name).write_bytes(data)
    return FileSource((str(folder / name),), encoding=encoding)


def _rows(source: FileSource) -> list[dict[str, Any]]:
    found = list_files(source)
    inputs = tuple(plan_csv_inputs(found))
    batches = read_csv_inputs(inputs, read_csv_names(found), {}, iter([_numbers(len(inputs))]))
    return [row for batch in batches for row in batch.to_pylist()]


def _texts(source: FileSource) -> list[str]:
    found = list_files(source)
    batches = read_lines(found, source.is_multiline, iter([_numbers(len(found.files))]))
    return [text for batch in batches for text in batch.column(0).to_pylist()]


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_rows_of_csv_with_bytes_that_are_not_text_are_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(text_encodings, "_BLOCK_BYTES", block)
    rows = _rows(_source(tmp_path, "a.csv", BAD))
    # A replacement character that the file itself has is text like any other.
    assert [row["_corrupt_record"] for row in rows] == ["ada,Ad�", None, "cy,�"]
    assert rows[1]["name"] == "B�"


def test_a_file_is_read_in_its_encoding(tmp_path: Path) -> None:
    data = "login,name\nada,Adé €\n".encode("windows-1252")
    (row,) = _rows(_source(tmp_path, "a.csv", data, "windows-1252"))
    assert (row["name"], row["_corrupt_record"]) == ("Adé €", None)
    lines = '{"login": "adé"}\n'.encode("iso-8859-1")
    assert _texts(_source(tmp_path, "a.jsonl", lines, "iso-8859-1")) == ['{"login": "adé"}\n']


def test_bytes_that_an_encoding_does_not_have_are_found_in_every_encoding(tmp_path: Path) -> None:
    # This code has no meaning in windows-1252.
    rows = _rows(_source(tmp_path, "a.csv", b"login\nad\x81\nbo\n", "windows-1252"))
    assert [row["_corrupt_record"] for row in rows] == ["ad�", None]
    for encoding in ENCODINGS:
        data = '{"a": 1}\n'.encode(encoding)
        assert list(iter_text_lines(io.BytesIO(data), encoding)) == [['{"a": 1}\n']]


def test_a_line_of_json_that_is_not_text_cannot_be_read_as_json(tmp_path: Path) -> None:
    good, bad = b'{"login": "ada"}\n', b'{"login": "b\xff"}\n'
    texts = _texts(_source(tmp_path, "a.jsonl", good + bad + good))
    assert texts == [good.decode(), '�{"login": "b�"}\n', good.decode()]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_files_with_half_of_a_character_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(text_encodings, "_BLOCK_BYTES", block)
    for name, text in {"a": '"\\u00e9"', "b": '"\\ud800"', "c": '"\\udc00"'}.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    found = list_files(FileSource((str(tmp_path),)))
    numbers = [
        each
        for batch in find_files(found, has_half_characters, iter([_numbers(3)]))
        for each in batch.column(0).to_pylist()
    ]
    assert numbers == [1, 2]


def test_bytes_that_are_not_text_are_marked() -> None:
    assert mark_undecodable("é,\ufffd".encode()) == "é,\ufffd".encode()
    assert mark_undecodable(b"a\xe9,b") == f"a{text_encodings.UNDECODABLE},b".encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,,b\n1,2,3\n", "line 1: column 2 has no name"),
        (b"a,A\n1,2\n", "line 1: two columns are named A"),
        (b'a,"b\n', "line 1: a value opens with a quote that is never closed"),
        (b"", "Empty CSV file"),
    ],
)
def test_a_header_that_names_no_columns_is_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(SourceRefusedError, match=message):
        _rows(_source(tmp_path, "a.csv", data))


def test_columns_of_csv_files_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("login,age\nada,1\n")
    (tmp_path / "b.csv").write_text("")
    (tmp_path / "c.csv").write_text("more,AGE,login\nx,2,bo\n")
    source = FileSource((str(tmp_path),))
    rows = [(row["login"], row["age"], row[PART], row[ROW]) for row in _rows(source)]
    assert rows == [("ada", "1", 0, 1), ("bo", "2", 2, 1)]
    (tmp_path / "d.csv").write_text("login\ncy\n")
    with pytest.raises(SourceRefusedError, match=r"d\.csv has no column age"):
        _rows(source)


@pytest.mark.parametrize("block", [1, 4, 1 << 20])
def test_names_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(text_encodings, "_BLOCK_BYTES", block)
    wanted = {name: f'"{name}"'.encode() for name in ("login", "age", "name")}
    assert find_absent_names(io.BytesIO(b'{"login": 1}\n{"age": 2}\n'), wanted) == {
        "name": b'"name"'
    }


def test_a_header_that_is_not_text_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SourceRefusedError, match=r"a\.csv line 1: column n�me is not text"):
        _rows(_source(tmp_path, "a.csv", b"login,n\xe4me\nada,x\n"))


def test_bytes_of_messages_are_text_or_not() -> None:
    assert decode_text("é".encode()) == ("é", True)
    assert decode_text(b"a\xff") == ("a�", False)


def test_an_encoding_is_one_that_is_known_and_for_text_only(tmp_path: Path) -> None:
    text = PEOPLE.replace("people.jsonl", "people.jsonl, encoding: utf8x")
    with pytest.raises(PipelineInvalidError, match="'utf8x' is not a value of encoding"):
        read(tmp_path, text)
    pipeline = read(tmp_path, PEOPLE.replace("people.jsonl", "people.jsonl, encoding: iso-8859-1"))
    (source,) = pipeline.sources.values()
    assert isinstance(source, FileSource)
    assert source.encoding == "iso-8859-1"
    with pytest.raises(SourceRefusedError, match="'encoding' is not for parquet files"):
        list_files(_source(tmp_path, "a.parquet", b"", "iso-8859-1"))


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("UTF8", "utf-8"),
        ("latin-1", "iso-8859-1"),
        ("latin1", "iso-8859-1"),
        ("cp1252", "windows-1252"),
        ("utf-16", "utf-16"),
        ("UTF_16LE", "utf-16-le"),
        ("us-ascii", "ascii"),
        ("sjis", "shift_jis"),
    ],
)
def test_an_encoding_has_its_usual_names(tmp_path: Path, name: str, encoding: str) -> None:
    text = PEOPLE.replace("people.jsonl", f"people.jsonl, encoding: {name}")
    (source,) = read(tmp_path, text).sources.values()
    assert isinstance(source, FileSource)
    assert source.encoding == encoding


def test_a_name_that_is_not_one_of_an_encoding_stays() -> None:
    assert normalize_encoding("klingon") == "klingon"


@pytest.mark.parametrize("block", [1, 2, 5, 7, 13, 1 << 20])
@pytest.mark.parametrize(
    ("text", "is_half"),
    [
        (r'{"a": "\ud800"}', True),
        (r'{"\uDFFF": 1}', True),
        (r'{"a": "\\\ud800 and on"}', True),
        (r'{"a": "\ude00\ud83d"}', True),
        (r'{"a": "\ud83d\ud83d\ude00"}', True),
        (r'"\ud83', True),
        (r'{"a": "\ud83d\ude00"}', False),
        (r'{"a": "\\ud800"}', False),
        (r'{"a": "\u0041\n\""}' * 50, False),
        ("not JSON", False),
        ("", False),
    ],
)
def test_half_of_a_character_is_found_in_json(
    monkeypatch: pytest.MonkeyPatch, text: str, block: int, *, is_half: bool
) -> None:
    monkeypatch.setattr(text_encodings, "_BLOCK_BYTES", block)
    assert has_half_characters(io.BytesIO(text.encode())) is is_half


def test_the_first_line_that_is_not_blank_has_its_number() -> None:
    data = b"\n" + b" " * 10_000 + b"\r\n  b\xffd\nmore\n"
    assert find_first_line(io.BytesIO(data), "utf-8") == (3, "b\N{REPLACEMENT CHARACTER}d")
    assert find_first_line(io.BytesIO(b"\n \n"), "utf-8") is None
