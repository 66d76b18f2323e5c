from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from disks import CrashingSystem, FailingSystem, SystemCalls
from omnigraph.errors import StorageError, StorageRefusedError, StorageUnknownError
from omnigraph.storage.objects.faults import Fault, Result, SimulatedCrash, Steps, iter_faults
from omnigraph.storage.objects.local_store import (
    DELETE_PIECE,
    PUBLISH_TRIES_MAX,
    TEMPORARY_AGE_S,
    LocalObjects,
)

OLD, NEW = b"the old data", b"the new, longer data"


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def faults(scenario: Callable[[LocalObjects], object], folder: Path) -> list[Fault]:
    def run(steps: Steps) -> None:
        scenario(LocalObjects(str(folder), system=CrashingSystem(steps)))

    return list(iter_faults(run))


def test_a_crash_at_any_call_of_put_new_leaves_all_or_nothing(tmp_path: Path) -> None:
    def scenario(objects: LocalObjects) -> bool:
        return objects.put_new("a/b/c", NEW)

    windows = faults(scenario, tmp_path / "counted")
    assert len(windows) > 30
    for fault in windows:
        root, steps = tmp_path / str(fault), fault.create_steps()
        with pytest.raises(SimulatedCrash):
            scenario(LocalObjects(str(root), system=CrashingSystem(steps)))
        assert steps.has_fired
        reopened = LocalObjects(str(root))
        is_created = reopened.get("a/b/c") == NEW
        assert is_created or reopened.get("a/b/c") is None
        assert [entry.path for entry in reopened.list("")] == ["a/b/c"] * is_created
        assert reopened.put_new("a/b/c", OLD) is not is_created
        assert reopened.get("a/b/c") == (NEW if is_created else OLD)


def test_a_crash_at_any_call_of_put_leaves_the_old_or_the_new_object(tmp_path: Path) -> None:
    def scenario(objects: LocalObjects) -> None:
        objects.put("a/b", NEW)

    for fault in faults(scenario, tmp_path / "counted"):
        root = tmp_path / str(fault)
        reopened = LocalObjects(str(root))
        reopened.put("a/b", OLD)
        steps = fault.create_steps()
        try:
            scenario(LocalObjects(str(root), system=CrashingSystem(steps)))
        except SimulatedCrash:
            assert reopened.get("a/b") in (OLD, NEW)
        else:
            # The counted run also made the directory; and its last call removes what is gone.
            assert reopened.get("a/b") == NEW
        reopened.put("a/b", NEW)
        assert reopened.get("a/b") == NEW


def test_a_full_disk_at_any_call_is_a_typed_error_and_shows_nothing(tmp_path: Path) -> None:
    counted = FailingSystem(number=0, error=0)
    LocalObjects(str(tmp_path / "counted"), system=counted).put_new("a/b", NEW)
    linked = [name for name, _ in counted.calls].index("link") + 1
    for number, (name, _) in enumerate(counted.calls, 1):
        root = tmp_path / str(number)
        objects = LocalObjects(str(root), system=FailingSystem(number, errno.ENOSPC))
        if name == "unlink":
            assert objects.put_new("a/b", NEW) is True
            continue
        with pytest.raises(StorageError, match="No space left on device") as caught:
            objects.put_new("a/b", NEW)
        assert (caught.value.operation, caught.value.path) == ("put_new", f"{root}/a/b")
        assert caught.value.retryable
        # After the link others may have read it already: the outcome is not "no".
        assert isinstance(caught.value, StorageUnknownError) is (number > linked)
        assert files_below(root) == (["a/b"] if number > linked else [])
        assert objects.put_new("a/b", NEW) is (number < linked + 1)


@dataclass
class RemovingSystem(SystemCalls):
    """Removes the temporary file before its name is given, as a clean-up without grace may."""

    removals: int

    def call(self, name: str, path: str, action: Callable[[], Result], /) -> Result:
        if name in ("link", "replace") and self.removals:
            self.removals -= 1
            for temporary in Path(path).parent.glob(".tmp-*"):
                temporary.unlink()
            Path(path).parent.rmdir()
        return action()


def test_a_put_whose_temporary_file_is_removed_writes_it_again(tmp_path: Path) -> None:
    for put in (LocalObjects.put_new, LocalObjects.put):
        for removals in range(PUBLISH_TRIES_MAX + 1):
            root = tmp_path / f"{put.__name__}-{removals}"
            objects = LocalObjects(str(root), system=RemovingSystem(removals))
            if removals < PUBLISH_TRIES_MAX:
                put(objects, "a/b", NEW)
                assert files_below(root) == ["a/b"]
                assert objects.get("a/b") == NEW
            else:
                with pytest.raises(StorageError, match="No such file"):
                    put(objects, "a/b", NEW)
                assert files_below(root) == []


