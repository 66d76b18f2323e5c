"""Segments of indexes that were built on one version and are committed on a newer one."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import people as world
from omnigraph.storage.tables import fragment_compaction
from omnigraph.storage.tables.lance_tables import IndexSpec, Pin, Tables
from omnigraph.storage.tables.table_indexes import SEGMENTS_MAX, Index
from places import fresh_uri

SPECS = [
    IndexSpec("by_id", "__id"),
    IndexSpec("by_age", "age"),
    IndexSpec("by_bio", "bio"),
]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path / "graph"), is_durable=False)


def test_indexes_built_before_other_writes_cover_what_is_still_there(tables: Tables) -> None:
    old = world.start(tables, range(5), range(5, 9))
    indexed = tables.build_indexes(old, SPECS)
    assert indexed is not None
    new = world.update(tables, world.delete(tables, old, [1]), [2, 6], age=90)
    new = world.add(tables, new, range(20, 23))
    done = tables.replay(indexed, new)
    assert done is not None
    assert {index.name for index in tables.open(done).indexes} == {"by_id", "by_age", "by_bio"}
    assert {len(index.uncovered) for index in tables.open(done).indexes} == {2}
    assert tables.open(done).count_covered_rows(index_of(tables, done, "by_id")) == 6
    assert_found(tables, done)
    assert world.ages(tables, done) == world.ages(tables, new)


def test_there_is_nothing_to_build_twice_or_on_an_empty_table(tables: Tables) -> None:
    empty = world.start(tables)
    assert tables.build_indexes(empty, SPECS) is None
    pin = built(tables, world.add(tables, empty, range(3)))
    assert tables.build_indexes(pin, SPECS) is None


def test_a_fragment_whose_rows_all_died_meanwhile_is_no_obstacle(tables: Tables) -> None:
    old = world.start(tables, range(3), range(3, 6))
    indexed = tables.build_indexes(old, SPECS[:2])
    assert indexed is not None
    done = tables.replay(indexed, world.delete(tables, old, range(3)))
    assert done is not None
    assert [len(index.covered) for index in tables.open(done).indexes] == [1, 1]
    assert_found(tables, done)


def test_what_somebody_else_indexed_meanwhile_is_not_indexed_twice(tables: Tables) -> None:
    old = built(tables, world.start(tables, range(5)))
    old = world.add(tables, old, range(5, 9))
    mine, theirs = tables.build_indexes(old, SPECS), tables.build_indexes(old, SPECS)
    assert mine is not None
    assert theirs is not None
    first = tables.replay(theirs, old)
    assert first is not None
    assert tables.replay(mine, first) == first
    assert_found(tables, first)


def test_rows_of_compacted_fragments_are_not_found_twice(tables: Tables) -> None:
    old = world.start(tables, *([number] for number in range(40)))
    indexed = tables.build_indexes(old, SPECS)
    assert indexed is not None
    compacted = world.compact(tables, old)
    # Every fragment that the segments cover is gone.
    assert tables.replay(indexed, compacted) == compacted
    plan = tables.plan_compaction(old)
    assert plan is not None
    done = tables.replay(tables.compact(plan), built(tables, old))
    assert done is not None
    assert_found(tables, done)


def test_a_compaction_keeps_its_indexes_covered_while_others_write(tables: Tables) -> None:
    pin = built(tables, world.start(tables, *([number, number + 100] for number in range(40))))
    plan = tables.plan_compaction(pin)
    assert plan is not None
    compacted = tables.compact(plan)
    newer = world.add(tables, world.update(tables, pin, [3], age=90), [50])
    done = tables.replay(compacted, newer)
    assert done is not None
    for index in tables.open(done).indexes:
        # Only what was written meanwhile: the new copy of one row, and another one.
        assert len(index.uncovered) == 2, index
    assert_found(tables, done)


def test_a_compaction_that_is_overtaken_by_many_writes_only_loses_coverage(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragment_compaction, "RESERVED_IDS", 0)
    pin = built(tables, world.start(tables, *([number] for number in range(40))))
    plan = tables.plan_compaction(pin)
    assert plan is not None
    compacted = tables.compact(plan)
    done = tables.replay(compacted, world.add(tables, pin, [50]))
    assert done is not None
    assert not index_of(tables, done, "by_id").covered
    assert_found(tables, done)
    extended = tables.build_indexes(done, SPECS)
    assert extended is not None
    done = tables.replay(extended, done)
    assert done is not None
    assert_found(tables, done)
    assert not any(index.uncovered for index in tables.open(done).indexes)


def test_a_row_that_is_updated_all_the_time_does_not_stop_compactions(tables: Tables) -> None:
    pin = built(tables, world.start(tables, *([number] for number in range(40))))
    plan = tables.plan_compaction(pin)
    assert plan is not None
    compacted = tables.compact(plan)
    # Its fragment is gone, and so is that of another row.
    newer = world.delete(tables, world.update(tables, pin, [3], age=90), [4])
    done = tables.replay(compacted, newer)
    assert done is not None
    assert done.fragments < 5
    assert world.ages(tables, done) == world.ages(tables, newer)
    assert_found(tables, done)
    # Whoever compacts the same fragments comes too late.
    assert tables.replay(compacted, done) is None


def test_segments_are_merged_before_there_are_many(tables: Tables) -> None:
    pin = world.start(tables)
    for number in range(SEGMENTS_MAX + 3):
        pin = built(tables, world.add(tables, pin, range(10 * number, 10 * number + 10)))
        assert max(index.segments for index in tables.open(pin).indexes) <= SEGMENTS_MAX
        assert_found(tables, pin)


def test_a_table_can_be_read_while_it_is_indexed(tables: Tables) -> None:
    pin = world.start(tables, range(30_000))
    failures: list[BaseException] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                tables.open(pin).find("age", pa.array([7]))
        except BaseException as error:  # noqa: BLE001 — the test looks at it
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(3):
        tables.build_indexes(pin, SPECS)
        world.with_index(tables, pin, "age", name="by_age")
    is_done.set()
    reader.join()
    assert failures == []


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_maintenance_replayed_over_random_writes_loses_and_repeats_nothing(seed: int) -> None:
    random = Random(seed)
    tables = Tables(fresh_uri(), is_durable=False)
    pin = world.start(tables, *([number, number + 100] for number in range(40)))
    waiting = []
    for _ in range(12):
        match random.randrange(5):
            case 0:
                pin = world.add(tables, pin, [1000 + pin.high_water * 3 + n for n in range(3)])
            case 1 | 2:
                ages = world.ages(tables, pin)
                some = [int(name[1:]) for name in random.sample(sorted(ages), k=min(4, len(ages)))]
                change = world.delete if random.random() < 0.5 else _aged
                pin = change(tables, pin, some)
            case 3:
                plan = tables.plan_compaction(pin, is_thorough=random.random() < 0.5)
                waiting.append(tables.compact(plan) if plan else tables.build_indexes(pin, SPECS))
            case _:
                waiting.append(tables.build_indexes(pin, random.sample(SPECS, k=2)))
        if waiting and random.random() < 0.6:
            work = waiting.pop(random.randrange(len(waiting)))
            before = world.ages(tables, pin)
            pin = (work and tables.replay(work, pin)) or pin
            assert world.ages(tables, pin) == before
    assert_found(tables, pin)


def _aged(tables: Tables, pin: Pin, numbers: list[int]) -> Pin:
    return world.update(tables, pin, numbers, age=90)


def built(tables: Tables, pin: Pin) -> Pin:
    """The version with everything indexed."""
    indexed = tables.build_indexes(pin, SPECS)
    assert indexed is not None
    done = tables.replay(indexed, pin)
    assert done is not None
    return done


def index_of(tables: Tables, pin: Pin, name: str) -> Index:
    return next(index for index in tables.open(pin).indexes if index.name == name)


def assert_found(tables: Tables, pin: Pin) -> None:
    """Every row is found once by its id, by its age and by its bio."""
    table = tables.open(pin)
    rows = table.scan(columns=["__id", "age"]).to_pylist()
    some = Random(len(rows)).sample(rows, k=min(12, len(rows)))
    for row in some:
        assert table.scan(columns=["__id"], filter=f"`__id` = '{row['__id']}'").num_rows == 1
    for age in {90, *(row["age"] for row in some)}:
        expected = sorted(row["__id"] for row in rows if row["age"] == age)
        found = table.find("age", pa.array([age]), columns=["__id"])
        assert sorted(found["__id"].to_pylist()) == expected
        bio = world.people([0], age=age)["bio"][0].as_py()
        assert sorted(table.scan(filter=f"bio = '{bio}'")["__id"].to_pylist()) == expected
