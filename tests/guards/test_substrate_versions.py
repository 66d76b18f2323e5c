"""Lance and versions: small manifests, stable field ids, text for version numbers, no cleanup."""

from __future__ import annotations

import ast
import json
import re
from copy import copy
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.schema import LanceSchema

import people as world
from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.fragment_compaction import FANOUT
from omnigraph.storage.tables.lance_tables import Pin, Tables

SOURCES = sorted((Path(__file__).parents[2] / "src" / "omnigraph").rglob("*.py"))
MANIFEST_BYTES_MAX = 8 * 1024
# Each of them moves a table's linear history, trusts it, or keeps row ids across an update.
FORBIDDEN_CALLS = {
    "cleanup_old_versions",
    "merge_insert",
    "compact_files",
    "optimize_indices",
    "create_scalar_index",
    "commit_existing_index_segments",
    "drop_columns",
    "alter_columns",
    "tracked_files",
    "checkout_latest",
    "restore",
}
ROW_STAMPS = re.compile("_row_(created|last_updated)_at_version")


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path / "graph"), is_durable=False)


def _manifest_bytes(tables: Tables, pin: Pin) -> int:
    name = f"_versions/d{int(pin.version, 16)}.manifest"
    return (Path(tables._handles.root) / pin.path / name).stat().st_size


def test_manifests_stay_small_over_many_commits(tables: Tables) -> None:
    pin = world.start(tables)
    for number in range(500):
        pin = world.compact(tables, world.add(tables, pin, [number]))
        assert pin.fragments <= FANOUT
    assert _manifest_bytes(tables, pin) < MANIFEST_BYTES_MAX
    assert world.ages(tables, pin) == {f"p{number}": number for number in range(500)}


def test_row_stamps_make_a_compacted_manifest_grow_with_every_commit(tables: Tables) -> None:
    pin = world.start(tables, *([number] for number in range(FANOUT)))
    plan = tables.plan_compaction(pin)
    assert plan is not None
    compacted = tables.compact(plan)
    ours = tables.replay(compacted, pin)
    outputs = [copy(fragment) for fragment in compacted.groups[0].outputs]
    for number, output in enumerate(outputs, pin.high_water + 1):
        output.id = number
    dataset = world.dataset_of(tables, pin)
    inputs = [dataset.get_fragment(number).metadata for number in compacted.groups[0].inputs]
    rewrite = LanceOperation.Rewrite([LanceOperation.RewriteGroup(inputs, outputs)], [])
    careless = tables._handles.commit(pin, rewrite)
    assert ours is not None
    assert _manifest_bytes(tables, careless) - _manifest_bytes(tables, ours) > 30 * FANOUT


def test_a_large_fragment_is_not_cut_into_pieces_of_a_small_tier(tables: Tables) -> None:
    pin = world.start(tables, range(40_000), *([number] for number in range(50_000, 50_032)))
    pin = world.delete(tables, pin, range(0, 40_000, 5))
    careless: object = lance.optimize.Compaction.plan(
        world.dataset_of(tables, pin), {"target_rows_per_fragment": FANOUT}
    )
    assert 1 in [one.id for task in careless.tasks for one in task.fragments]  # type: ignore[attr-defined]  # stubs
    small = world.compact(tables, pin)
    assert small.fragments <= 3
    rows = [one.count_rows() for one in world.dataset_of(tables, small).get_fragments()]
    assert max(rows) == 32_000


def _ids(tables: Tables, pin: Pin) -> list[tuple[str, int]]:
    return _schema_ids(world.dataset_of(tables, pin).lance_schema)


def _schema_ids(schema: LanceSchema) -> list[tuple[str, int]]:
    found, rest = [], list(reversed(schema.fields()))
    while rest:
        field = rest.pop()
        found.append((field.name(), field.id()))
        rest.extend(reversed(field.children()))
    return found


