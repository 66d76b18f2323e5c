"""When rows of a later version keep their numbers, and when nothing is believed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.execution.sources.topology import topology_refresh
from omnigraph.execution.sources.topology.append_array import AppendArray, PatchedArray
from omnigraph.execution.sources.topology.memory_cache import MemoryCache
from omnigraph.execution.sources.topology.topology_refresh import ChangesSince, extend_rows
from omnigraph.execution.sources.topology.topology_rows import (
    CacheTiers,
    DenseRows,
    InheritedEntry,
    number_rows,
)
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning.change_sets import LoadedChange
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import Bulk, Changed, Maintenance, Spilled
from people import with_index

_stores = count()
SCHEMA = pa.schema([pa.field("__id", pa.utf8(), nullable=False), pa.field("c1", pa.int64())])


class Line:
    """Versions of one table."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.tables = Tables(f"memory://extension-{next(_stores)}")
        empty = self.tables.create("t/Thing-00000001.lance", SCHEMA)
        self.pin = self.tables.append(empty, [self._staged(empty, ids)])
        self.older = number_rows(self.tables.open(self.pin), kept=CacheTiers(MemoryCache()))

    def changed(self, new: Sequence[str], *, dead: Sequence[str] = ()) -> Pin:
        rows = self.tables.open(self.pin).find("__id", pa.array(dead, pa.utf8()))["_rowid"]
        staged = [self._staged(self.pin, new)] if new else []
        return self.tables.replace(self.pin, dead=rows.combine_chunks(), staged=staged)

    def overwritten(self, ids: Sequence[str]) -> Pin:
        return self.tables.overwrite(self.pin, [self._staged(self.pin, ids)])

    def extended(
        self, pin: Pin, *changes: LoadedChange, keeps_numbers: bool = True
    ) -> DenseRows | None:
        ids = self.older.read(["__id"])["__id"].to_pylist()
        return extend_rows(
            self.older,
            self.tables.open(pin),
            changes,
            numbers_of=(lambda asked: _places(ids, asked)) if keeps_numbers else None,
        )

    def _staged(self, pin: Pin, ids: Sequence[str]) -> Staged:
        rows = pa.table([list(ids), list(range(len(ids)))], schema=SCHEMA)
        return self.tables.write(pin, rows)


