"""Lance and the disk: a pin is given away only when everything it needs has been synced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import people as world
from omnigraph.storage.tables.fragment_compaction import FANOUT
from omnigraph.storage.tables.lance_tables import Pin, Tables, make_blob_field


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files and directories that this process has synced."""
    found: set[str] = set()
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return found


def _history(tables: Tables) -> Iterator[Pin]:
    """A version of every kind."""
    schema = pa.schema([*world.SCHEMA, make_blob_field("photo")])
    pin = tables.create(world.PATH, schema)
    yield pin
    for size in (10, 100_000, 6_000_000):
        photos = pa.array([b"x" * size] * 3, pa.large_binary())
        rows = world.people(range(size, size + 3)).append_column("photo", photos)
        for is_synced in (True, False):
            pin = tables.append(pin, [tables.write(pin, rows, is_synced=is_synced)])
            yield pin
    changes: list[Callable[[Pin], Pin]] = [
        lambda pin: world.update(tables, pin, [11], age=5),
        lambda pin: world.delete(tables, pin, [12]),
        lambda pin: world.with_index(tables, pin, "__id", name="by_id"),
        lambda pin: tables.add_columns(pin, pa.schema([("size", pa.int8())])),
        lambda pin: _replace_row(tables, pin),
        lambda pin: tables.overwrite(pin, [tables.write(pin, world.people([1]), is_synced=False)]),
    ]
    for change in changes:
        pin = change(pin)
        yield pin
    for number in range(2, 2 + FANOUT):
        pin = world.add(tables, pin, [number])
    yield world.compact(tables, pin)


def _replace_row(tables: Tables, pin: Pin) -> Pin:
    staged = tables.write(pin, world.people([10]), is_synced=False)
    return tables.replace(pin, dead=world.row_ids(tables, pin, [10]), staged=[staged])


def _needed(tables: Tables, pin: Pin, root: Path) -> set[str]:
    """Every file a version needs, and every directory that leads to one."""
    files: set[Path] = set()
    for name in tables.list_references(pin):
        path = root / name
        files.update(path.rglob("*") if name.endswith("/") else [path])
    files = {path for path in files if path.is_file()}
    directories = {
        parent for path in files for parent in path.parents if root in [parent, *parent.parents]
    }
    return {str(path) for path in files | directories}


def test_everything_a_pin_needs_is_on_the_disk(tmp_path: Path, synced: set[str]) -> None:
    root = tmp_path / "graph"
    tables = Tables(str(root))
    for pin in _history(tables):
        missing = _needed(tables, pin, root) - synced
        assert missing == set(), pin


def test_a_second_process_syncs_what_the_first_may_have_left(
    tmp_path: Path, synced: set[str]
) -> None:
    root = tmp_path / "graph"
    hasty = Tables(str(root), is_durable=False)
    pin = world.start(hasty)
    hasty.write(pin, world.people([1]))
    assert synced == set()
    tables = Tables(str(root))
    pin = tables.append(pin, [tables.write(pin, world.people([2]))])
    linear = {name for name in _needed(tables, pin, root) if "_versions/1844" in name}
    assert _needed(tables, pin, root) - linear <= synced


def test_without_durability_nothing_is_synced(tmp_path: Path, synced: set[str]) -> None:
    assert list(_history(Tables(str(tmp_path / "graph"), is_durable=False)))
    assert synced == set()
