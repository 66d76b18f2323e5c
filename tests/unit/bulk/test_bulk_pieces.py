from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.bulk import bulk_load, constraint_checks, key_join, split_reader, splits
from omnigraph.bulk.hash_files import (
    HashFile,
    HashIndex,
    hash_tuples,
    merge_sorted,
    read_hash_part,
    read_hashes,
    select_repeated,
    write_hashes,
)
from omnigraph.bulk.key_join import Probe, probe_committed
from omnigraph.bulk.split_reader import LineRange
from omnigraph.bulk.splits import FileRange, LoadJob, plan_file_ranges
from omnigraph.bulk.task_runner import LocalRunner, Runner
from omnigraph.engine import load_dispatch
from omnigraph.errors import LoadError, StorageRefusedError
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.sorted_search import are_among
from omnigraph.storage.objects.object_store import Objects, open_objects
from omnigraph.storage.objects.source_files import SourceFile, list_source_files, open_source_file
from omnigraph.storage.tables import deletion_vectors
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import fetch_rows_by_id
from omnigraph.writers.inputs import json_reader
from unit.bulk.bulk_world import crowd, knows, note, person, small_units, twins, wrote

U = TypeVar("U")
A = TypeVar("A")


@given(
    lines=st.lists(st.binary(max_size=9).map(lambda data: data.replace(b"\n", b"."))),
    size=st.integers(1, 12),
    step=st.integers(1, 7),
    has_end=st.booleans(),
)
def test_ranges_have_every_line_once(
    lines: list[bytes], size: int, step: int, has_end: bool
) -> None:
    data = b"\n".join(lines) + (b"\n" if has_end else b"")
    found = []
    for start in range(0, len(data), size):
        part = LineRange(io.BytesIO(data), start, min(start + size, len(data)))
        while read := part.read(step):
            found.append(read)
    assert b"".join(found) == data


def test_a_range_ends_with_the_line_that_begins_in_it() -> None:
    data = io.BytesIO(b"one\ntwo\nthree\n")
    assert _all(LineRange(data, 0, 1)) == b"one\n"
    assert _all(LineRange(data, 1, 4)) == b""
    assert _all(LineRange(data, 4, 9)) == b"two\nthree\n"
    assert _all(LineRange(data, 9, 14)) == b""


def _all(part: LineRange) -> bytes:
    return b"".join(iter(lambda: part.read(5), b""))


def test_parts_of_hashes_are_those_of_their_highest_bits(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    hashes = hash_any_texts(pa.array([f"text {n}" for n in range(5_000)] + ["text 3"]))
    file = write_hashes(objects, "notes", [hashes], parts=8, is_sorted=True)
    assert file.count == 5_001
    parts = [part for number in range(8) for part in read_hash_part(objects, [file], number)]
    assert np.array_equal(np.concatenate(parts), np.sort(hashes))
    assert np.array_equal(read_hashes(objects, [file]), np.sort(hashes))
    assert len(select_repeated(np.sort(hashes))) == 1


@pytest.mark.parametrize("parts", [1, 8, 1024])
def test_hashes_that_are_not_sorted_are_in_the_same_parts(tmp_path: Path, parts: int) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    hashes = hash_any_texts(pa.array([f"text {n}" for n in range(5_000)]))
    ordered = write_hashes(objects, "notes", [hashes], parts=parts, is_sorted=True)
    file = write_hashes(objects, "notes", [hashes], parts=parts, is_sorted=False)
    assert file.counts == ordered.counts
    for number in range(parts):
        found, expected = (
            merge_sorted(read_hash_part(objects, [each], number)) for each in (file, ordered)
        )
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1_000])
def test_known_hashes_are_told_from_others(count: int) -> None:
    random = np.random.default_rng(count)
    known = np.sort(random.integers(0, 2**64, count, np.uint64))
    # The ends of the range, and a crowd that shares its highest bits.
    many = np.arange(100, dtype=np.uint64) + np.uint64(2**63)
    for ordered in (known, np.sort(np.concatenate([known, many]))):
        others = random.integers(0, 2**64, 500, np.uint64)
        edges = np.array([0, 1, 2**63 - 1, 2**63 + 500, 2**64 - 1], np.uint64)
        asked = random.permutation(np.concatenate([ordered, others, edges, many]))
        assert np.array_equal(HashIndex(ordered).contains_each(asked), np.isin(asked, ordered))


