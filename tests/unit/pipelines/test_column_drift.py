"""Files with other columns than the first one: refused, filled with nulls, or left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config.definition import ColumnDrift, FileSource
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_with_records
from omnigraph.pipelines.sources import read_source_state
from omnigraph.pipelines.sources.column_widths import widen_types
from omnigraph.pipelines.sources.csv_frames import (
    plan_csv_inputs,
    read_csv_inputs,
    read_csv_names,
)
from omnigraph.pipelines.sources.file_source import FileListing, read_wide_schema
from unit.pipelines.definitions import PEOPLE, SCHEMA, read
from unit.pipelines.reported_runs import Rows

FIRST = {"login": ["ada"], "age": pa.array([1], pa.int64())}
TEXTS = {"login": ["bo"], "age": ["old"]}
SHORT = {"login": ["cy"]}
WIDE = {"login": ["dee"], "age": pa.array([4], pa.int32()), "team": ["core"]}


def _write(folder: Path, *tables: dict[str, Any], drift: ColumnDrift) -> FileSource:
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    return FileSource((str(folder),), drift=drift)


def _list(source: FileSource) -> tuple[list[str], Sequence[str]]:
    """The names of the files that are read, and what is said of the others."""
    found: FileListing = read_source_state(source).listing
    return [file.uri.rpartition("/")[2] for file in found.files], found.skipped


def test_without_a_policy_every_file_is_left_to_its_reader(tmp_path: Path) -> None:
    source = _write(tmp_path, FIRST, TEXTS, SHORT, drift=ColumnDrift())
    assert _list(source) == (["0.parquet", "1.parquet", "2.parquet"], ())


def test_files_that_do_not_fit_are_left_out_with_their_reasons(tmp_path: Path) -> None:
    drift = ColumnDrift(missing="skip", changed="skip")
    source = _write(tmp_path, FIRST, TEXTS, SHORT, WIDE, drift=drift)
    assert _list(source) == (
        ["0.parquet", "3.parquet"],
        (
            f"skipped {tmp_path}/1.parquet: column age is of type string, not int64",
            f"skipped {tmp_path}/2.parquet has no column age, of type int64",
        ),
    )


@pytest.mark.parametrize(
    ("drift", "other", "message"),
    [
        (ColumnDrift(new="fail"), WIDE, "1.parquet: column team, of type string, is not in other"),
        (ColumnDrift(new="fail"), TEXTS, "1.parquet: column age is of type string, not int64"),
        (ColumnDrift(changed="skip"), SHORT, "1.parquet has no column age, of type int64"),
        (ColumnDrift(missing="null"), TEXTS, "1.parquet: column age is of type string, not int64"),
    ],
)
def test_what_a_policy_refuses_names_file_column_and_types(
    tmp_path: Path, drift: ColumnDrift, other: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceRefusedError, match=message) as caught:
        _list(_write(tmp_path, FIRST, other, drift=drift))
    assert "'drift' of the source" in str(caught.value.hint)


def test_a_source_of_new_files_is_compared_with_the_oldest_one(tmp_path: Path) -> None:
    drift = ColumnDrift(changed="skip")
    source = _write(tmp_path, FIRST, drift=drift)
    source = FileSource(source.paths, is_new_only=True, drift=drift)
    first = read_source_state(source)
    pq.write_table(pa.table(TEXTS), tmp_path / "1.parquet")
    second = read_source_state(source, after=first.resume)
    # The only new file is left out, so that nothing is new.
    assert second.is_empty
    assert second.listing.skipped == (
        f"skipped {tmp_path}/1.parquet: column age is of type string, not int64",
    )


def test_runs_of_new_files_report_once_that_a_file_was_left_out(tmp_path: Path) -> None:
    text = PEOPLE.replace(
        "paths: people.jsonl", "paths: in, new_files: true, drift: {missing: skip}"
    )
    pipeline = read(tmp_path, text)
    omnigraph.create(pipeline.graphs["company"].uri, schema=SCHEMA).close()
    (tmp_path / "in").mkdir()

    def run_next(name: str, header: str) -> tuple[str, tuple[str, ...]]:
        (tmp_path / "in" / name).write_text(f"{header}\n")
        run = run_with_records(pipeline, RunOptions(), lambda *_: Rows())
        return run.targets[0].status, run.warnings

    assert run_next("a.csv", "login,age") == ("succeeded", ())
    reason = f"skipped {tmp_path}/in/b.csv has no column age, of type string"
    assert run_next("b.csv", "login") == ("unchanged", (reason,))
    assert run_next("c.csv", "login,age") == ("succeeded", ())
    assert run_next("b.csv", "login,age") == ("succeeded", ())


@pytest.mark.parametrize("drift", [ColumnDrift(), ColumnDrift(missing="skip")])
def test_the_oldest_file_decides_the_columns_of_new_ones(
    tmp_path: Path, drift: ColumnDrift
) -> None:
    source = FileSource((str(tmp_path),), is_new_only=True, drift=drift)
    (tmp_path / "a.csv").write_text("id,name\n")
    first = read_source_state(source)
    (tmp_path / "b.csv").write_text("id,name,extra\n")
    (tmp_path / "c.csv").write_text("name,id\n")
    second = read_source_state(source, after=first.resume).listing
    assert [file.uri[-5:] for file in second.files] == ["b.csv", "c.csv"]
    assert read_csv_names(second) == ["id", "name"]


def test_a_first_file_without_a_byte_decides_no_columns(tmp_path: Path) -> None:
    for name, header in (("a", ""), ("b", "login,age"), ("c", "login"), ("d", "login,age,team")):
        (tmp_path / f"{name}.csv").write_text(header and f"{header}\n")
    found = read_source_state(FileSource((str(tmp_path),), drift=ColumnDrift(missing="skip")))
    assert found.listing.skipped == (f"skipped {tmp_path}/c.csv has no column age, of type string",)
    assert read_csv_names(found.listing) == ["login", "age"]
    with pytest.raises(SourceRefusedError, match=r"d\.csv: column team"):
        _list(FileSource((str(tmp_path),), drift=ColumnDrift(new="fail", missing="skip")))


def test_missing_columns_of_tables_are_those_of_all_files(tmp_path: Path) -> None:
    source = _write(tmp_path, SHORT, WIDE, FIRST, drift=ColumnDrift(missing="null"))
    found: FileListing = read_source_state(source).listing
    wide = read_wide_schema(found)
    assert wide is not None
    columns = [("login", pa.string()), ("age", pa.int64()), ("team", pa.string())]
    assert wide.equals(pa.schema(columns))


def test_missing_columns_of_csv_are_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("login,age\nada,1\n")
    (tmp_path / "b.csv").write_text("Team,LOGIN\ncore,bo\n")
    source = FileSource((str(tmp_path),), drift=ColumnDrift(missing="null"))
    found: FileListing = read_source_state(source).listing
    names = read_csv_names(found)
    assert names == ["login", "age", "Team"]
    inputs = tuple(plan_csv_inputs(found))
    numbers = pa.record_batch({"id": [0, 1]})
    rows = [
        row
        for batch in read_csv_inputs(inputs, names, {}, iter([numbers]))
        for row in batch.select(names).to_pylist()
    ]
    assert rows == [
        {"login": "ada", "age": "1", "Team": None},
        {"login": "bo", "age": None, "Team": "core"},
    ]


def test_csv_is_compared_by_its_header_in_any_case(tmp_path: Path) -> None:
    for name, header in (("a", "login,age"), ("b", "AGE,Login"), ("c", "login"), ("d", "")):
        (tmp_path / f"{name}.csv").write_text(header and f"{header}\n")
    source = FileSource((str(tmp_path),), drift=ColumnDrift(missing="skip"))
    files, skipped = _list(source)
    assert files == ["a.csv", "b.csv", "d.csv"]
    assert skipped == (f"skipped {tmp_path}/c.csv has no column age, of type string",)


@pytest.mark.parametrize(
    ("type_", "other", "expected"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
        (pa.string(), pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ms")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.null(), pa.string(), pa.string()),
        (pa.date32(), pa.null(), pa.date32()),
        (pa.string(), pa.date32(), None),
        (pa.decimal128(10, 2), pa.int64(), None),
        (pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.list_(pa.string()), pa.list_(pa.int64()), None),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())]), None),
        # A member that only one has is read as null.
        (
            pa.struct([("a", pa.string())]),
            pa.struct([("b", pa.int64())]),
            pa.struct([("a", pa.string())]),
        ),
        (pa.binary(2), pa.binary(), pa.binary(2)),
    ],
)
def test_types_of_which_one_holds_both_are_no_drift(
    type_: pa.DataType, other: pa.DataType, expected: pa.DataType | None
) -> None:
    assert widen_types(type_, other) == expected


@pytest.mark.parametrize(
    "drift", ["{new: skip}", "{missing: ignore}", "{changed: 'null'}", "{a: b}"]
)
def test_policies_that_mean_nothing_are_problems(tmp_path: Path, drift: str) -> None:
    text = PEOPLE.replace("paths: people.jsonl", f"paths: people.jsonl, drift: {drift}")
    with pytest.raises(PipelineInvalidError, match="drift"):
        read(tmp_path, text)
