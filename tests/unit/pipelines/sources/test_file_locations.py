from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.sources import file_locations
from omnigraph.pipelines.sources.file_locations import (
    group_by_file,
    locate_records,
    resolve_local_file,
)

LINES = b'{"a": 1}\n\n \t\r\n{"a": 2}\r\n{"a": 3}'


def _nouns(path: Path, total: int | None, format_: str = "json") -> dict[int, tuple[str, int]]:
    numbers = list(range(1, (total or 3) + 1))
    return locate_records(
        resolve_local_file(path.as_uri()), numbers, total, FileSource((str(path),)), format_
    )


def test_records_are_on_the_lines_that_are_not_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, packed = tmp_path / "a b#1.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES))
    expected = {1: ("line", 1), 2: ("line", 4), 3: ("line", 5)}
    assert _nouns(plain, 3) == _nouns(packed, 3) == expected
    # Lines go over the ends of what is read at once.
    monkeypatch.setattr(file_locations, "_BLOCK_BYTES", 5)
    assert _nouns(plain, 3) == expected


def test_lines_are_counted_in_the_encoding_of_their_source(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    # Both bytes of this letter are those of a line end in other encodings.
    path.write_text('{"a": "\u0a0a"}\n\n{"a": "b"}\n', encoding="utf-16")
    source = FileSource((str(path),), encoding="utf-16")
    found = locate_records(resolve_local_file(path.as_uri()), [1, 2], 2, source, "json")
    assert found == {1: ("line", 1), 2: ("line", 3)}


def test_records_of_csv_are_counted_by_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    assert _nouns(path, 2, "csv") == {1: ("line", 1), 2: ("line", 2)}


@pytest.mark.parametrize("total", [2, 4, None])
def test_a_file_whose_records_are_not_its_lines_has_numbers_of_records(
    tmp_path: Path, total: int | None
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)
    assert set(_nouns(path, total).values()) <= {("record", number) for number in range(1, 5)}


@pytest.mark.parametrize("array", ["[]", "  [{}]", "{}\r[]"])
def test_a_file_with_arrays_has_numbers_of_records_though_it_has_as_many_lines(
    tmp_path: Path, array: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": [1]}\n{"a":\t["["]}\n')
    assert _nouns(path, 2) == {1: ("line", 1), 2: ("line", 2)}
    path.write_bytes(f'{{"a": 1}}\n{array}\n{{"a": 2}}\n'.encode())
    assert _nouns(path, 3) == {number: ("record", number) for number in (1, 2, 3)}


def test_tables_have_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"")
    assert _nouns(path, None, "parquet") == {number: ("row", number) for number in (1, 2, 3)}


def test_numbers_are_looked_for_once_in_each_file() -> None:
    assert group_by_file([("b", 1), ("a", 2), ("b", 1), ("b", 3)]) == {"b": [1, 3], "a": [2]}


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceRefusedError, match="no such file"):
        resolve_local_file((tmp_path / "nothing.jsonl").as_uri())
