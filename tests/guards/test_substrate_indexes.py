"""Lance and indexes: an index answers for the rows that are there, and for no others."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from lance import LanceOperation
from lance.optimize import Compaction as LancePlanner

import people as world
from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.fragment_compaction import FANOUT
from omnigraph.storage.tables.lance_tables import Pin, Tables
from omnigraph.storage.tables.table_indexes import SEGMENTS_MAX


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path / "graph"), is_durable=False)


def test_an_updated_row_is_found_by_its_new_value_only(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(300)), "age", name="by_age")
    old = world.row_ids(tables, pin, [7])
    pin = world.update(tables, pin, [7], age=900)
    assert world.row_ids(tables, pin, [7]) != old
    extended = world.with_index(tables, pin, "age", name="by_age")
    for tip in (pin, extended, world.compact(tables, extended)):
        table = tables.open(tip)
        assert table.scan(filter="age = 7").num_rows == 0
        assert table.scan(filter="age = 900")["__id"].to_pylist() == ["p7"]


def _covered_and_gone(tables: Tables) -> Pin:
    """An index covers four fragments; the last of them is gone, two others are small."""
    pin = world.start(tables, range(2000), [2001, 2002], [2003], [2004])
    pin = world.with_index(tables, pin, "age", name="by_age")
    return world.delete(tables, pin, [2004])


def test_a_reused_fragment_id_hides_rows_from_an_index(tables: Tables) -> None:
    pin = _covered_and_gone(tables)
    dataset = world.dataset_of(tables, pin)
    task = LancePlanner.plan(dataset, {"target_rows_per_fragment": 1000}).tasks[0]
    result: Any = task.execute(dataset)
    [output] = result.new_fragments
    output.id = max(dataset.fragment_ids()) + 1
    group = LanceOperation.RewriteGroup(result.original_fragments, [output])
    careless = tables._handles.commit(pin, LanceOperation.Rewrite([group], []))
    assert tables.open(careless).scan(filter="age = 2003").num_rows == 0


def test_new_fragments_get_ids_above_every_used_one(tables: Tables) -> None:
    pin = _covered_and_gone(tables)
    assert pin.high_water == 4
    assert max(world.dataset_of(tables, pin).fragment_ids()) == 3
    for number in range(3000, 3000 + FANOUT):
        pin = world.add(tables, pin, [number])
    compacted = world.compact(tables, pin)
    assert compacted.fragments < pin.fragments
    assert compacted.high_water > pin.high_water
    table = tables.open(compacted)
    for age in (5, 2001, 2003, 3007):
        assert table.scan(filter=f"age = {age}")["__id"].to_pylist() == [f"p{age}"]
    replaced = tables.overwrite(compacted, [tables.write(compacted, world.people([1]))])
    assert min(world.dataset_of(tables, replaced).fragment_ids()) > compacted.high_water


def test_a_rewritten_fragment_is_indexed_again(tables: Tables) -> None:
    pin = world.start(tables, range(3000), range(3000, 3010))
    pin = world.with_index(tables, pin, "age", name="by_age")
    pin = world.compact(tables, world.delete(tables, pin, range(0, 3000, 5)))
    assert [index.uncovered for index in tables.open(pin).indexes] == [frozenset()]
    found = tables.open(pin).scan(filter="age IN (5, 7, 3003)")
    assert sorted(found["age"].to_pylist()) == [7, 3003]


def test_a_segment_per_small_compaction_stops_compaction(tables: Tables) -> None:
    pin = world.start(tables, *(range(10 * n, 10 * n + 10) for n in range(6)))
    options: Any = {"target_rows_per_fragment": 1000}
    assert LancePlanner.plan(world.dataset_of(tables, pin), options).num_tasks() == 1
    for number in world.dataset_of(tables, pin).fragment_ids():
        segment = world.dataset_of(tables, pin).create_index_uncommitted(
            "age", "BTREE", name="s", fragment_ids=[number]
        )
        careless = LanceOperation.CreateIndex([dataclasses.replace(segment, name="by_age")], [])
        pin = tables._handles.commit(pin, careless)
    assert LancePlanner.plan(world.dataset_of(tables, pin), options).num_tasks() == 0


def test_a_compaction_of_the_tail_adds_no_segment(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(2000)), "__id", name="by_id")
    for number in range(3000, 3000 + FANOUT):
        pin = world.add(tables, pin, [number])
    pin = world.compact(tables, pin)
    [index] = tables.open(pin).indexes
    assert (pin.fragments, index.segments, len(index.uncovered)) == (2, 1, 1)


@pytest.mark.slow
def test_many_upserts_by_an_indexed_id_leave_few_fragments(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(1000)), "__id", name="by_id")
    expected = {f"p{number}": number for number in range(1000)}
    for step in range(500):
        number = step * 37 % 900 if step % 2 else 5000 + step
        pin = world.update(tables, pin, [number], age=step)
        expected[f"p{number}"] = step
        pin = world.compact(tables, pin)
        assert pin.fragments <= 3 * FANOUT
    assert world.ages(tables, pin) == expected
    assert tables.open(pin).indexes[0].segments <= SEGMENTS_MAX


def test_lance_refuses_to_merge_segments_of_the_future(tables: Tables) -> None:
    pin = world.start(tables, range(50), range(50, 60))
    dataset = world.dataset_of(tables, pin)
    segments = [
        dataset.create_index_uncommitted("age", "BTREE", name="s", fragment_ids=[number])
        for number in (1, 2)
    ]
    future = [dataclasses.replace(one, dataset_version=2**64 - 1) for one in segments]
    with pytest.raises(ValueError, match="future dataset version"):
        dataset.merge_existing_index_segments(future)


def test_indexes_extend_and_merge_without_end(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(300)), "age", name="by_age")
    for step in range(3 * SEGMENTS_MAX):
        number = 1000 + step
        pin = world.with_index(tables, world.add(tables, pin, [number]), "age", name="by_age")
        [index] = tables.open(pin).indexes
        assert index.segments <= SEGMENTS_MAX
        assert not index.uncovered
        for age in (7, number):
            assert tables.open(pin).scan(filter=f"age = {age}").num_rows == 1


def test_an_index_that_covers_all_rows_is_not_built_again(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(20)), "age", name="by_age")
    assert world.with_index(tables, pin, "age", name="by_age") == pin
    assert [index.segments for index in tables.open(pin).indexes] == [1]
    assert tables.open(pin).scan(filter="age = 7")["__id"].to_pylist() == ["p7"]


def _of_words(dataset: Any) -> LanceOperation.CreateIndex:
    """An index of a kind that we do not build."""
    staged = dataset.create_index_uncommitted("bio", "INVERTED", name="s", fragment_ids=[1])
    segment = dataset.merge_existing_index_segments([staged])
    return LanceOperation.CreateIndex([dataclasses.replace(segment, name="by_bio")], [])


def test_an_index_of_another_program_is_none_of_ours_and_harmless(tables: Tables) -> None:
    pin = world.with_index(tables, world.start(tables, range(20)), "age", name="by_age")
    pin = tables._handles.commit(pin, _of_words(world.dataset_of(tables, pin)))
    assert [index.name for index in tables.open(pin).indexes] == ["by_age"]
    for number in range(100, 100 + FANOUT):
        pin = world.add(tables, pin, [number])
    pin = world.compact(tables, world.update(tables, pin, [7], age=900))
    assert len(world.ages(tables, pin)) == 20 + FANOUT
    assert tables.open(pin).scan(filter="age = 900")["__id"].to_pylist() == ["p7"]


def test_a_panic_becomes_our_error(tables: Tables) -> None:
    pin = world.start(tables, range(20))
    pin = tables._handles.commit(pin, _of_words(world.dataset_of(tables, pin)))
    with pytest.raises(StorageRefusedError, match=r"commit t/Person.*panicked") as caught:
        tables._handles.commit(pin, _of_words(world.dataset_of(tables, pin)))
    assert not isinstance(caught.value.__cause__, Exception)


def test_an_empty_table_has_nothing_to_index(tables: Tables) -> None:
    pin = world.start(tables)
    assert world.with_index(tables, pin, "age", name="by_age") == pin
