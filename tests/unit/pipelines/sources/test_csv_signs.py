"""CSV with other signs and nulls, or without a header, is read as Python's writer wrote it."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config.csv_dialect import CsvDialect
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources import csv_frames
from omnigraph.pipelines.sources.csv_frames import (
    plan_csv_inputs,
    read_csv_inputs,
    read_csv_names,
)
from omnigraph.pipelines.sources.file_source import list_files
from omnigraph.pipelines.sources.record_readers import plan_readers
from unit.pipelines.definitions import PEOPLE, read

NAMES = ["a,b", 'c"d', "e;f"]
DIALECTS = [
    CsvDialect(delimiter=";"),
    CsvDialect(delimiter="\t", quote="'"),
    CsvDialect(delimiter="|", nulls=("-", "NULL")),
    CsvDialect(delimiter='"', quote=","),
    CsvDialect(delimiter=";", names=("x", "y,1", "z")),
]


def write_people(path: Path, dialect: CsvDialect, *, encoding: str = "utf-8") -> list[list[str]]:
    """Rows whose values hold the signs of any dialect, and what they are read as."""
    chance = random.Random(1)
    signs = [*",;|\t'\"", "\n", "é", "x", "-", "NULL"]
    rows = [
        ["".join(chance.choices(signs, k=chance.randrange(1, 4))) for _ in NAMES] for _ in range(90)
    ]
    with path.open("w", newline="", encoding=encoding) as file:
        kind: dict[str, Any] = {"delimiter": dialect.delimiter, "quotechar": dialect.quote}
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL, **kind)
        writer.writerows(rows if dialect.names else [NAMES, *rows])
    return rows


def read_frames(source: FileSource) -> list[list[str | None]]:
    found = list_files(source)
    inputs = tuple(plan_csv_inputs(found))
    numbers = pa.record_batch({"id": pa.array(range(len(inputs)), pa.int64())})
    names = read_csv_names(found)
    batches = list(read_csv_inputs(inputs, names, {}, iter([numbers])))
    assert all(not each.column(CORRUPT).is_valid().to_pylist().count(True) for each in batches)
    return [list(row.values())[: len(names)] for each in batches for row in each.to_pylist()]


def read_directly(source: FileSource) -> list[list[str | None]]:
    found = list_files(source)
    types = dict.fromkeys(read_csv_names(found), pa.string())
    return [
        list(row.values())
        for planned in plan_readers("source", found, types)
        for block in planned.reader.iter_blocks()
        for row in block.rows.to_pylist()
    ]


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
def test_values_are_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: CsvDialect
) -> None:
    # Many ranges: each of them starts in the middle of something.
    monkeypatch.setattr(csv_frames, "_RANGE_BYTES", 200)
    path = tmp_path / "people.csv"
    written = write_people(path, dialect)
    wanted = [[None if each in dialect.nulls else each for each in row] for row in written]
    source = FileSource((str(path),), csv=dialect)
    assert len(list(plan_csv_inputs(list_files(source)))) > 3
    assert read_csv_names(list_files(source)) == list(dialect.names or NAMES)
    assert read_frames(source) == wanted
    assert read_directly(source) == wanted
    write_people(path, dialect, encoding="iso-8859-1")
    assert read_frames(FileSource((str(path),), encoding="iso-8859-1", csv=dialect)) == wanted


def test_a_mark_at_the_start_of_a_file_without_a_header_is_not_a_value(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbfann;41\nbob;\n")
    dialect = CsvDialect(delimiter=";", names=("name", "age"))
    source = FileSource((str(tmp_path / "p.csv"),), csv=dialect)
    assert read_frames(source) == read_directly(source) == [["ann", "41"], ["bob", None]]


def test_a_record_that_cannot_be_read_is_shown_as_it_is_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name;age\nann,x;41\n'bob';\"2\";3\n")
    found = list_files(FileSource((str(tmp_path / "p.csv"),), csv=CsvDialect(";", "'")))
    inputs = tuple(plan_csv_inputs(found))
    numbers = pa.record_batch({"id": pa.array([0], pa.int64())})
    good, bad = read_csv_inputs(inputs, read_csv_names(found), {}, iter([numbers]))
    assert good.column("name").to_pylist() == ["ann,x"]
    assert bad.column(CORRUPT).to_pylist() == ["'bob';\"2\";3"]


def test_a_dialect_is_for_csv_alone(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("{}")
    with pytest.raises(SourceRefusedError, match="'csv' is not for json files"):
        list_files(FileSource((str(tmp_path / "p.jsonl"),), csv=CsvDialect(";")))


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{delimiter: '::'}", "'delimiter' is one sign of ASCII, not '::'"),
        ("{quote: x}", "'quote' is one sign of ASCII, not 'x'"),
        ("{delimiter: ';', quote: ';'}", "are the same"),
        ("{names: [a, A]}", "every one of 'names' is there once"),
        ("{separator: ';'}", "unknown field 'separator'"),
    ],
)
def test_a_dialect_that_cannot_be_is_reported(tmp_path: Path, section: str, problem: str) -> None:
    with pytest.raises(PipelineInvalidError, match=problem):
        read(tmp_path, PEOPLE.replace("people.jsonl", f"people.csv, csv: {section}"))
