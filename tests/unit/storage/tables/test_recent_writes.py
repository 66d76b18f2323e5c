"""What this process wrote lately is known without reading a table."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from itertools import count
from random import Random

import pyarrow as pa
import pytest

from omnigraph.storage.tables import recent_writes
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.recent_writes import RowChanges

LARGE = 8 * 1024 * 1024
_stores = count()
SCHEMA = pa.schema([pa.field("__id", pa.utf8(), nullable=False), pa.field("c1", pa.int64())])


def tables() -> tuple[Tables, Pin]:
    made = Tables(f"memory://recent-{next(_stores)}")
    empty = made.create("t/Thing-00000001.lance", SCHEMA)
    return made, added(made, empty, range(200))


def added(store: Tables, pin: Pin, values: Sequence[int]) -> Pin:
    return replaced(store, pin, values, dead=())


def replaced(store: Tables, pin: Pin, values: Sequence[int], *, dead: Sequence[int]) -> Pin:
    rows = pa.table([[str(each) for each in values], list(values)], schema=SCHEMA)
    ids = pa.array([str(each) for each in dead], pa.utf8())
    row_ids = store.open(pin).find("__id", ids)["_rowid"].combine_chunks()
    staged = [store.write(pin, rows)] if values else []
    if not dead:
        return store.append(pin, staged)
    return store.replace(pin, dead=row_ids, staged=staged)


def rows_of(store: Tables, pin: Pin) -> dict[int, int]:
    found = store.open(pin).scan(columns=["c1", "_rowid"])
    return dict(zip(found["_rowid"].to_pylist(), found["c1"].to_pylist(), strict=True))


def applied(store: Tables, first: Pin, changes: RowChanges) -> dict[int, int]:
    """The rows of a version, from those of an older one and what changed."""
    rows = rows_of(store, first)
    for row_id in changes.dead.tolist():
        rows.pop(row_id, None)
    new = zip(changes.row_ids.tolist(), changes.rows["c1"].to_pylist(), strict=True)
    return rows | dict(new)


@pytest.mark.parametrize("seed", range(6))
def test_changes_lead_from_one_version_to_a_later_one(seed: int) -> None:
    random = Random(seed)
    store, first = tables()
    pin, living, fresh = first, set(range(200)), 200
    for _ in range(8):
        dead = random.sample(sorted(living), random.randrange(4))
        values = list(range(fresh, fresh + random.randrange(3)))
        fresh += len(values)
        if dead or values:
            pin = replaced(store, pin, values, dead=dead)
        living = living - set(dead) | set(values)
        if random.random() < 0.3 and (plan := store.plan_compaction(pin, is_thorough=True)):
            done = store.replay(store.compact(plan), pin)
            assert done is not None
            pin = done
    changes = store.find_changes_since(store.open(pin), {first.version})
    assert changes is not None
    assert applied(store, first, changes) == rows_of(store, pin)
    assert sorted(rows_of(store, pin).values()) == sorted(living)


def test_a_version_of_which_too_much_is_new_has_to_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, first = tables()
    second = added(store, first, range(300, 302))
    assert store.find_changes_since(store.open(second), {first.version}) is not None
    monkeypatch.setattr(recent_writes, "STEP_BYTES_MAX", 8)
    third = added(store, second, range(400, 500))
    assert store.find_changes_since(store.open(third), {first.version, second.version}) is None


def cut(rows: pa.Table) -> pa.Table:
    return rows.slice(1_000, 2)


def narrowed(rows: pa.Table) -> pa.Table:
    """Columns that came beside a large one in one message of Arrow."""
    sink = pa.BufferOutputStream()
    few = rows.slice(0, 2).append_column("body", pa.array([bytes(LARGE), b""], pa.binary()))
    with pa.ipc.new_stream(sink, few.schema) as writer:
        writer.write_table(few)
    return pa.ipc.open_stream(sink.getvalue()).read_all().select(SCHEMA.names)


@pytest.mark.parametrize("part_of", [cut, narrowed])
def test_what_is_remembered_keeps_nothing_larger_alive(
    part_of: Callable[[pa.Table], pa.Table],
) -> None:
    store, first = tables()
    before = pa.total_allocated_bytes()
    values = range(1_000, 1_000 + LARGE // 16)
    rows = pa.table([[str(each) for each in values], list(values)], schema=SCHEMA)
    few = part_of(rows)
    second = store.append(first, [store.write(first, few)])
    del rows, few
    gc.collect()
    assert pa.total_allocated_bytes() - before < LARGE // 4
    changes = store.find_changes_since(store.open(second), {first.version})
    assert changes is not None
    assert len(changes.rows) == 2


def test_a_table_that_was_overwritten_has_to_be_read() -> None:
    store, first = tables()
    rows = pa.table([["a"], [1]], schema=SCHEMA)
    second = store.overwrite(first, [store.write(first, rows)])
    assert store.find_changes_since(store.open(second), {first.version}) is None


def test_old_steps_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_writes, "STEPS_MAX", 2)
    store, first = tables()
    pin = first
    for number in range(300, 303):
        pin = added(store, pin, [number])
    assert store.find_changes_since(store.open(pin), {first.version}) is None
