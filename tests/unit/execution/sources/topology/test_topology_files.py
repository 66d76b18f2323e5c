"""Pieces in files: what was built before, and nothing else."""

from __future__ import annotations

import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.sources.source_cache import (
    FOLDER_VARIABLE,
    SourceCache,
    create_source_cache,
    find_cache_folder,
)
from omnigraph.execution.sources.topology import topology_rows
from omnigraph.execution.sources.topology.cache_files import (
    FORMAT,
    SUFFIX,
    CacheBlock,
    CacheFiles,
    decode_texts,
    encode_texts,
    trim_files,
)
from omnigraph.execution.sources.topology.topology_refresh import LogChangeSource
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_reader import Table
from unit.execution.sources.topology.test_topology_extension import World, everything, world

PIN = Pin("t/Thing-00000000", "8000000000000001", 3, 1, 1)
PIECE = CacheBlock(
    {"a": np.arange(5, dtype=np.int32), "none": np.zeros(0, np.uint8)}, {"x": [1, "y"]}
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too small for a file."""
    monkeypatch.setattr(topology_rows, "_FILES_ROWS_MIN", 0)
    monkeypatch.setattr(topology_rows, "SETTLED_EVERY", 3)


def saved(root: Path, graph: str = "here") -> CacheFiles:
    files = CacheFiles(root, graph=graph)
    files.save(PIN, "part", lambda: PIECE)
    files.flush()
    return files


def only_file(root: Path) -> Path:
    (path,) = root.glob(f"*/*{SUFFIX}")
    return path


def test_a_piece_comes_back_from_its_file(tmp_path: Path) -> None:
    found = saved(tmp_path).load(PIN, "part")
    assert found is not None
    assert {name: array.tolist() for name, array in found.arrays.items()} == {
        "a": [0, 1, 2, 3, 4],
        "none": [],
    }
    assert found.metadata == PIECE.metadata
    with pytest.raises(ValueError, match="read-only"):
        found.arrays["a"][0] = 1
    files = CacheFiles(tmp_path, graph="here")
    assert files.list_names(PIN) == ["part"]
    assert files.list_versions(PIN.path) == {PIN.version}
    assert files.list_versions("t/Other-00000000") == set()
    assert only_file(tmp_path).stat().st_mode & 0o077 == 0


def test_a_file_of_another_graph_table_version_or_name_is_as_good_as_none(tmp_path: Path) -> None:
    saved(tmp_path)
    path = only_file(tmp_path)
    other = CacheFiles(tmp_path, graph="there")
    assert other.load(PIN, "part") is None
    other.folder.mkdir()
    for pin, name in ((PIN, "other"), (Pin("t/Thing-00000001", PIN.version, 3, 1, 1), "part")):
        copy = other._path_of(pin, name)
        copy.write_bytes(path.read_bytes())
        assert other.load(pin, name) is None
        mine = CacheFiles(tmp_path, graph="here")
        mine._path_of(pin, name).write_bytes(path.read_bytes())
        assert mine.load(pin, name) is None


def test_a_torn_or_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    files = saved(tmp_path)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for torn in (whole[:-1], whole[:40], whole[:8], b"", whole + b"\0", b"x" * len(whole)):
        path.write_bytes(torn)
        assert files.load(PIN, "part") is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = files.load(PIN, "part")
        assert found is None or found.arrays["a"].tolist() == [0, 1, 2, 3, 4]
    path.write_bytes(whole)
    assert files.load(PIN, "part") is not None


@pytest.mark.parametrize("damage", ["zeroed", "flipped"])
def test_damage_of_any_array_makes_its_file_as_good_as_none(tmp_path: Path, damage: str) -> None:
    arrays = {name: np.arange(1, 4_000, dtype=np.int64) for name in ("a", "b", "c")}
    files = CacheFiles(tmp_path, graph="here")
    files.save(PIN, "part", lambda: CacheBlock(arrays))
    files.flush()
    path = only_file(tmp_path)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    for place in np.random.default_rng(7).integers(4096, len(whole) - 64, 50).tolist():
        bad = whole.copy()
        if damage == "zeroed":
            bad[place:] = 0
        else:
            bad[place] ^= 0x10
        path.write_bytes(bad.tobytes())
        found = files.load(PIN, "part")
        # Between arrays there are bytes that nobody reads.
        assert found is None or (damage == "flipped" and _equal(found, arrays))


def _equal(piece: CacheBlock, arrays: dict[str, np.ndarray[Any, Any]]) -> bool:
    return all(np.array_equal(piece.arrays[name], array) for name, array in arrays.items())


def test_a_file_of_another_format_is_as_good_as_none(tmp_path: Path) -> None:
    files = saved(tmp_path)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[12:16], "little")
    said = json.loads(whole[16 : 16 + length])
    newer = json.dumps({**said, "format": FORMAT + 1}).encode()
    assert len(newer) == length
    path.write_bytes(
        whole[:8] + zlib.crc32(newer).to_bytes(4, "little") + whole[12:16] + newer
        + whole[16 + length :]
    )  # fmt: skip
    assert files.load(PIN, "part") is None


def test_the_files_that_were_not_used_for_longest_are_removed_first(tmp_path: Path) -> None:
    files = CacheFiles(tmp_path, graph="here")
    for number in range(4):
        files.save(PIN, f"part{number}", lambda: PIECE)
    files.flush()
    for number in range(4):
        os.utime(files._path_of(PIN, f"part{number}"), (number, number))
    assert files.load(PIN, "part0") is not None
    trim_files(tmp_path, 2 * only_size(files))
    assert sorted(files.list_names(PIN)) == ["part0", "part3"]


def only_size(files: CacheFiles) -> int:
    return files._path_of(PIN, "part0").stat().st_size


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = CacheFiles(tmp_path / "file", graph="here")
    files.save(PIN, "part", lambda: PIECE)
    files.flush()
    assert files.load(PIN, "part") is None
    assert (files.list_names(PIN), files.list_versions(PIN.path)) == ([], set())


@given(st.lists(st.none() | st.text(max_size=4)), st.integers(0, 3), st.booleans())
def test_texts_come_back_from_arrays(values: list[str | None], start: int, is_large: bool) -> None:
    kind = pa.large_string() if is_large else pa.utf8()
    texts = pa.array(values, kind).slice(min(start, len(values)))
    found = decode_texts(encode_texts(texts))
    assert found.equals(texts)
    found.validate(full=True)


# ---- whole topologies ----


class Reads:
    """How many tables were read as a whole."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.whole: list[str] = []
        scan, batches = Table.scan, Table.scan_batches

        def scanned(table: Table, **options: Any) -> Any:
            if options.get("filter") is None and "_rowid" in (options.get("columns") or ()):
                self.whole.append(table.pin.path)
            return scan(table, **options)

        def batched(table: Table, **options: Any) -> Any:
            self.whole.append(table.pin.path)
            return batches(table, **options)

        monkeypatch.setattr(Table, "scan", scanned)
        monkeypatch.setattr(Table, "scan_batches", batched)


def restarted(follows: World, root: Path) -> SourceCache:
    log = follows.graph._session.resources.log
    return SourceCache(
        files=CacheFiles(root, graph=follows.graph.uri), changes=LogChangeSource(log)
    )


def flushed(sources: SourceCache) -> None:
    assert sources.files is not None
    sources.files.flush()


def test_a_new_process_reads_no_table_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follows = world()
    first = restarted(follows, tmp_path)
    view = follows.graph.branch().snapshot().view
    expected = everything(first.get_topology(view))
    flushed(first)
    reads = Reads(monkeypatch)
    second = restarted(follows, tmp_path)
    assert all(second.has_cached(view, type_key) for type_key in view.types)
    found = everything(second.get_topology(view))
    # Lists are not kept in files.
    assert set(reads.whole) <= {view.snapshot.pins["node:Person"].path}
    assert len(reads.whole) <= 1
    assert found == expected


def test_pieces_with_other_numbers_are_as_good_as_none(tmp_path: Path) -> None:
    follows = world()
    first = restarted(follows, tmp_path)
    view = follows.graph.branch().snapshot().view
    expected = everything(first.get_topology(view))
    files = first.files
    assert files is not None
    files.flush()
    for key in view.types:
        pin = view.snapshot.pins[str(key)]
        for name in set(files.list_names(pin)) - {"rows"}:
            # As another process would save it that gave out the numbers in the opposite order.
            piece = files.load(pin, name)
            assert piece is not None
            arrays = {each: array[::-1].copy() for each, array in piece.arrays.items()}
            other = CacheBlock(arrays, {**piece.metadata, "numbering": [["other", pin.rows]]})
            files.save(pin, name, lambda other=other: other)  # type: ignore[misc]
    files.flush()
    assert everything(restarted(follows, tmp_path).get_topology(view)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_new_process_extends_what_the_one_before_it_saved(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "omnigraph.execution.sources.topology.topology_refresh.CHANGED_SHARE_MAX", 10.0
    )
    follows = world(seed)
    main = follows.graph.branch()
    sources = restarted(follows, tmp_path)
    extensions = 0
    for _ in range(10):
        view = main.snapshot().view
        found = sources.get_topology(view)
        assert everything(found) == everything(SourceCache().get_topology(view))
        types = [found.get_nodes("Person"), found.get_edges("Knows"), found.get_edges("Visits")]
        extensions += any(each.rows.generation > 0 for each in types)
        flushed(sources)
        for _ in range(follows.random.randrange(3)):
            follows.step(main)
        if follows.random.random() < 0.6:
            sources = restarted(follows, tmp_path)
    assert extensions


def test_two_threads_that_want_the_same_build_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    follows = world()
    view = follows.graph.branch().snapshot().view
    expected = everything(SourceCache().get_topology(view))
    reads = Reads(monkeypatch)
    sources = SourceCache()
    found: list[dict[Any, Any]] = []

    def read() -> None:
        source = sources.get_topology(view)
        assert isinstance(source, TopologySource)
        found.append(everything(source))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6
    # Rows, ids and properties of people; rows, ids, ends and the property of each kind of edge.
    path = view.snapshot.pins["node:Person"].path
    assert reads.whole.count(path) == 2 + len(view.get_shape(next(iter(view.types))).columns)


def test_the_environment_says_where_files_are(tmp_path: Path) -> None:
    assert find_cache_folder({FOLDER_VARIABLE: str(tmp_path)}) == tmp_path
    assert find_cache_folder({FOLDER_VARIABLE: "off", "HOME": "/people/ada"}) is None
    assert find_cache_folder({}) is None
    assert find_cache_folder({"XDG_CACHE_HOME": "/cache", "HOME": "/people/ada"}) == Path(
        "/cache/omnigraph"
    )
    assert str(find_cache_folder({"HOME": "/people/ada"})).startswith("/people/ada/")


def test_graphs_in_memory_have_no_files(tmp_path: Path) -> None:
    follows = world()
    environ = {FOLDER_VARIABLE: str(tmp_path), "OMNIGRAPH_TOPOLOGY_MEMORY_BYTES": "4096"}
    sources = create_source_cache(follows.graph._session.resources.log, environ)
    if follows.graph.uri.startswith("memory://"):
        assert sources.files is None
    assert sources.memory.bytes_max == 4096