def test_a_schema_from_arrow_numbers_fields_from_scratch(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    kept = pa.schema([field for field in world.SCHEMA if field.name != "age"])
    assert ("bio", 2) in _ids(tables, pin)
    assert ("bio", 1) in _schema_ids(LanceSchema.from_pyarrow(kept))


def test_every_change_of_a_table_keeps_its_field_ids(tables: Tables) -> None:
    pin = world.start(tables, range(3))
    before = _ids(tables, pin)
    place = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])
    for added in (pa.schema([("place", place)]), pa.schema([("size", pa.int8())])):
        pin = tables.add_columns(pin, added)
        assert _ids(tables, pin)[: len(before)] == before
        before = _ids(tables, pin)
    pin = world.update(tables, pin, [1], age=9)
    pin = tables.overwrite(pin, [tables.write(pin, world.people([4]))])
    assert _ids(tables, pin) == before


def test_columns_are_not_added_after_a_physical_drop(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    rebuild, (metadata, *protos) = world.dataset_of(tables, pin).lance_schema.__reduce__()
    without_age = rebuild(metadata, protos[0], protos[2])
    dropped = tables._handles.commit(pin, LanceOperation.Project(without_age))
    assert _ids(tables, dropped) == [("__id", 0), ("bio", 2)]
    with pytest.raises(StorageRefusedError, match="field ids would change"):
        tables.add_columns(dropped, pa.schema([("size", pa.int8())]))
    rows = world.people([8]).drop_columns(["age"])
    replaced = tables.overwrite(dropped, [tables.write(dropped, rows)])
    assert _ids(tables, replaced) == [("__id", 0), ("bio", 2)]
    assert tables.open(replaced).scan().equals(rows)


def test_a_detached_version_fits_no_number_but_its_own(tables: Tables) -> None:
    version = int(world.start(tables, range(2)).version, 16)
    assert version >= 2**63
    with pytest.raises(OverflowError):
        pa.array([version], pa.int64())
    assert int(float(2**64 - 1)) != 2**64 - 1


def test_a_pin_carries_its_version_as_text() -> None:
    highest = Pin("t/x.lance", "f" * 16, rows=0, fragments=0, high_water=0)
    assert int(json.loads(json.dumps(highest.version)), 16) == 2**64 - 1
    for wrong in ("1", "F" * 16, "0x" + "f" * 14, ""):
        with pytest.raises(ValueError, match="16 hex digits"):
            Pin("t/x.lance", wrong, rows=0, fragments=0, high_water=0)


def test_the_linear_history_of_a_table_never_moves(tables: Tables) -> None:
    pin = world.compact(tables, world.start(tables, *([number] for number in range(FANOUT))))
    world.with_index(tables, world.update(tables, pin, [1], age=3), "age", name="by_age")
    linear = lance.dataset(f"{tables._handles.root}/{pin.path}")
    assert (linear.version, linear.count_rows()) == (1, 0)
    assert linear.config() == {}, "Lance would clean up by itself"
    assert linear.has_stable_row_ids


def test_the_cleanup_of_lance_destroys_detached_versions(tables: Tables) -> None:
    pin = world.start(tables, range(3))
    linear = lance.dataset(f"{tables._handles.root}/{pin.path}")
    linear.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    with pytest.raises((OSError, ValueError), match="ot found"):
        lance.dataset(linear.uri, version=int(pin.version, 16)).to_table()


def test_references_hold_the_linear_version(tables: Tables) -> None:
    pin = world.start(tables, range(3))
    linear = [name for name in tables.list_references(pin) if "/_versions/1844" in name]
    assert len(linear) == 1
    assert (Path(tables._handles.root) / linear[0]).is_file()


def test_no_source_calls_what_moves_a_table_or_reads_row_stamps() -> None:
    found = [
        f"{path.name}:{node.lineno}: {node.attr}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_CALLS
    ]
    found += [path.name for path in SOURCES if ROW_STAMPS.search(path.read_text())]
    assert found == []


def test_only_storage_imports_lance() -> None:
    found = [
        path.name
        for path in SOURCES
        if "storage" not in path.parts
        and re.search(r"^\s*(import|from) lance\b", path.read_text(), re.M)
    ]
    assert found == []
