"""Damaged files of tables: found before a read, within its bound, and always by a deep check."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import CorruptObject, StorageError
from omnigraph.storage import verification
from omnigraph.storage.pins import Pin
from omnigraph.storage.tables import IndexSpec, Tables, blob_field

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64()), blob_field("b")])
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
        with pytest.raises(CorruptObject, match="its digest is not the one"):
            read(Tables(str(tmp_path), is_durable=False), pin)
        flip(path, place)
    read(Tables(str(tmp_path), is_durable=False), pin)


def is_needed(root: Path, pin: Pin, path: Path) -> bool:
    needed = Tables(str(root), is_durable=False).references(pin)
    return any(f"{path.relative_to(root)}".startswith(each) for each in needed)


def test_a_damaged_index_is_found_before_a_look_up(tmp_path: Path, pin: Pin) -> None:
    for path in (tmp_path / PATH).glob("_indices/*/*"):
        flip(path, 50)
        with pytest.raises(CorruptObject, match="_indices/"):
            look_up(Tables(str(tmp_path), is_durable=False), pin)
        flip(path, 50)


def test_beyond_the_bound_damage_is_found_by_a_deep_check_alone(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "LOOKUP_BYTES_MAX", 0)
    monkeypatch.setattr(verification, "SCAN_BYTES_PER_ROW", 0)
    (path,) = (tmp_path / PATH).glob("data/*/*")
    flip(path, 1_000)
    tables = Tables(str(tmp_path), is_durable=False)
    scan(tables, pin)
    files = tables.stored_files(pin)
    assert all(file.digest is not None for file in files)
    damaged = [file.path for file in files if tables.damage(PATH, file)]
    assert damaged == [f"data/{path.parent.name}.lance"]


def test_damage_is_never_copied_into_new_files(
    tmp_path: Path, pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "LOOKUP_BYTES_MAX", 0)
    (path,) = (tmp_path / PATH).glob("data/*.lance")
    flip(path, 300)
    tables = Tables(str(tmp_path), is_durable=False)
    plan = tables.plan_compaction(pin, is_thorough=True)
    if plan is not None:
        with pytest.raises(CorruptObject, match="its digest is not the one in its name"):
            tables.compact(plan)
    with pytest.raises(CorruptObject, match="its digest is not the one in its name"):
        tables.build_indexes(pin, [IndexSpec("by n", "n")])


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
    monkeypatch.setattr(tables._verifier, "problem", lambda *given: compared.append(given))
    row = pa.table([["new"], [1], [b"x"]], schema=SCHEMA)
    tip = tables.append(pin, [tables.write(pin, row)])
    scan(tables, tip)
    assert compared == []
