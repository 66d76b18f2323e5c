from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import LoadError, StorageRefused
from omnigraph.storage.objects import open_objects
from omnigraph.storage.source_files import SourceFile, opened, source_files
from omnigraph.writers.bulk import load, units
from omnigraph.writers.bulk.hashes import (
    HashFile,
    Known,
    are_among,
    in_order,
    read_all,
    read_part,
    repeated,
    text_hashes,
    tuple_hashes,
    write_hashes,
)
from omnigraph.writers.bulk.streams import LineRange
from omnigraph.writers.bulk.units import Piece, pieces_of
from unit.writers.bulk.bulk_world import crowd, small_units, twins


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
    hashes = text_hashes(pa.array([f"text {n}" for n in range(5_000)] + ["text 3"]))
    file = write_hashes(objects, "notes", [hashes], parts=8, is_sorted=True)
    assert file.count == 5_001
    parts = [part for number in range(8) for part in read_part(objects, [file], number)]
    assert np.array_equal(np.concatenate(parts), np.sort(hashes))
    assert np.array_equal(read_all(objects, [file]), np.sort(hashes))
    assert len(repeated(np.sort(hashes))) == 1


@pytest.mark.parametrize("parts", [1, 8, 1024])
def test_hashes_that_are_not_sorted_are_in_the_same_parts(tmp_path: Path, parts: int) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    hashes = text_hashes(pa.array([f"text {n}" for n in range(5_000)]))
    ordered = write_hashes(objects, "notes", [hashes], parts=parts, is_sorted=True)
    file = write_hashes(objects, "notes", [hashes], parts=parts, is_sorted=False)
    assert file.counts == ordered.counts
    for number in range(parts):
        found, expected = (in_order(read_part(objects, [each], number)) for each in (file, ordered))
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
        assert np.array_equal(Known(ordered).holds(asked), np.isin(asked, ordered))


def test_nothing_has_no_hashes(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    file = write_hashes(objects, "notes", [], parts=2, is_sorted=True)
    assert file == HashFile(file.path, (0, 0))
    assert not are_among(text_hashes(pa.array(["a"])), read_all(objects, [file])).any()


def test_long_texts_have_hashes_too() -> None:
    texts = pa.array(["short", "x" * 5_000, "x" * 5_001, "x" * 5_000])
    found = text_hashes(texts)
    assert found[1] == found[3]
    assert len(set(found.tolist())) == 3
    assert found[0] == text_hashes(pa.array(["short"]))[0]


def test_the_order_of_members_counts_in_a_tuple() -> None:
    first, second = pa.array(["a"]), pa.array(["b"])
    assert tuple_hashes([first, second])[0] != tuple_hashes([second, first])[0]


def test_a_load_in_many_parts_of_hashes_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_units(monkeypatch)
    monkeypatch.setattr(load, "parts_for", lambda _: 16)
    two = twins(tmp_path)
    two.load(two.lines(crowd(300)))
    two.load(two.lines([*crowd(200)[:200]]), "merge")
    two.refused(two.lines([*crowd(400), *crowd(400)[:3]]), "merge")


def test_large_inputs_have_parts_for_their_hashes() -> None:
    file = SourceFile("a.parquet", 1, "")
    piece = Piece(file, units.Format.PARQUET, "a", rows=1_000_000)
    assert units.parts_for([piece]) == 1
    assert units.parts_for([piece] * 1_000) == 512


def test_a_folder_is_cut_file_by_file_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_units(monkeypatch, 10)
    (tmp_path / "b.jsonl").write_text("12345678901234\n")
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / ".hidden").write_text("x")
    found = pieces_of(str(tmp_path), {}, type_name=None)
    names = [(Path(piece.name).name, piece.start, piece.end) for piece in found]
    assert names == [("a.jsonl", 0, 0), ("b.jsonl", 0, 10), ("b.jsonl", 10, 15)]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.jsonl", "no such file"), ("*.csv", "no file matches"), ("notes.txt", "not a kind")],
)
def test_what_leads_to_no_data_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(LoadError, match=problem):
        pieces_of(str(tmp_path / name), {}, type_name=None)


def test_a_file_that_changes_under_a_load_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one\n")
    (file,), _ = source_files(str(path), {})
    path.write_text("another\n")
    with pytest.raises(StorageRefused, match="changed"), opened(file, {}):
        pass
