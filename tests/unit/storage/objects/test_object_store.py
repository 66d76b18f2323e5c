"""The contract of an object store, on every store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import StorageRefusedError
from omnigraph.storage import Objects, open_objects, require_exclusive_puts
from omnigraph.storage.objects.layout import PATH_BYTES_MAX, SEGMENT_BYTES_MAX

UNUSUAL = [
    " lead",
    "a b/c d",
    "a-b/1",
    "a.b",
    "a/%",
    "a/%2F",
    "a/+x",
    "a/..b",
    "a/.hidden",
    "a/=5",
    "a/b/c",
    "a/trail ",
    "a/x%20y",
    "a/ü~!@#$^&*()[]{}|\\\"'<>?`",
    "a/ünï/日本",
    "l" * SEGMENT_BYTES_MAX,
    "z\ufffd",
    "z\U0001f600",
]


def paths(objects: Objects, prefix: str = "", after: str | None = None) -> list[str]:
    return [entry.path for entry in objects.list(prefix, after=after)]


def test_an_absent_object_is_none(objects: Objects) -> None:
    assert objects.get("a/b") is None


def test_a_folder_is_not_an_object(objects: Objects) -> None:
    objects.put_new("a/b", b"1")
    assert objects.get("a") is None
    assert objects.get("a/b/c") is None


def test_some_bytes_of_an_object_are_read(objects: Objects) -> None:
    objects.put("a/b", bytes(range(100)))
    assert objects.get_range("a/b", 0, 100) == bytes(range(100))
    assert objects.get_range("a/b", 7, 3) == bytes([7, 8, 9])
    assert objects.get_range("a/c", 7, 3) is None
    assert objects.get_range("a", 7, 3) is None


def test_a_new_object_is_created_once(reopen: Callable[[], Objects]) -> None:
    assert reopen().put_new("a/b", b"first") is True
    assert reopen().put_new("a/b", b"second") is False
    assert reopen().get("a/b") == b"first"


def test_a_put_replaces(reopen: Callable[[], Objects]) -> None:
    reopen().put("a", b"a long first value")
    reopen().put("a", b"second")
    assert reopen().get("a") == b"second"


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_data_of_any_size_is_read_back(objects: Objects, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert objects.put_new("new", data)
    objects.put("put", data)
    assert objects.get("new") == data
    assert objects.get("put") == data
    assert [entry.size for entry in objects.list("")] == [size, size]


def test_a_deleted_object_is_absent_and_may_be_created_again(objects: Objects) -> None:
    objects.put_new("a/b", b"1")
    objects.put_new("a/c", b"1")
    objects.delete(["a/b", "a/nothing", "nowhere/at/all"])
    assert paths(objects) == ["a/c"]
    assert objects.put_new("a/b", b"2") is True
    assert objects.get("a/b") == b"2"


def test_deleting_nothing_is_fine(objects: Objects) -> None:
    objects.delete([])
    objects.delete(iter(["a"]))
    assert paths(objects) == []


def test_many_objects_are_listed_and_deleted(reopen: Callable[[], Objects]) -> None:
    objects = reopen()
    names = [f"f/{number:05}" for number in range(1_100)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda name: objects.put_new(name, b""), names))
    assert paths(objects, "f") == names
    assert paths(objects, "f", after=names[1_050]) == names[1_051:]
    objects.delete(names[1:])
    assert paths(reopen()) == names[:1]


def test_a_listing_is_in_byte_order_of_whole_paths(objects: Objects) -> None:
    names = ["a", "b/1", "b/2/x", "b/2-x", "b/2.x", "b-1", "b.1", "b0", "B/1", "é/1", "z\U0001f600"]
    for name in names:
        objects.put_new(name, b"")
    assert paths(objects) == sorted(names, key=str.encode)
    assert paths(objects, "b") == ["b/1", "b/2-x", "b/2.x", "b/2/x"]


@pytest.mark.parametrize("prefix", ["a/b", "a/b/"])
def test_a_prefix_is_a_folder_and_never_a_part_of_a_name(objects: Objects, prefix: str) -> None:
    for name in ["a/b/1", "a/b/c/2", "a/bc/3", "a/b-c", "b/4"]:
        objects.put_new(name, b"")
    assert paths(objects, prefix) == ["a/b/1", "a/b/c/2"]
    assert paths(objects, "nothing") == []
    assert paths(objects, "b/4") == []


def test_a_listing_starts_above_a_path_that_need_not_exist(objects: Objects) -> None:
    names = ["a/1", "a/2", "a/c/1", "a/c/2", "a/c.x", "b"]
    for name in names:
        objects.put_new(name, b"")
    starts = [*names, "a/15", "a", "a/c", "a/c/15", "a/c/9", "a/d", "c", "A"]
    for start in starts:
        assert paths(objects, after=start) == sorted(name for name in names if name > start)
        assert paths(objects, "a/c", after=start) == [
            name for name in ["a/c/1", "a/c/2"] if name > start
        ]


def test_an_entry_says_when_it_was_written(objects: Objects) -> None:
    objects.put_new("a", b"12345")
    (entry,) = objects.list("")
    assert (entry.path, entry.size) == ("a", 5)
    # Stores round to whole seconds, and clocks of file systems tick coarsely.
    assert abs(entry.modified - time.time()) < 60


def test_unusual_names_round_trip(reopen: Callable[[], Objects]) -> None:
    objects = reopen()
    for name in UNUSUAL:
        assert objects.put_new(name, name.encode()) is True
        assert objects.put_new(name, b"") is False
    again = reopen()
    assert paths(again) == sorted(UNUSUAL)
    assert [again.get(name) for name in UNUSUAL] == [name.encode() for name in UNUSUAL]
    again.delete(UNUSUAL)
    assert paths(objects) == []


def test_a_path_of_the_greatest_length_round_trips(objects: Objects) -> None:
    path = "/".join(["d" * 199] * 4)[:PATH_BYTES_MAX]
    assert objects.put_new(path, b"1")
    assert paths(objects) == [path]


@pytest.mark.parametrize(
    "path",
    [
        *["", "/a", "a/", "a//b", "a/../b", ".", "a/.", ".tmp-1", "a/.tmp-1"],
        *["a\nb", "a\0", "\ud800", "\uffff"],
        *["n" * (SEGMENT_BYTES_MAX + 1), "é" * 128, "a/" * (PATH_BYTES_MAX // 2) + "b"],
    ],
)
def test_a_path_that_some_store_cannot_hold_is_refused_by_all(objects: Objects, path: str) -> None:
    with pytest.raises(ValueError, match="object path"):
        objects.put_new(path, b"")
    with pytest.raises(ValueError, match="object path"):
        objects.put(path, b"")
    with pytest.raises(ValueError, match="object path"):
        objects.get(path)
    with pytest.raises(ValueError, match="object path"):
        objects.delete([path])
    assert paths(objects) == []


def test_of_racing_threads_exactly_one_creates_an_object(reopen: Callable[[], Objects]) -> None:
    stores = [reopen() for _ in range(8)]
    start = threading.Barrier(8)

    def race(number: int) -> list[bool]:
        won = []
        for turn in range(10):
            start.wait()
            won.append(stores[number].put_new(f"race/{turn:03}", str(number).encode()))
        return won

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(race, range(8)))
    for turn, won in enumerate(zip(*results, strict=True)):
        assert won.count(True) == 1
        assert stores[0].get(f"race/{turn:03}") == str(won.index(True)).encode()


def test_a_reader_never_sees_a_part_of_an_object(reopen: Callable[[], Objects]) -> None:
    whole = {b"a" * 300_000, b"b" * 200_000}
    writer, reader = reopen(), reopen()
    writer.put("x", min(whole))
    done = threading.Event()

    def write() -> None:
        for _ in range(10):
            for data in whole:
                writer.put("x", data)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(write)
        while not done.is_set() and not running.done():
            assert reader.get("x") in whole
        running.result()


def test_a_store_with_exclusive_puts_passes_and_keeps_no_trace(objects: Objects) -> None:
    require_exclusive_puts(objects)
    assert paths(objects) == []


def test_a_store_that_overwrites_is_refused() -> None:
    class Overwriting:
        uri = "memory://careless"

        def __init__(self) -> None:
            self._inner = open_objects("memory://careless")
            self.get, self.put, self.list = self._inner.get, self._inner.put, self._inner.list
            self.get_range, self.delete = self._inner.get_range, self._inner.delete
            self.replace = self._inner.replace

        def put_new(self, path: str, data: bytes) -> bool:
            self.put(path, data)
            return True

    with pytest.raises(StorageRefusedError, match="only if absent"):
        require_exclusive_puts(Overwriting())
    assert paths(open_objects("memory://careless")) == []


SEGMENTS = ["a", "b", "a.", "a-", "é"]


def _named(folders: list[str]) -> str:
    return "/".join([*folders, "x"])


@given(
    names=st.sets(st.lists(st.sampled_from(SEGMENTS), max_size=3).map(_named), max_size=8),
    after=st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("/".join),
)
def test_a_local_listing_equals_a_sorted_filter(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], after: str
) -> None:
    objects = open_objects(str(tmp_path_factory.mktemp("listing")), is_durable=False)
    for name in names:
        objects.put_new(name, b"")
    assert paths(objects, after=after) == sorted(name for name in names if name > after)


def test_a_file_address_is_decoded_and_a_plain_path_is_not(tmp_path: Path) -> None:
    open_objects(f"file://{tmp_path}/a%20b").put_new("x", b"1")
    open_objects(f"file://localhost{tmp_path}/a%20b/").put_new("y", b"1")
    assert sorted(path.name for path in (tmp_path / "a b").iterdir()) == ["x", "y"]
    open_objects(f"{tmp_path}/c%20d").put_new("x", b"1")
    assert (tmp_path / "c%20d" / "x").exists()


def test_a_relative_path_is_fixed_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    objects = open_objects("./x/../graph/")
    monkeypatch.chdir("/")
    assert objects.uri == str(tmp_path / "graph")
    objects.put_new("a", b"1")
    assert (tmp_path / "graph" / "a").exists()


def test_memory_is_shared_by_name_only() -> None:
    open_objects("memory://shared-1").put_new("a", b"1")
    assert open_objects("memory://shared-1").get("a") == b"1"
    assert open_objects("memory://shared-2").get("a") is None


@pytest.mark.parametrize(
    "uri",
    ["", "/", "file://", "file:///", "file://host/a", "memory://", "s3://", "s3:///a", "gs://b/c"],
)
def test_an_address_that_names_no_store_is_refused(uri: str) -> None:
    with pytest.raises(StorageRefusedError) as caught:
        open_objects(uri)
    assert caught.value.operation == "open"
    assert not caught.value.retryable
