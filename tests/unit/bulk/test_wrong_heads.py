"""What is wrong with a table as a whole: told once, however many units it has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.bulk import bulk_sources
from omnigraph.bulk.splits import plan_file_ranges
from omnigraph.bulk.task_runner import Stage
from omnigraph.errors import LoadError
from unit.bulk.bulk_world import Twins

PEOPLE = b"".join(b"name%d,%d\n" % (n, n % 90) for n in range(1_000))
HEADS = {
    b"name,agee\n": ["unknown column 'agee' of Person; did you mean 'age'?"],
    b"nam,agee\n": [
        "unknown column 'nam' of Person; did you mean 'name'?",
        "unknown column 'agee' of Person; did you mean 'age'?",
        "non-nullable property 'name' has null or invalid values: the table has no such column",
    ],
    b"name,ag\xff\n": ["the header is not UTF-8"],
    b'name,"age\n': [
        "a value opens with a quote that is never closed: all lines from here on belong to it"
    ],
}


def csv_file(two: Twins, head: bytes, ending: str) -> Path:
    path = two.folder / f"people.{ending}"
    data = head + PEOPLE
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_wrong_header_is_told_once_and_before_any_unit_is_run(
    two: Twins, head: bytes, ending: str, on_error: str
) -> None:
    path = csv_file(two, head, ending)
    stages: list[Stage] = []
    with pytest.raises(LoadError) as caught:
        two.bulk(path, type="Person", on_error=on_error, stages=stages.append)
    assert [each.message for each in caught.value.violations] == HEADS[head]
    assert caught.value.count == len(HEADS[head])
    assert "write" not in {stage.name for stage in stages}
    two.refused(path, type="Person")


def test_a_good_header_is_no_reason(two: Twins) -> None:
    path = csv_file(two, b"name,age\n", "csv")
    assert len(plan_file_ranges(str(path), {}, type_name="Person")) > 4
    two.load(path, type="Person")


def test_a_file_without_a_header_is_told_once(two: Twins) -> None:
    path = two.folder / "people.csv"
    path.write_bytes(b"")
    two.refused(path, type="Person")


def test_a_column_of_a_wrong_type_is_told_once(two: Twins) -> None:
    table = pa.table({"name": [f"p{n}" for n in range(600)], "age": [[n] for n in range(600)]})
    path = two.folder / "people.parquet"
    pq.write_table(table, path, row_group_size=100)
    assert len(plan_file_ranges(str(path), {}, type_name="Person")) > 4
    for source in (path, table):
        failure = two.refused(source, type="Person")
        assert failure.count == 1
        assert "Person.age: expects I32?" in failure.message


def test_an_unknown_column_of_a_table_is_told_once(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_sources, "SPLIT_ROWS", 100)
    table = pa.table({"name": [f"p{n}" for n in range(600)], "nick": ["x"] * 600})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))
    with pytest.raises(LoadError, match="unknown column 'nick' of Person") as caught:
        two.bulk(reader, type="Person")
    assert caught.value.count == 1


def test_the_same_mistake_of_two_files_is_told_of_both(two: Twins) -> None:
    folder = two.folder / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_bytes(b"name,agee\n" + PEOPLE)
    with pytest.raises(LoadError) as caught:
        two.bulk(folder, type="Person")
    places = [each.place for each in caught.value.violations]
    assert (places, caught.value.count) == ([str(folder / "a.csv"), str(folder / "b.csv")], 2)
