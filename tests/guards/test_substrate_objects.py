"""Local puts survive a power loss: the libraries below us sync nothing that they write."""

from __future__ import annotations

import os
from pathlib import Path

from disks import VolatileSystem
from omnigraph.storage.objects.local_store import LocalObjects


def write(objects: LocalObjects, path: str) -> None:
    assert objects.put_new(path, b"data")


def test_an_acknowledged_put_survives_a_power_loss(tmp_path: Path) -> None:
    disk = VolatileSystem()
    objects = LocalObjects(str(tmp_path / "new" / "graph"), system=disk)
    for path in ["a", "b/c/d", "b/c/e", "b/f", "a-later-one"]:
        write(objects, path)
        assert disk.survives(f"{objects.uri}/{path}", below=str(tmp_path))
    os.rename(f"{objects.uri}/b/c", f"{objects.uri}/b/moved")
    write(objects, "b/c/d")
    assert disk.survives(f"{objects.uri}/b/c/d", below=str(tmp_path))


def test_a_directory_made_by_a_writer_that_died_is_synced_too(tmp_path: Path) -> None:
    (tmp_path / "graph" / "a" / "b").mkdir(parents=True)
    disk = VolatileSystem()
    write(LocalObjects(str(tmp_path / "graph"), system=disk), "a/b/c")
    assert disk.survives(str(tmp_path / "graph" / "a" / "b" / "c"), below=str(tmp_path))


def test_data_is_synced_before_its_name_appears(tmp_path: Path) -> None:
    class Ordered(VolatileSystem):
        def link(self, source: str, target: str, /) -> None:
            assert os.stat(source).st_ino in self.synced_files
            super().link(source, target)

    write(LocalObjects(str(tmp_path), system=Ordered()), "a/b")
    assert (tmp_path / "a" / "b").read_bytes() == b"data"


def test_an_unsynced_store_calls_no_sync_at_all(tmp_path: Path) -> None:
    disk = VolatileSystem()
    write(LocalObjects(str(tmp_path / "graph"), is_durable=False, system=disk), "a/b")
    assert (disk.synced_files, disk.synced_names) == (set(), {})
    assert not disk.survives(str(tmp_path / "graph" / "a" / "b"), below=str(tmp_path))


def test_the_guard_notices_a_directory_that_is_not_synced(tmp_path: Path) -> None:
    class Careless(VolatileSystem):
        def fsync(self, fd: int, /) -> None:
            if not os.path.isdir(os.readlink(f"/proc/self/fd/{fd}")):
                super().fsync(fd)

    disk = Careless()
    write(LocalObjects(str(tmp_path / "graph"), system=disk), "a")
    assert not disk.survives(str(tmp_path / "graph" / "a"), below=str(tmp_path))


def test_a_derived_object_is_replaced_without_a_sync(tmp_path: Path) -> None:
    disk = VolatileSystem()
    objects = LocalObjects(str(tmp_path / "graph"), system=disk)
    write(objects, "a")
    synced = set(disk.synced_files)
    objects.put("hint", b"1")
    objects.put("hint", b"2")
    assert disk.synced_files == synced
    assert objects.get("hint") == b"2"
