"""Lance and rows: deletes are not lost, dead rows stay dead, no row is there twice.

Every pair of tests shows first that the careless way goes wrong on this version of Lance, and then
that the gateway does not.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path

import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation

import people as world
from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.lance_tables import Compacted, Pin, Tables


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path / "graph"), is_durable=False)


def test_a_stale_deletion_vector_loses_newer_deletes(tables: Tables) -> None:
    pin = world.start(tables, range(3000))
    base = world.dataset_of(tables, pin)
    first, second = (base.get_fragments()[0].delete_rows([offset]) for offset in (10, 20))
    once = tables._handles.commit(pin, LanceOperation.Update(updated_fragments=[first]))
    twice = tables._handles.commit(once, LanceOperation.Update(updated_fragments=[second]))
    assert twice.rows == 2999


def test_deletes_planned_on_one_version_both_stay(tables: Tables) -> None:
    pin = world.start(tables, range(3000))
    first, second = world.row_ids(tables, pin, [10]), world.row_ids(tables, pin, [20])
    rebased = tables.replace(tables.replace(pin, dead=first), dead=second)
    assert rebased.rows == 2998
    assert not {"p10", "p20"} & world.ages(tables, rebased).keys()


def _compacted(tables: Tables, pin: Pin) -> Compacted:
    plan = tables.plan_compaction(pin)
    assert plan is not None
    return tables.compact(plan)


def _tail(tables: Tables) -> Pin:
    return world.start(
        tables, *([number] for number in range(30)), range(100, 110), range(200, 210)
    )


def test_a_rewrite_as_planned_brings_deleted_rows_back(tables: Tables) -> None:
    pin = _tail(tables)
    group = _compacted(tables, pin).groups[0]
    later = world.dataset_of(tables, world.delete(tables, pin, [104]))
    outputs = [copy(fragment) for fragment in group.outputs]
    for number, output in enumerate(outputs, pin.high_water + 1):
        output.id = number
    inputs = [later.get_fragment(number).metadata for number in group.inputs]
    rewrite = LanceOperation.Rewrite([LanceOperation.RewriteGroup(inputs, outputs)], [])
    careless = LanceDataset.commit(later, rewrite, read_version=later.version, detached=True)
    assert careless.count_rows("__id = 'p104'") == 1


def test_a_replayed_compaction_keeps_deleted_rows_dead(tables: Tables) -> None:
    pin = _tail(tables)
    compacted = _compacted(tables, pin)
    later = world.update(tables, world.delete(tables, pin, [104, 205]), [106], age=99)
    tip = tables.replay(compacted, later)
    assert tip is not None
    assert world.ages(tables, tip) == world.ages(tables, later)
    assert tip.fragments < later.fragments
    assert tip.high_water > later.high_water


def test_a_replay_without_its_inputs_asks_for_a_new_plan(tables: Tables) -> None:
    pin = _tail(tables)
    compacted = _compacted(tables, pin)
    assert tables.replay(compacted, tables.overwrite(pin, [])) is None
    assert tables.replay(compacted, world.compact(tables, pin)) is None


def test_a_replay_leaves_out_an_input_whose_rows_all_died(tables: Tables) -> None:
    pin = _tail(tables)
    compacted = _compacted(tables, pin)
    later = tables.replay(compacted, world.delete(tables, pin, [7]))
    assert later is not None
    assert (later.rows, len(world.row_ids(tables, later, [7]))) == (pin.rows - 1, 0)


def test_a_compaction_is_not_replayed_beside_its_own_history(tables: Tables) -> None:
    pin = _tail(tables)
    compacted = _compacted(tables, world.delete(tables, pin, [104]))
    for other in (pin, world.delete(tables, pin, [105])):
        assert tables.replay(compacted, other) is None


def test_compaction_keeps_row_ids(tables: Tables) -> None:
    pin = _tail(tables)
    before = world.row_ids(tables, pin, [5, 104])
    after = world.row_ids(tables, world.compact(tables, pin), [5, 104])
    assert before == after


def test_lance_appends_the_same_fragment_twice(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    fragments = list(tables.write(pin, world.people([7])).fragments)
    once = tables._handles.commit(pin, LanceOperation.Append(fragments))
    twice = tables._handles.commit(once, LanceOperation.Append(fragments))
    assert tables.open(twice).scan(filter="__id = 'p7'").num_rows == 2


def test_the_gateway_takes_written_rows_once(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    staged = tables.write(pin, world.people([7]))
    none = pa.array([], pa.uint64())
    once = tables.append(pin, [staged])
    with pytest.raises(StorageRefusedError, match="already in it"):
        tables.append(once, [staged])
    with pytest.raises(StorageRefusedError, match="already in it"):
        tables.replace(once, dead=none, staged=[staged])
    with pytest.raises(StorageRefusedError, match="already in it"):
        tables.append(pin, [staged, staged])
    # A lost race commits the same rows again, on the winner's version.
    assert world.ages(tables, tables.append(world.add(tables, pin, [8]), [staged])).keys() == {
        "p0", "p1", "p7", "p8",
    }  # fmt: skip


def test_branches_with_equal_ids_share_a_session_without_mixing(tables: Tables) -> None:
    fork = world.with_index(tables, world.start(tables, range(200)), "age", name="by_age")
    tips = dict.fromkeys((1000, 2000, 3000), fork)
    for step in range(8):
        for age, tip in tips.items():
            tips[age] = world.update(tables, tip, [step], age=age + step)
    assert len({tip.high_water for tip in tips.values()}) == 1
    for _ in range(3):
        for age, tip in tips.items():
            expected = {f"p{n}": age + n if n < 8 else n for n in range(200)}
            assert world.ages(tables, tip) == expected
            found = tables.open(tip).scan(columns=["__id"], filter=f"age = {age + 5}")
            assert found["__id"].to_pylist() == ["p5"]
            assert tables.open(tip).scan(filter="age = 5").num_rows == 0
            taken = tables.open(tip).take(world.row_ids(tables, tip, [5]))
            assert taken["age"].to_pylist() == [age + 5]