def test_a_put_on_a_full_disk_keeps_the_old_object(tmp_path: Path) -> None:
    plain = LocalObjects(str(tmp_path))
    plain.put("a", NEW)
    counted = FailingSystem(number=0, error=0)
    LocalObjects(str(tmp_path), system=counted).put("a", NEW)
    plain.put("a", OLD)
    replaced = [name for name, _ in counted.calls].index("replace") + 1
    for number in range(1, replaced + 1):
        failing = FailingSystem(number, errno.ENOSPC)
        with pytest.raises(StorageError, match="No space left"):
            LocalObjects(str(tmp_path), system=failing).put("a", NEW)
        assert plain.get("a") == OLD
        assert files_below(tmp_path) == ["a"]


def test_a_file_size_limit_of_the_system_is_a_typed_error(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from omnigraph.errors import StorageError\n"
        "from omnigraph.storage import open_objects\n"
        "objects = open_objects(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "assert objects.put_new('small', b'x' * 1000)\n"
        "for put in (objects.put_new, objects.put):\n"
        "    try:\n"
        "        put('large', b'x' * 1001)\n"
        "    except StorageError as error:\n"
        "        print(type(error).__name__, error.operation, error.reason)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert finished.stdout.splitlines() == [
        "StorageError put_new File too large",
        "StorageError put File too large",
    ]
    assert files_below(tmp_path) == ["small"]


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS])
def test_a_denied_write_is_refused(tmp_path: Path, error: int) -> None:
    objects = LocalObjects(str(tmp_path / "graph"), system=FailingSystem(2, error))
    with pytest.raises(StorageRefusedError) as caught:
        objects.put_new("a", b"1")
    assert not caught.value.retryable
    assert objects.get("a") is None


def test_an_object_below_another_object_is_refused(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path))
    objects.put_new("a", b"1")
    with pytest.raises(StorageRefusedError, match="Not a directory"):
        objects.put_new("a/b", b"1")
    with pytest.raises(StorageError):
        objects.put("a/b", b"1")
    assert files_below(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_is_refused_with_what_to_do(
    tmp_path: Path, error: int
) -> None:
    class NoLinks(SystemCalls):
        def call(self, name: str, _path: str, action: Callable[[], Result], /) -> Result:
            if name == "link":
                raise OSError(error, os.strerror(error))
            return action()

    objects = LocalObjects(str(tmp_path), system=NoLinks())
    with pytest.raises(StorageRefusedError, match="has no hard links") as caught:
        objects.put_new("a", b"1")
    assert caught.value.hint is not None
    assert "ext4" in caught.value.hint
    assert files_below(tmp_path) == []


def test_a_link_whose_answer_was_lost_and_that_is_repeated_counts_as_created(
    tmp_path: Path,
) -> None:
    class Repeating(SystemCalls):
        def link(self, source: str, target: str, /) -> None:
            os.link(source, target)
            os.link(source, target)

    objects = LocalObjects(str(tmp_path), system=Repeating())
    assert objects.put_new("a", b"1") is True
    assert LocalObjects(str(tmp_path)).put_new("a", b"2") is False


def test_a_late_creator_writes_nothing(tmp_path: Path) -> None:
    LocalObjects(str(tmp_path)).put_new("a", b"1")
    watched = FailingSystem(number=0, error=0)
    assert LocalObjects(str(tmp_path), system=watched).put_new("a", b"2") is False
    assert watched.calls == []


def test_temporary_files_of_dead_writers_are_never_listed(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path))
    objects.put_new("a/b", b"1")
    (tmp_path / "a" / ".tmp-1-dead").write_bytes(b"half")
    assert [entry.path for entry in objects.list("")] == ["a/b"]


def test_a_delete_removes_old_temporary_files_and_keeps_young_ones(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path))
    objects.put_new("a/b", b"1")
    old, young = tmp_path / "a" / ".tmp-1-old", tmp_path / "a" / ".tmp-2-young"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    long_ago = time.time() - TEMPORARY_AGE_S - 60
    os.utime(old, (long_ago, long_ago))
    objects.delete(["a/b"])
    assert files_below(tmp_path) == ["a/.tmp-2-young"]


def test_a_directory_that_vanishes_between_two_writes_is_made_again(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path / "graph"))
    objects.put_new("a/b", b"1")
    objects.delete(["a/b"])
    (tmp_path / "graph" / "a").rmdir()
    assert objects.put_new("a/b", b"2")
    assert objects.get("a/b") == b"2"


def test_a_listing_follows_a_link_to_another_disk(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "t").symlink_to(tmp_path / "other")
    objects = LocalObjects(str(tmp_path / "graph"))
    objects.put_new("t/x", b"1")
    assert [entry.path for entry in objects.list("")] == ["t/x"]


def test_many_objects_are_removed_together_and_a_failure_is_told(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path), is_durable=False)
    paths = [f"a{number % 3}/{number}" for number in range(2 * DELETE_PIECE + 1)]
    for path in paths:
        objects.put(path, b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="folder"):
        objects.delete([*paths[:DELETE_PIECE], "folder", paths[-1]])
    assert len(list(objects.list(""))) == len(paths) - DELETE_PIECE
    objects.delete([*paths, "absent"])
    assert list(objects.list("")) == []
