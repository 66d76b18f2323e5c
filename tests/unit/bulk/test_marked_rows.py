"""Rows that say themselves why they are refused, and of which records they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.bulk.bulk_sources import (
    BulkSource,
    LocateOrigins,
    OriginRecord,
    RecordOrigin,
    TableSource,
    stage_rows,
)
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.errors import LoadError, WriteRefusedError
from omnigraph.writers.inputs.input_tables import ORIGIN, REFUSED
from unit.bulk.bulk_world import Twins

WHY = {"property": "name", "message": "Person.name: no name", "record": '{"login":1}'}
MARK = pa.struct([(name, pa.utf8()) for name in WHY])


@dataclass(frozen=True, slots=True)
class Made(BulkSource):
    """Rows of several types that were made of records."""

    tables: Mapping[str, pa.Table]

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        notes = get_stores(place).objects
        return tuple(
            stage_rows(notes, folder, table, type_name=name) for name, table in self.tables.items()
        )

    @property
    def locate(self) -> LocateOrigins | None:
        return _located


def _located(origins: Sequence[RecordOrigin]) -> dict[RecordOrigin, OriginRecord]:
    return {
        origin: OriginRecord(f"in.csv line {origin[2]}", "in.csv", origin[2], f"text {origin[2]}")
        for origin in origins
    }


def of_records(*numbers: int) -> list[dict[str, int]]:
    return [{"source": 0, "part": 0, "row": number} for number in numbers]


def people() -> pa.Table:
    """The second one has a name that cannot be told, the third one a wrong age."""
    return pa.table(
        {
            "name": ["ada", None, "cy"],
            "age": [1, 2, 200],
            REFUSED: pa.array([None, WHY, None], MARK),
            ORIGIN: of_records(1, 2, 3),
        }
    )


def members(*ends: tuple[str, str, int]) -> pa.Table:
    return pa.table(
        {
            "from": [each[0] for each in ends],
            "to": [each[1] for each in ends],
            ORIGIN: of_records(*(each[2] for each in ends)),
        }
    )


def reasons(two: Twins) -> list[tuple[str, str]]:
    return [(row["place"], row["reason"]) for row in two.rejected()]


def test_only_the_node_of_its_own_record_takes_an_edge_along(two: Twins) -> None:
    tables = {
        "Person": people(),
        "Knows": members(("ada", "bo", 2), ("ada", "none", 3), ("ada", "cy", 1)),
        "Member": members(("ada", '["9","9"]', 2), ("ada", '["8","8"]', 3)),
    }
    result = two.bulk(Made(tables), on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 1}, 7)
    assert reasons(two) == [
        ("in.csv line 1", "dst 'cy' not found in Person: its record was rejected"),
        ("in.csv line 2", 'Person.name: no name: {"login":1}'),
        ("in.csv line 2", "dst 'bo' not found in Person: its record was rejected"),
        ("in.csv line 2", 'dst \'["9","9"]\' not found in Place'),
        ("in.csv line 3", "@range violation on Person.age: 200 (0 to 150)"),
        ("in.csv line 3", "dst 'none' not found in Person"),
        ("in.csv line 3", 'dst \'["8","8"]\' not found in Place'),
    ]


def test_an_edge_that_lacks_another_node_than_that_of_its_record_is_told(two: Twins) -> None:
    tables = {
        "Person": people(),
        "Knows": members(("ada", "bo", 2)),
        "Member": members(("ada", '["9","9"]', 2)),
    }
    with pytest.raises(WriteRefusedError) as caught:
        two.bulk(Made(tables))
    told = [(each.place, each.message) for each in caught.value.violations]
    assert ("in.csv line 2", 'dst \'["9","9"]\' not found in Place') in told
    assert [message for _, message in told if "'bo'" in message] == []


COLUMNS: dict[str, list[Any]] = {
    ORIGIN: ["o", "p"],
    REFUSED: ["o", None],
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_column_of_somebody_else_with_such_a_name_is_unknown(
    two: Twins, column: str, on_error: str
) -> None:
    table = pa.table({"name": ["a", "b"], "age": [1, 200], column: COLUMNS[column]})
    path = two.folder / "people.parquet"
    pq.write_table(table, path)
    sources: list[Path | pa.Table] = [path, table]
    for source in sources:
        with pytest.raises(LoadError) as at_once:
            two.at_once.load(source, mode="append", type="Person")
        with pytest.raises(LoadError) as in_units:
            two.bulk(source, type="Person", on_error=on_error)
        for caught in (at_once, in_units):
            assert caught.value.count == 1
            assert f"unknown column '{column}' of Person" in caught.value.message


def test_what_is_made_of_records_may_mark_its_rows(two: Twins) -> None:
    source = Made({"Person": people()})
    assert two.bulk(source, on_error="quarantine").rejected == 2
    unmarked = TableSource(people().to_reader(), "Person")
    with pytest.raises(LoadError, match="unknown column '@refused'"):
        two.bulk(unmarked)
