"""What tasks read of files: here on the disk, which they open like files on S3."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.sources import read_source_state, require_unchanged, row_groups
from omnigraph.pipelines.sources.file_source import (
    FileListing,
    _read_remote_schema,
    list_files,
    plan_table_parts,
    read_lines,
    read_rows,
)

Write = Callable[[Any, str], None]
WRITERS: dict[str, Write] = {"parquet": pq.write_table, "orc": orc.write_table}
FIRST = {"login": ["ada", "bo"], "age": pa.array([1, 2], pa.int64())}


def _written(folder: Path, format_: str, *tables: dict[str, Any]) -> FileSource:
    for number, columns in enumerate(tables):
        WRITERS[format_](pa.table(columns), str(folder / f"{number}.{format_}"))
    return FileSource((str(folder),))


def _numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(count), pa.int64())})


def _rows(source: FileSource) -> list[dict[str, Any]]:
    found = list_files(source)
    # By place, as Spark takes the columns of a batch.
    return [
        dict(zip(("login", "age"), row.values(), strict=False))
        for batch in _read_batches(found)
        for row in batch.to_pylist()
    ]


def _read_batches(found: FileListing) -> list[pa.RecordBatch]:
    parts = plan_table_parts(found)
    return list(read_rows(found, _read_remote_schema(found), parts, iter([_numbers(len(parts))])))


@pytest.mark.parametrize("format_", WRITERS)
def test_columns_of_several_files_fit_by_their_names(tmp_path: Path, format_: str) -> None:
    other = {"more": [True], "age": pa.array([3], pa.int32()), "login": ["cy"]}
    assert _rows(_written(tmp_path, format_, FIRST, other)) == [
        {"login": "ada", "age": 1},
        {"login": "bo", "age": 2},
        {"login": "cy", "age": 3},
    ]


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"login": ["cy"]}, r"1\.\w+ has no column age"),
        ({"login": ["cy"], "age": ["old"]}, r"1\.\w+: column age is of type string, not int64"),
    ],
)
def test_a_file_without_the_columns_of_the_first_is_named(
    tmp_path: Path, format_: str, other: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceRefusedError, match=message):
        _rows(_written(tmp_path, format_, FIRST, other))


def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path: Path) -> None:
    source = _written(tmp_path, "parquet", FIRST)
    (tmp_path / "1.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(SourceRefusedError, match=r"1\.parquet"):
        _rows(source)


def test_a_large_orc_file_is_read_in_parts(tmp_path: Path) -> None:
    count = 150_000
    columns = {"login": [f"p{number}" for number in range(count)], "age": list(range(count))}
    table, path = pa.table(columns), tmp_path / "0.orc"
    orc.write_table(table, str(path), stripe_size=65_536)
    assert orc.ORCFile(str(path)).nstripes > 1
    found = list_files(FileSource((str(tmp_path),)))
    batches = _read_batches(found)
    assert max(batch.num_rows for batch in batches) <= 65_536
    assert pa.Table.from_batches(batches).select(table.column_names).equals(table)


def test_a_large_parquet_file_is_read_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "SPLIT_ROWS", 250)
    for name, count in (("a", 1000), ("b", 0), ("c", 120)):
        table = pa.table({"number": pa.array(range(count), pa.int64())})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
    found = list_files(FileSource((str(tmp_path),)))
    assert len(plan_table_parts(found)) == 7
    rows = pa.Table.from_batches(_read_batches(found))
    # Each with the number of its file and its own number there.
    assert rows[ROW].to_pylist() == rows["number"].to_pylist() == [*range(1000), *range(120)]
    assert rows[PART].to_pylist() == [0] * 1000 + [2] * 120


@pytest.mark.slow
def test_json_is_utf_8_wherever_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"login": "zoë"}\n'.encode())
    program = (
        "import pyarrow as pa, sys\n"
        "from omnigraph.pipelines.config.definition import FileSource\n"
        "from omnigraph.pipelines.sources.file_source import list_files, read_lines\n"
        "numbers = pa.record_batch({'id': [0]})\n"
        "batches = read_lines(list_files(FileSource((sys.argv[1],))), False, iter([numbers]))\n"
        "print(ascii([batch['value'].to_pylist() for batch in batches]))\n"
    )
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.jsonl")],
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "zo\\xeb" in told.stdout


def test_lines_of_several_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n{"a": 2}')
    (tmp_path / "b.jsonl").write_text('{"a": 3}\n')
    found = list_files(FileSource((str(tmp_path),)))
    batches = read_lines(found, False, iter([_numbers(2)]))
    texts = [text.strip() for batch in batches for text in batch["value"].to_pylist()]
    assert texts == ['{"a": 1}', '{"a": 2}', '{"a": 3}']


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"a": 2}\n')


@pytest.mark.parametrize("change", [_append, Path.unlink])
def test_files_that_change_behind_a_survey_are_told(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
    source = FileSource((str(tmp_path / "*.jsonl"),))
    found = read_source_state(source)
    (tmp_path / "b.jsonl").write_text('{"a": 3}\n')
    require_unchanged(source, found)
    change(tmp_path / "a.jsonl")
    with pytest.raises(SourceFailedError, match=r"files changed while they were read: .*a\.jsonl"):
        require_unchanged(source, found)
