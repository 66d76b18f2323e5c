"""Tables on every store: commits, reads, schema changes and errors."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import people as world
from omnigraph.errors import ConflictError, LoadError, StorageError, StorageRefusedError
from omnigraph.storage.tables import table_handles
from omnigraph.storage.tables.lance_tables import Pin, Staged, Tables, make_blob_field
from omnigraph.storage.tables.table_handles import HANDLES_MAX
from stores import S3Server


@pytest.fixture(params=["local", "memory", "s3"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Tables]:
    """Opens the tables of one fresh graph, again and again."""
    if request.param == "memory":
        name = uuid.uuid4().hex
        return lambda: Tables(f"memory://{name}")
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        uri = f"s3://{server.new_bucket()}/graphs/one"
        return lambda: Tables(uri, options=server.options)
    return lambda: Tables(str(tmp_path / "graph"))


@pytest.fixture
def tables(reopen: Callable[[], Tables]) -> Tables:
    return reopen()


@pytest.fixture
def local(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path / "graph"), is_durable=False)


def test_a_new_table_is_empty_and_has_a_pin(tables: Tables) -> None:
    pin = world.start(tables)
    plain = replace(pin, digest=None)
    assert plain == Pin(world.PATH, "0000000000000001", rows=0, fragments=0, high_water=0)
    assert tables.open(pin).scan().schema == world.SCHEMA
    assert tables.open(pin).count() == 0


def test_a_path_holds_one_table(tables: Tables) -> None:
    world.start(tables)
    with pytest.raises(StorageError, match="create t/Person"):
        world.start(tables)


def test_another_process_reads_a_pin(reopen: Callable[[], Tables]) -> None:
    tables = reopen()
    pin = world.update(tables, world.start(tables, range(3), range(3, 5)), [1, 4], age=90)
    assert world.ages(reopen(), pin) == {"p0": 0, "p1": 90, "p2": 2, "p3": 3, "p4": 90}


def test_every_pin_stays_what_it_was(tables: Tables) -> None:
    first = world.start(tables, range(3))
    world.delete(tables, first, [0])
    second = world.update(tables, first, [1], age=50)
    third = world.add(tables, second, [7])
    tables.overwrite(third, [tables.write(third, world.people([9]))])
    assert world.ages(tables, first) == {"p0": 0, "p1": 1, "p2": 2}
    assert world.ages(tables, second) == {"p0": 0, "p1": 50, "p2": 2}
    assert world.ages(tables, third) == {"p0": 0, "p1": 50, "p2": 2, "p7": 7}


def test_staged_rows_are_invisible_until_they_are_committed(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    staged = tables.write(pin, world.people([8]))
    assert staged.rows == 1
    assert tables.open(pin).count() == 2
    assert tables.append(pin, [staged]).rows == 3


def test_staged_rows_travel_as_text(reopen: Callable[[], Tables]) -> None:
    here, there = reopen(), reopen()
    pin = world.start(here, range(2))
    text = there.write(pin, world.people([8, 9])).to_json()
    assert json.loads(text)["rows"] == 2
    staged = Staged.from_json(text)
    assert set(staged.list_files) <= here.list_references(here.append(pin, [staged]))
    assert world.ages(here, here.append(pin, [staged])) == {"p0": 0, "p1": 1, "p8": 8, "p9": 9}


def test_nothing_to_do_is_no_new_version(local: Tables) -> None:
    pin = world.start(local, range(2))
    empty = local.write(pin, world.people([]))
    none = pa.array([], pa.uint64())
    assert empty.rows == 0
    assert local.append(pin, [empty]) == pin
    assert local.replace(pin, dead=none, staged=[empty]) == pin
    assert local.plan_compaction(pin) is None


def test_an_update_replaces_rows_in_several_fragments(tables: Tables) -> None:
    pin = world.start(tables, range(3), range(3, 6), [6])
    pin = world.update(tables, pin, [2, 3, 6], age=70)
    assert world.ages(tables, pin) == {
        "p0": 0, "p1": 1, "p2": 70, "p3": 70, "p4": 4, "p5": 5, "p6": 70,
    }  # fmt: skip
    assert (pin.rows, pin.fragments, pin.high_water) == (7, 3, 4)


def test_a_row_may_be_named_dead_twice(local: Tables) -> None:
    pin = world.start(local, range(3))
    dead = world.row_ids(local, pin, [1])
    assert local.replace(pin, dead=pa.concat_arrays([dead, dead])).rows == 2


def test_a_dead_row_cannot_die_again(local: Tables) -> None:
    pin = world.start(local, range(3))
    dead = world.row_ids(local, pin, [1])
    later = local.replace(pin, dead=dead)
    with pytest.raises(ConflictError, match="1 rows to replace are not in"):
        local.replace(later, dead=dead)


def test_an_overwrite_keeps_only_the_new_rows(tables: Tables) -> None:
    pin = world.start(tables, range(3), [3])
    empty = tables.overwrite(pin, [])
    assert (empty.rows, empty.fragments, empty.high_water) == (0, 0, pin.high_water)
    full = tables.overwrite(pin, [tables.write(pin, world.people([9]))])
    assert world.ages(tables, full) == {"p9": 9}
    assert full.high_water > pin.high_water
    assert world.ages(tables, world.add(tables, empty, [5])) == {"p5": 5}


def test_a_long_stream_of_batches_is_written(local: Tables) -> None:
    pin = world.start(local)
    batches = (world.people([n]).to_batches()[0] for n in range(50))
    staged = local.write(pin, pa.RecordBatchReader.from_batches(world.SCHEMA, batches))
    assert (staged.rows, len(staged.fragments)) == (50, 1)


def test_an_error_of_the_source_arrives_as_it_is(local: Tables) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield world.people([1]).to_batches()[0]
        raise LoadError("not JSON", record=2)

    pin = world.start(local)
    with pytest.raises(LoadError, match="not JSON"):
        local.write(pin, pa.RecordBatchReader.from_batches(world.SCHEMA, batches()))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"__id": ["a"], "height": [1]}, "no columns"),
        ({"__id": ["a"], "age": ["1"]}, "age is int64, not string"),
        ({"age": [1]}, "__id cannot be left out"),
        ({"__id": pa.array([None], pa.string())}, "__id cannot be null"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    local: Tables, rows: dict[str, object], reason: str
) -> None:
    with pytest.raises(StorageRefusedError, match=reason) as caught:
        local.write(world.start(local), pa.table(rows))
    assert (caught.value.operation, caught.value.path) == ("write", world.PATH)


def test_rows_of_another_table_are_refused(local: Tables) -> None:
    pin = world.start(local)
    other = local.create("t/Other-1.lance", world.SCHEMA)
    with pytest.raises(StorageRefusedError, match="rows of another table"):
        local.append(pin, [local.write(other, world.people([1]))])


def test_columns_are_matched_by_name_and_may_be_left_out(local: Tables) -> None:
    pin = world.start(local)
    rows = pa.table({"age": [7], "__id": ["p7"]})
    pin = local.append(pin, [local.write(pin, rows)])
    assert local.open(pin).scan().to_pylist() == [{"__id": "p7", "age": 7, "bio": None}]


def test_a_scan_projects_filters_and_names_row_ids(tables: Tables) -> None:
    table = tables.open(world.start(tables, range(5), range(5, 9)))
    rows = table.scan(columns=["age", "_rowid"], filter="age > 6")
    assert rows.schema.names == ["age", "_rowid"]
    assert rows["age"].to_pylist() == [7, 8]
    assert pa.Table.from_batches(table.scan_batches(columns=["age"])) == table.scan(columns=["age"])


def test_the_rows_of_some_files_are_read_without_the_others(tables: Tables) -> None:
    pin = world.start(tables, range(3), range(3, 5))
    staged = tables.write(pin, world.people(range(5, 9)))
    newer = tables.append(pin, [staged])
    found = tables.open(newer).scan_files(staged.list_files, columns=["__id", "age"])
    assert found.to_pydict() == {"__id": ["p5", "p6", "p7", "p8"], "age": [5, 6, 7, 8]}
    nothing = tables.open(pin).scan_files([], columns=["__id"])
    assert (len(nothing), nothing.schema.names) == (0, ["__id"])


def test_files_that_a_version_does_not_have_are_not_rows_that_nobody_wrote(tables: Tables) -> None:
    pin = world.start(tables, range(3), range(3, 5))
    staged = tables.write(pin, world.people(range(5, 9)))
    newer = tables.append(pin, [staged])
    with pytest.raises(StorageRefusedError, match="1 of 1 files are not in it"):
        tables.open(pin).scan_files(staged.list_files, columns=["__id"])
    files = [*staged.list_files, f"{pin.path}/data/lost"]
    with pytest.raises(StorageRefusedError, match="1 of 2 files are not in it, first lost"):
        tables.open(newer).scan_files(files, columns=["__id"])


def test_a_filter_that_cannot_be_read_is_our_error(local: Tables) -> None:
    table = local.open(world.start(local, range(2)))
    with pytest.raises(StorageRefusedError, match="scan t/Person"):
        table.scan(filter="nothing like SQL")
    with pytest.raises(StorageRefusedError, match="scan t/Person"):
        list(table.scan_batches(filter="nothing like SQL"))


def test_take_gives_rows_in_the_order_asked(tables: Tables) -> None:
    pin = world.start(tables, range(3), range(3, 6))
    ids = [world.row_ids(tables, pin, [n])[0].as_py() for n in (5, 0, 5)]
    taken = tables.open(pin).take(pa.array(ids, pa.uint64()), columns=["age", "__id"])
    assert taken.to_pydict() == {"age": [5, 0, 5], "__id": ["p5", "p0", "p5"]}
    nothing = tables.open(pin).take(pa.array([], pa.uint64()))
    assert (len(nothing), nothing.schema) == (0, world.SCHEMA)


def test_take_and_replace_know_many_rows(local: Tables) -> None:
    pin = world.start(local, range(2000), range(2000, 3000))
    wanted = list(range(2999, 2, -2))
    found = local.open(pin).find("__id", pa.array([f"p{n}" for n in wanted]))
    ids = dict(zip(found["__id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
    ordered = pa.array([ids[f"p{n}"] for n in wanted])
    assert local.open(pin).take(ordered)["age"].to_pylist() == wanted
    left = local.replace(pin, dead=ordered)
    assert world.ages(local, left).keys() == {f"p{n}" for n in range(3000)} - ids.keys()


def test_take_refuses_a_row_that_is_not_there(local: Tables) -> None:
    pin = world.start(local, range(3))
    gone = world.row_ids(local, pin, [1])
    with pytest.raises(StorageRefusedError, match="1 rows are not in it"):
        local.open(world.delete(local, pin, [1])).take(gone)


@pytest.mark.parametrize("has_index", [False, True])
def test_find_gives_the_rows_that_exist(local: Tables, *, has_index: bool) -> None:
    pin = world.start(local, range(300))
    if has_index:
        pin = world.with_index(local, pin, "__id", name="by_id")
    odd = pa.table({"__id": ["it's", "`x`", "ü \\"]})
    pin = local.append(pin, [local.write(pin, odd)])
    table = local.open(pin)
    for wanted in (["it's", "absent"], ["`x`"], ["ü \\"], [f"p{n}" for n in range(2, 302)], []):
        found = table.find("__id", pa.array([*wanted, *wanted, None], pa.string()))
        assert found.schema.names == ["__id", "_rowid"]
        expected = {name for name in wanted if name not in ("absent", "p300", "p301")}
        assert sorted(found["__id"].to_pylist()) == sorted(expected)
    assert table.find("age", pa.array([7, 7, 9_000]))["age"].to_pylist() == [7]


def test_find_asks_the_index_only_for_few_values(local: Tables) -> None:
    pin = world.with_index(local, world.start(local, range(300)), "__id", name="by_id")
    table = local.open(pin)
    many = pa.array([f"p{n}" for n in range(100)])
    assert table._is_worth_a_filter("__id", pa.array(["p1", "p2"]))
    assert table._is_worth_a_filter("age", pa.array([1]))
    assert not table._is_worth_a_filter("__id", many)
    assert not table._is_worth_a_filter("__id", pa.array([], pa.utf8()))
    assert not table._is_worth_a_filter("score", pa.array([1.5]))


@pytest.mark.parametrize("has_index", [False, True])
def test_found_rows_die_at_the_places_they_were_found_at(local: Tables, *, has_index: bool) -> None:
    pin = world.delete(local, world.start(local, range(40), range(40, 60)), [0, 3, 45])
    if has_index:
        pin = world.with_index(local, pin, "__id", name="by_id")
    wanted = pa.array(["p50", "p4", "p39"])
    found = local.open(pin).find("__id", wanted, columns=["__id", "_rowid", "_rowaddr"])
    dead, places = (found[name].combine_chunks() for name in ("_rowid", "_rowaddr"))
    left = world.ages(local, local.replace(pin, dead=dead, addresses=places))
    assert left.keys() == {f"p{n}" for n in range(60)} - {"p0", "p3", "p45", *wanted.to_pylist()}


def test_found_rows_come_with_the_columns_asked_for(local: Tables) -> None:
    table = local.open(world.start(local, range(300)))
    for wanted in (["p7"], [f"p{n}" for n in range(100)], ["nobody"], []):
        found = table.find("__id", pa.array(wanted, pa.utf8()), columns=["age", "__id"])
        assert found.column_names == ["age", "__id"]
        assert sorted(found["__id"].to_pylist()) == sorted({*wanted} - {"nobody"})


def test_added_columns_are_null_and_leave_old_versions_alone(tables: Tables) -> None:
    pin = world.start(tables, range(2))
    early = tables.write(pin, world.people([2]))
    place = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])
    wider = tables.add_columns(
        pin, pa.schema([("place", place), ("near", pa.list_(pa.float32(), 2))])
    )
    late = pa.table({"__id": ["p3"], "near": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    wider = tables.append(wider, [early, tables.write(wider, late)])
    assert tables.open(pin).schema == world.SCHEMA
    rows = tables.open(wider).scan(columns=["__id", "near", "place"])
    assert rows["near"].to_pylist() == [None, None, None, [1.0, 2.0]]
    assert rows["place"].null_count == 4


def test_an_added_column_must_be_nullable_and_new(local: Tables) -> None:
    pin = world.start(local)
    with pytest.raises(StorageRefusedError, match="size has to be nullable"):
        local.add_columns(pin, pa.schema([pa.field("size", pa.int64(), nullable=False)]))
    with pytest.raises(StorageRefusedError, match="age is already there"):
        local.add_columns(pin, pa.schema([("age", pa.int64())]))


BLOBS = [b"small", b"", None, b"m" * 300_000, b"l" * 6_000_000]


def test_blobs_keep_null_empty_and_large_values_apart(tables: Tables) -> None:
    schema = pa.schema([pa.field("__id", pa.string(), nullable=False), make_blob_field("photo")])
    pin = tables.create(world.PATH, schema)
    assert tables.open(pin).schema.equals(schema, check_metadata=True)
    rows = pa.table(
        [[f"p{n}" for n in range(5)], pa.array(BLOBS, pa.large_binary())], schema=schema
    )
    pin = tables.append(pin, [tables.write(pin, rows)])
    table = tables.open(pin)
    assert table.scan().equals(rows)
    assert pa.Table.from_batches(table.scan_batches()).equals(rows)
    ids = world.row_ids(tables, pin, range(5))
    assert table.take(ids, columns=["photo"])["photo"].to_pylist() == BLOBS
    assert len(table.take(pa.array([], pa.uint64()))) == 0
    assert [_read(tables, pin, ids[n].as_py()) for n in range(4)] == BLOBS[:4]


def _read(tables: Tables, pin: Pin, row_id: int) -> bytes | None:
    file = tables.open(pin).open_blob("photo", row_id)
    return None if file is None else bytes(file.read())


def test_blobs_survive_updates_new_columns_and_compaction(local: Tables) -> None:
    pin = world.start(local, range(2))
    pin = local.add_columns(pin, pa.schema([make_blob_field("photo")]))
    for number in range(40):
        photo = pa.array([b"x" * number * 10_000], pa.large_binary())
        row = pa.table({"__id": [f"b{number}"], "photo": photo})
        pin = local.append(pin, [local.write(pin, row)])
    pin = world.compact(local, pin)
    rows = local.open(pin).scan(columns=["__id", "photo"])
    sizes = [None if value is None else len(value) for value in rows["photo"].to_pylist()]
    assert sizes == [None, None, *(n * 10_000 for n in range(40))]


def test_open_versions_are_bounded(local: Tables) -> None:
    pin = world.start(local)
    for number in range(HANDLES_MAX + 5):
        pin = world.add(local, pin, [number])
    assert len(local._handles._open) == HANDLES_MAX
    assert local.open(pin).count() == HANDLES_MAX + 5


def test_threads_share_one_gateway(local: Tables) -> None:
    pin = world.start(local, range(10))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            mine = pin
            for step in range(10):
                mine = world.add(local, mine, [100 * number + step])
            assert world.ages(local, mine).keys() >= {"p0", f"p{100 * number + 9}"}
            assert mine.rows == 20
        except BaseException as error:  # noqa: BLE001 (shown by the test)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_version_that_is_gone_is_named(local: Tables) -> None:
    pin = world.start(local, range(2))
    with pytest.raises(StorageError, match=r"open t/Person.*not found"):
        local.open(Pin(pin.path, "ffffffffffffffff", rows=0, fragments=0, high_water=0))


def test_references_are_all_a_version_needs(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path / "graph"), is_durable=False)
    schema = pa.schema([*world.SCHEMA, make_blob_field("photo")])
    pin = tables.create(world.PATH, schema)
    for group in ([0, 1, 2], [3], [4]):
        photo = pa.array([b"y" * 200_000] * len(group), pa.large_binary())
        rows = world.people(group).append_column("photo", photo)
        pin = tables.append(pin, [tables.write(pin, rows)])
    pin = world.with_index(tables, pin, "bio", name="by_bio")
    pin = world.delete(tables, pin, [1, 4])
    needed = tables.list_references(pin)
    copy = tmp_path / "copy"
    for path in (tmp_path / "graph").rglob("*"):
        name = str(path.relative_to(tmp_path / "graph"))
        if path.is_file() and any(
            name.startswith(one) if one.endswith("/") else name == one for one in needed
        ):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(path.read_bytes())
    assert len(list(copy.rglob("*"))) < len(list((tmp_path / "graph").rglob("*")))
    copied = Tables(str(copy), is_durable=False)
    assert copied.open(pin).scan().equals(tables.open(pin).scan())
    bio = world.people([3])["bio"][0].as_py()
    assert copied.open(pin).scan(filter=f"bio = '{bio}'")["__id"].to_pylist() == ["p3"]


def test_what_lance_remembers_of_versions_stays_within_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 64 * 1024
    monkeypatch.setattr(table_handles, "METADATA_BYTES_MAX", bound)
    tables = Tables(str(tmp_path), is_durable=False)
    pin = tables.create("t/x-1.lance", pa.schema([("v", pa.int64())]))
    for number in range(100):
        pin = tables.append(pin, [tables.write(pin, pa.table({"v": [number]}))])
    assert len(tables.open(pin).scan()) == 100
    size = tables._handles._session.size_bytes()
    # The structures of the caches themselves come on top.
    assert bound / 4 < size < 2 * bound