def _places(ids: list[str], asked: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(
        [ids.index(each) if each in ids else -1 for each in asked.to_pylist()], np.int32
    )


def ids_of(rows: DenseRows) -> list[str | None]:
    return list(rows.read(["__id"])["__id"].to_pylist())


def changed(inserted: str = "", updated: str = "", deleted: str = "") -> Changed:
    return Changed(IdSet(inserted), IdSet(updated), IdSet(deleted))


@pytest.mark.parametrize("keeps_numbers", [True, False])
def test_rows_that_are_added_get_the_next_numbers(keeps_numbers: bool) -> None:
    line = Line("abc")
    found = line.extended(line.changed("de"), changed("de"), keeps_numbers=keeps_numbers)
    assert found is not None
    assert ids_of(found) == ["a", "b", "c", "d", "e"]
    assert found.numbering.count_agreed(line.older.numbering) == 3
    assert (found.count, found.size, found.is_alive, found.generation) == (5, 5, None, 1)


def test_an_entity_keeps_its_number_and_a_dead_one_leaves_a_hole() -> None:
    line = Line("abc")
    found = line.extended(line.changed("bd", dead="bc"), changed("d", "b", "c"))
    assert found is not None
    assert ids_of(found) == ["a", "b", None, "d"]
    assert found.is_alive is not None
    assert found.is_alive.tolist() == [True, True, False, True]
    assert found.all.tolist() == [0, 1, 3]
    assert found.find_by_row_ids(found.row_ids).tolist() == [0, 1, -1, 3]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_copies_get_new_numbers_where_nobody_else_knows_the_old_ones(is_indexed: bool) -> None:
    line = Line("abc")
    if is_indexed:
        line.pin = with_index(line.tables, line.pin, "__id", name="of_id")
        line.older = number_rows(line.tables.open(line.pin), kept=CacheTiers(MemoryCache()))
    pin = line.changed("bd", dead="bc")
    found = line.extended(pin, changed("d", "b", "c"), keeps_numbers=False)
    assert found is not None
    assert ids_of(found) == ["a", None, None, "b", "d"]


def test_what_is_told_in_several_changes_is_told_in_their_order() -> None:
    line = Line("abc")
    pin = line.changed("bx", dead="bc")
    told: list[LoadedChange] = [
        changed("xy"),
        changed(deleted="bcy"),
        Maintenance(),
        changed("b"),
        changed("", "x"),
    ]
    found = line.extended(pin, *told)
    assert found is not None
    assert ids_of(found) == ["a", "b", None, "x"]
    assert line.extended(pin, *reversed(told)) is None


def test_rows_that_nobody_told_of_are_not_believed() -> None:
    line = Line("abc")
    pin = line.changed("de", dead="c")
    assert line.extended(pin, changed("de", "", "c")) is not None
    for lie in (
        changed("d", "", "c"),
        changed("def", "", "c"),
        changed("de"),
        changed("d", "", "ce"),
        changed("dx", "", "c"),
    ):
        assert line.extended(pin, lie) is None


@pytest.mark.parametrize("keeps_numbers", [True, False])
def test_a_table_that_was_replaced_is_not_believed_whatever_is_told(keeps_numbers: bool) -> None:
    line = Line("abc")
    for ids in ("abc", "cba", "xyz", "abcde"):
        pin = line.overwritten(ids)
        known = "".join(set(ids) & set("abc"))
        told = changed("".join(set(ids) - set("abc")), known, "".join(set("abc") - set(ids)))
        found = line.extended(pin, told, keeps_numbers=keeps_numbers)
        if found is not None:
            living = [each for each in ids_of(found) if each is not None]
            assert sorted(living) == sorted(ids)
        assert line.extended(pin, changed(), keeps_numbers=keeps_numbers) is None


def test_a_bulk_load_adds_whom_it_does_not_name() -> None:
    line = Line("abc")
    pin = line.changed("defg", dead="c")
    found = line.extended(pin, Bulk(("f",), 3), changed("d", "", "c"))
    assert found is not None
    assert ids_of(found) == ["a", "b", None, "d", "e", "f", "g"]
    assert line.extended(pin, Bulk(("f",), 4, replaces=True), changed("", "", "c")) is None
    assert line.extended(pin, Bulk(("f",), 3), changed("x", "", "c")) is None


def test_maintenance_changes_nothing() -> None:
    line = Line("abc")
    pin = with_index(line.tables, line.pin, "__id", name="of_id")
    found = line.extended(pin, Maintenance())
    assert found is not None
    assert np.array_equal(found.row_ids, line.older.row_ids)
    assert found.numbering == line.older.numbering


def test_a_version_that_differs_much_is_not_worth_it() -> None:
    pin = Pin("t/Thing-00000001.lance", "8000000000000001", 10, 1, 1)
    assert ChangesSince(pin, (changed("x"), Maintenance())).is_small
    assert not ChangesSince(pin, (changed("x"), changed("", "y"))).is_small
    assert not ChangesSince(pin, (Spilled("file", 1, 1, 1),)).is_small
    assert not ChangesSince(pin, (Bulk(("file",), 2),)).is_small
    assert not ChangesSince(pin, (Bulk(("file",), 1, replaces=True),)).is_small


def test_numbers_are_given_out_again_when_most_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line("abcd")
    pin = line.changed("", dead="abc")
    assert line.extended(pin, changed(deleted="abc")) is None
    monkeypatch.setattr(topology_refresh, "GONE_SHARE_MAX", 0.8)
    assert line.extended(pin, changed(deleted="abc")) is not None


def test_what_is_newer_than_a_piece_is_read_from_its_rows_on() -> None:
    line = Line("abc")
    was = line.older.to_inherited(MemoryCache())  # type: ignore[arg-type]  # any piece
    line.older.parts.keep("c1", line.older.to_inherited(line.older))
    found = line.extended(line.changed("bd", dead="b"), changed("d", "b"))
    assert found is not None
    for columns in (["c1"], ["__id"], ["__id", "c1"]):
        at, rows = found.read_since(was, columns)
        assert at.tolist() == [1, 3]
        assert rows.column_names == columns
    at, rows = found.read_since(
        InheritedEntry(None, -9, -1, PatchedArray(AppendArray(np.zeros(0, np.uint64)))), ["__id"]
    )
    assert dict(zip(at.tolist(), rows["__id"].to_pylist(), strict=True)) == {
        0: "a", 1: "b", 2: "c", 3: "d",
    }  # fmt: skip