def test_nothing_has_no_hashes(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    file = write_hashes(objects, "notes", [], parts=2, is_sorted=True)
    assert file == HashFile(file.path, (0, 0))
    assert not are_among(hash_any_texts(pa.array(["a"])), read_hashes(objects, [file])).any()


def test_long_texts_have_hashes_too() -> None:
    texts = pa.array(["short", "x" * 5_000, "x" * 5_001, "x" * 5_000])
    found = hash_any_texts(texts)
    assert found[1] == found[3]
    assert len(set(found.tolist())) == 3
    assert found[0] == hash_any_texts(pa.array(["short"]))[0]


def test_the_order_of_members_counts_in_a_tuple() -> None:
    first, second = pa.array(["a"]), pa.array(["b"])
    assert hash_tuples([first, second])[0] != hash_tuples([second, first])[0]


@pytest.mark.slow
def test_a_load_in_many_parts_of_hashes_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_units(monkeypatch)
    monkeypatch.setattr(bulk_load, "compute_parts", lambda _: 16)
    two = twins(tmp_path)
    two.load(two.lines(crowd(300)))
    two.load(two.lines([*crowd(200)[:200]]), "merge")
    two.refused(two.lines([*crowd(400), *crowd(400)[:3]]), "merge")
    edges = [knows(f"p{n}", f"p{n + 1}", id=f"l{n}") for n in range(99)]
    two.load(two.lines(edges))
    two.refused(two.lines([*edges, knows("p1", "nobody", id="m")]), "merge")
    two.refused(two.lines([person("p7"), person("new")]))
    two.refused(two.lines([person("new", email="7@example.com")]), "merge")
    notes = [note(each) for each in "abc"]
    two.load(two.lines([*notes, *(wrote("p1", each, id=each) for each in "ab")]))
    two.refused(two.lines([wrote("p1", "c", id="c")]), "merge")
    two.load(two.lines([wrote("p1", "c", id="a")]), "merge")
    two.refused(two.lines([person("p1"), person("p2")]), "overwrite")


def test_every_task_is_sent_a_question_that_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[int, list[int]] = {}

    class Weighing(LocalRunner):
        def run(self, units: Sequence[U], task: Callable[[U], A], *, stage: str) -> list[A]:
            weights = [len(pickle.dumps(unit)) for unit in units]
            sizes.setdefault(parts, []).extend(weights if stage == "keys" else [])
            return super().run(units, task, stage=stage)

    small_units(monkeypatch)
    monkeypatch.setattr(load_dispatch, "LocalRunner", Weighing)
    two = twins(tmp_path)
    for parts in (2, 256):
        monkeypatch.setattr(bulk_load, "compute_parts", lambda _, count=parts: count)
        two.bulk(two.lines([person(f"{parts} {n}") for n in range(300)]))
    assert max(sizes[256]) < max(sizes[2]) + 10
    assert len(sizes[256]) >= 128 * len(sizes[2]) > 0


def test_the_hashes_of_a_portion_are_one_object(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    hashes = hash_any_texts(pa.array([f"text {n}" for n in range(5_000)]))
    write_hashes(objects, "notes", [hashes], parts=512, is_sorted=False)
    assert [entry.size for entry in objects.list("notes")] == [8 * 5_000]


def test_no_worker_wants_more_than_it_shares_with_what_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(objects: Objects, files: Iterable[HashFile]) -> Hashes:
        found = read_hashes(objects, files)
        read.append(len(found))
        return found

    small_units(monkeypatch)
    monkeypatch.setattr(bulk_load, "compute_parts", lambda _: 16)
    two = twins(tmp_path)
    two.load(two.lines([person(f"p{n}") for n in range(50)]))
    monkeypatch.setattr(key_join, "read_hashes", counted)
    two.load(two.lines([person(f"p{n}") for n in range(40, 400)]), "merge")
    assert read == [10]
    assert key_join._read_wanted.cache_info().currsize == 0


def test_few_entities_of_a_large_table_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = twins(tmp_path)
    two.load(two.lines(crowd(300)))
    monkeypatch.setattr(constraint_checks, "LOCAL_ROWS_MAX", 10)
    asked: list[object] = []

    def record_probe(job: LoadJob, pin: Pin, probe: Probe, runner: Runner) -> pa.Table:
        asked.append(probe.hashed)
        return probe_committed(job, pin, probe, runner)

    located: list[object] = []

    def record_look_up(*given: Any, **more: Any) -> pa.Table:
        located.append(given)
        return fetch_rows_by_id(*given, **more)

    monkeypatch.setattr(constraint_checks, "probe_committed", record_probe)
    monkeypatch.setattr(deletion_vectors, "fetch_rows_by_id", record_look_up)
    two.load(two.lines([person(f"p{n}", age=50) for n in range(290, 310)]), "merge")
    # Emails are unique: what holds them is looked for in the whole table.
    assert asked
    assert "__id" not in asked
    # Where the replaced rows are was read with their ids.
    assert not located


def test_a_unit_of_several_portions_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_reader, "_PORTION_ROWS", 1)
    for name in ("BLOCK_BYTES", "_STREAM_BLOCK_BYTES"):
        monkeypatch.setattr(json_reader, name, 4_000)
    two = twins(tmp_path)
    two.load(two.lines(crowd(300)))
    two.refused(two.lines([*crowd(400), *crowd(400)[:3]]), "merge")
    records: list[Any] = [*crowd(300)[:300], person("p7"), person("x", age=999), person("p9")]
    result = two.bulk(two.lines(records), "overwrite", on_error="quarantine")
    assert [row["number"] for row in two.rejected()][-3:] == [301, 302, 303]
    assert result.rejected == 3


def test_large_inputs_have_parts_for_their_hashes() -> None:
    file = SourceFile("a.parquet", 1, "")
    piece = FileRange(file, splits.Format.PARQUET, "a", rows=1_000_000)
    assert splits.compute_parts([piece]) == 1
    assert splits.compute_parts([piece] * 1_000) == 512


def test_packed_files_have_parts_for_what_they_unpack_to() -> None:
    for name in ("a.jsonl.gz", "a.csv.zst"):
        (packed,) = splits._split_file(SourceFile(name, 2 * 1024**3, ""), {}, None)
        assert packed.rows > 300_000_000
        assert splits.compute_parts([packed]) >= 128


def test_a_folder_is_cut_file_by_file_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_units(monkeypatch, 10)
    (tmp_path / "b.jsonl").write_text("12345678901234\n")
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / ".hidden").write_text("x")
    found = plan_file_ranges(str(tmp_path), {}, type_name=None)
    names = [(Path(piece.name).name, piece.start, piece.end) for piece in found]
    assert names == [("a.jsonl", 0, 0), ("b.jsonl", 0, 10), ("b.jsonl", 10, 15)]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.jsonl", "no such file"), ("*.csv", "no file matches"), ("notes.txt", "not a kind")],
)
def test_what_leads_to_no_data_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(LoadError, match=problem):
        plan_file_ranges(str(tmp_path / name), {}, type_name=None)


def test_a_file_that_changes_under_a_load_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one\n")
    (file,), _ = list_source_files(str(path), {})
    path.write_text("another\n")
    with pytest.raises(StorageRefusedError, match="changed"), open_source_file(file, {}):
        pass
