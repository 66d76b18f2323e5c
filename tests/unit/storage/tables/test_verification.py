"""Damaged files of tables: found before a read, within its bound, and always by a deep check."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import CorruptObjectError, StorageError
from omnigraph.storage.tables import file_digests, fragment_compaction, table_indexes
from omnigraph.storage.tables.file_digests import StoredFile
from omnigraph.storage.tables.lance_tables import IndexSpec, Tables, make_blob_field
from omnigraph.storage.tables.pins import Pin

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64()), make_blob_field("b")])
PATH = "t/Thing-1.lance"
COUNT = 2_000


@pytest.fixture
def pin(tmp_path: Path) -> Pin:
    """A version with data, blobs, deletions and an index."""
    tables = Tables(str(tmp_path), is_durable=False)
    pin = tables.create(PATH, SCHEMA)
    blobs = [bytes(200_000) if at == 3 else b"small" for at in range(COUNT)]
    ids = [f"thing {at:05}" for at in range(COUNT)]
    rows = pa.table([ids, list(range(COUNT)), blobs], schema=SCHEMA)
    pin = tables.append(pin, [tables.write(pin, rows)])
    found = tables.open(pin).find("id", pa.array(["thing 00007"]))
    pin = tables.replace(pin, dead=found["_rowid"].combine_chunks())
    indexed = tables.build_indexes(pin, [IndexSpec("by id", "id")])
    assert indexed is not None
    return tables.replay(indexed, pin) or pin


def scan(tables: Tables, pin: Pin) -> object:
    return tables.open(pin).scan(columns=["n"])


def look_up(tables: Tables, pin: Pin) -> object:
    return tables.open(pin).find("id", pa.array(["thing 00008"]))


READS = {"scan": scan, "look-up": look_up}
FOLDERS = {"data/*.lance": "data", "data/*/*": "blob", "_deletions/*": "", "_versions/d*": ""}


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("pattern", FOLDERS)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_flipped_bit_is_found_before_the_first_read(
    tmp_path: Path, pin: Pin, read: Callable[[Tables, Pin], object], pattern: str
) -> None:
    (path,) = (each for each in (tmp_path / PATH).glob(pattern) if is_needed(tmp_path, pin, each))
    for place in (0, 17, 400, -9):
        flip(path, place)
        with pytest.raises(CorruptObjectError, match="its digest is not the one"):
            read(Tables(str(tmp_path), is_durable=False), pin)
        flip(path, place)
    read(Tables(str(tmp_path), is_durable=False), pin)


def is_needed(root: Path, pin: Pin, path: Path) -> bool:
    needed = Tables(str(root), is_durable=False).list_references(pin)
    return any(f"{path.relative_to(root)}".startswith(each) for each in needed)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30])


INDEX_DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: flip(path, 50),
    "truncated": truncate,
    "deleted": lambda path: path.unlink(),
    "without its folder": lambda path: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGE.values(), ids=INDEX_DAMAGE)
def test_a_damaged_index_is_as_good_as_none(
    tmp_path: Path, pin: Pin, damage: Callable[[Path], object]
) -> None:
    healthy = Tables(str(tmp_path), is_durable=False)
    expected = look_up(healthy, pin)
    damage(min((tmp_path / PATH).glob("_indices/*/*")))
    tables = Tables(str(tmp_path), is_durable=False)
    assert look_up(tables, pin) == expected
    assert tables.open(pin).indexes == ()
    assert [file.path for file in tables.find_damaged_indexes(pin)] != []
    tip = delete(tables, pin, range(30, 40))
    assert tables.open(tip).count() == pin.rows - 10
    # An index that covers nothing is built over all rows, and the damaged one goes.
    indexed = tables.build_indexes(tip, [IndexSpec("by id", "id")])
    assert indexed is not None
    rebuilt = tables.replay(indexed, tip)
    assert rebuilt is not None
    (index,) = tables.open(rebuilt).indexes
    assert (index.segments, index.uncovered) == (1, frozenset())
    again = Tables(str(tmp_path), is_durable=False)
    assert again.find_damaged_indexes(rebuilt) == []
    assert look_up(again, rebuilt) == expected


def test_a_compaction_does_without_a_damaged_index(tmp_path: Path, pin: Pin) -> None:
    writer = Tables(str(tmp_path), is_durable=False)
    tip = delete(writer, pin, range(400))
    flip(min((tmp_path / PATH).glob("_indices/*/*")), 50)
    tables = Tables(str(tmp_path), is_durable=False)
    done = compact(tables, tip)
    assert done is not None
    assert tables.open(done).count() == tip.rows
    assert look_up(tables, done) == look_up(tables, tip)


def test_of_several_segments_the_sound_ones_stay(tmp_path: Path, pin: Pin) -> None:
    writer = Tables(str(tmp_path), is_durable=False)
    (old,) = (tmp_path / PATH).glob("_indices/*")
    tip = index_ids(writer, append(writer, pin, 5_000))
    assert tip is not None
    flip(min(old.glob("*")), 50)
    tables = Tables(str(tmp_path), is_durable=False)
    (index,) = tables.open(tip).indexes
    assert (index.is_damaged, index.segments, len(index.uncovered)) == (True, 1, 1)
    assert tables.open(tip).find("id", pa.array(["thing 00008", "new 5000"])).num_rows == 2
    done = index_ids(tables, tip)
    assert done is not None
    (index,) = tables.open(done).indexes
    assert (index.is_damaged, index.segments, index.uncovered) == (False, 2, frozenset())
    assert tables.open(done).find("id", pa.array(["thing 00008", "new 5000"])).num_rows == 2


def test_a_large_index_is_compared_by_a_thorough_look(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "LOOKUP_BYTES_MAX", 0)
    flip(max((tmp_path / PATH).glob("_indices/*/*")), -200)
    tables = Tables(str(tmp_path), is_durable=False)
    assert tables.find_damaged_indexes(pin) == []
    assert len(tables.find_damaged_indexes(pin, is_thorough=True)) == 1
    # From then on, reads and builds know of it.
    assert tables.open(pin).indexes == ()


def test_beyond_the_bound_damage_is_found_by_a_deep_check_alone(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "LOOKUP_BYTES_MAX", 0)
    monkeypatch.setattr(file_digests, "SCAN_BYTES_PER_ROW", 0)
    (path,) = (tmp_path / PATH).glob("data/*/*")
    flip(path, 1_000)
    tables = Tables(str(tmp_path), is_durable=False)
    scan(tables, pin)
    files = tables.list_stored_files(pin)
    assert all(file.digest is not None for file in files)
    damaged = [file.path for file in files if tables.find_damage(PATH, file)]
    assert damaged == [f"data/{path.parent.name}.lance"]


def test_damage_is_never_copied_into_new_files(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "LOOKUP_BYTES_MAX", 0)
    (path,) = (tmp_path / PATH).glob("data/*.lance")
    flip(path, 300)
    tables = Tables(str(tmp_path), is_durable=False)
    plan = tables.plan_compaction(pin, is_thorough=True)
    if plan is not None:
        with pytest.raises(CorruptObjectError, match="its digest is not the one in its name"):
            tables.compact(plan)
    with pytest.raises(CorruptObjectError, match="its digest is not the one in its name"):
        tables.build_indexes(pin, [IndexSpec("by n", "n")])


def delete(tables: Tables, pin: Pin, numbers: range) -> Pin:
    found = tables.open(pin).find("n", pa.array(numbers))
    return tables.replace(pin, dead=found["_rowid"].combine_chunks())


def compact(tables: Tables, pin: Pin) -> Pin | None:
    plan = tables.plan_compaction(pin)
    assert plan is not None
    return tables.replay(tables.compact(plan), pin)


def index_ids(tables: Tables, pin: Pin) -> Pin | None:
    indexed = tables.build_indexes(pin, [IndexSpec("by id", "id")])
    assert indexed is not None
    return tables.replay(indexed, pin)


def index_numbers(tables: Tables, pin: Pin) -> Pin | None:
    indexed = tables.build_indexes(pin, [IndexSpec("by n", "n")])
    assert indexed is not None
    return tables.replay(indexed, pin)


def append(tables: Tables, pin: Pin, number: int) -> Pin:
    row = pa.table([[f"new {number}"], [number], [b"x"]], schema=SCHEMA)
    return tables.append(pin, [tables.write(pin, row)])


def delete_more(tables: Tables, pin: Pin) -> Pin | None:
    return delete(tables, pin, range(1_000, 1_001))


COPIES = {"compaction": compact, "index build": index_numbers, "delete": delete_more}


@pytest.mark.parametrize("name", COPIES)
def test_damage_is_not_copied_by_a_process_that_has_read_and_copied_the_file_before(
    tmp_path: Path, pin: Pin, name: str
) -> None:
    tables = Tables(str(tmp_path), is_durable=False)
    tip = delete(tables, pin, range(400))
    assert compact(tables, tip) is not None
    assert index_numbers(tables, tip) is not None
    scan(tables, tip)
    look_up(tables, tip)
    (path,) = (
        each
        for each in (tmp_path / PATH).glob("_deletions/*" if name == "delete" else "data/*.lance")
        if is_needed(tmp_path, tip, each)
    )
    flip(path, 300)
    with pytest.raises(CorruptObjectError, match=path.name):
        COPIES[name](tables, tip)


def test_rows_that_died_during_a_compaction_are_read_from_sound_files_only(
    tmp_path: Path, pin: Pin
) -> None:
    tables = Tables(str(tmp_path), is_durable=False)
    planned = delete(tables, pin, range(400))
    plan = tables.plan_compaction(planned)
    assert plan is not None
    compacted = tables.compact(plan)
    tip = delete(tables, planned, range(400, 410))
    (path,) = (
        each for each in (tmp_path / PATH).glob("_deletions/*") if is_needed(tmp_path, tip, each)
    )
    flip(path, 300)
    with pytest.raises(CorruptObjectError, match=path.name):
        tables.replay(compacted, tip)


def test_a_damaged_segment_is_not_merged_into_a_new_one(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_indexes, "SEGMENTS_MAX", 2)
    tables = Tables(str(tmp_path), is_durable=False)
    for number in (5_000, 5_001):
        done = index_numbers(tables, append(tables, pin, number))
        assert done is not None
        pin = done
    pin = append(tables, pin, 5_002)
    look_up(tables, pin)
    names = {each.uuid for each in table_indexes.segments_of(tables._handles.get(pin), "by n")}
    for path in (tmp_path / PATH).glob("_indices/*/*"):
        if path.parent.name in names:
            flip(path, 50)
    done = index_numbers(tables, pin)
    assert done is not None
    # The other segment was found sound before; another process sees what became of it.
    again = Tables(str(tmp_path), is_durable=False)
    (left,) = again.find_damaged_indexes(done)
    assert left.path.split("/")[1] in names
    assert again.open(done).find("n", pa.array([8, 5_000, 5_001, 5_002])).num_rows == 4


def test_a_copy_compares_its_inputs_alone(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Tables(str(tmp_path), is_durable=False)
    (large,) = (tmp_path / PATH).glob("data/*.lance")
    for number in range(fragment_compaction.FANOUT):
        pin = append(writer, pin, number)
    covered = index_numbers(writer, pin)
    assert covered is not None
    tip = append(writer, covered, 0)
    flip(large, 300)

    tables = Tables(str(tmp_path), is_durable=False)
    compared: list[str] = []
    problem = tables._verifier.find_problem

    def noted(table: str, file: StoredFile) -> str | None:
        compared.append(file.path)
        return problem(table, file)

    monkeypatch.setattr(tables._verifier, "find_problem", noted)
    assert index_numbers(tables, tip) is not None
    assert [path.partition("/")[0] for path in compared].count("data") == 1
    compared.clear()
    plan = tables.plan_compaction(tip)
    assert plan is not None
    rewritten = tables.rewrite(plan)
    assert len(compared) == len(rewritten.inputs)
    assert not any(path.endswith(large.name) for path in compared)


def test_a_missing_file_is_reported_by_its_reader(tmp_path: Path, pin: Pin) -> None:
    (path,) = (tmp_path / PATH).glob("data/*.lance")
    os.unlink(path)
    with pytest.raises(StorageError, match=path.name):
        scan(Tables(str(tmp_path), is_durable=False), pin)


def test_what_this_process_wrote_is_not_read_again(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(str(tmp_path), is_durable=False)
    scan(tables, pin)
    compared: list[object] = []
    monkeypatch.setattr(tables._verifier, "find_problem", lambda *given: compared.append(given))
    row = pa.table([["new"], [1], [b"x"]], schema=SCHEMA)
    tip = tables.append(pin, [tables.write(pin, row)])
    scan(tables, tip)
    assert compared == []
