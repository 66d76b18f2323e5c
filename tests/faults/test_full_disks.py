"""A clean-up on a full disk: it frees what it can, or says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from disks import FullSystem
from faults.world import SCHEMA, person, problems
from omnigraph import Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Storage
from omnigraph.errors import StorageFullError
from omnigraph.storage import Tables
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.disk_reserve import compute_reserve_bytes
from omnigraph.storage.objects.local_store import LocalObjects

LEFT_BYTES = 1024 * 1024


def _storage(folder: Path, system: FullSystem) -> Storage:
    uri = str(folder)

    def tables() -> Tables:
        return Tables(uri, is_durable=False)

    return Storage(LocalObjects(uri, is_durable=False, system=system), tables(), reopen=tables)


def _quiet(graph: Graph) -> Graph:
    graph._session.resources.publishers.on_published = None
    return graph


def _seeded(folder: Path, branches: int) -> None:
    with _quiet(create_on(_storage(folder, FullSystem(folder)), schema=SCHEMA)) as graph:
        for number in range(4):
            graph.branch().load([person(f"p{number}")], mode="append")
        for number in range(branches):
            graph.create_branch(f"b{number}").load([person(f"b{number}")], mode="append")
    # As a killed load leaves it.
    next(folder.glob("t/Person-*/data")).joinpath("dead.lance").write_bytes(bytes(LEFT_BYTES))


def _opened(folder: Path, system: FullSystem) -> Graph:
    return _quiet(open_on(_storage(folder, system)))


@pytest.mark.parametrize("branches", [0, 3])
def test_a_clean_up_on_a_full_disk_gives_up_its_reserve_and_frees_the_rest(
    tmp_path: Path, branches: int
) -> None:
    _seeded(tmp_path, branches)
    system = FullSystem(tmp_path)
    with _opened(tmp_path, FullSystem(tmp_path)) as graph:
        expected = graph.cleanup(keep=1, grace=0)
    system.fill()
    with _opened(tmp_path, system) as graph:
        with pytest.raises(StorageFullError, match="No space left"):
            graph.branch().load([person("more")], mode="append")
        done = graph.cleanup(keep=1, dry_run=False, grace=0)
        assert system.refusals > 1
        assert (done.errors, done.oldest) == ((), expected.oldest)
        assert done.commits == expected.commits > 0
        assert done.bytes >= expected.bytes
        graph.branch().load([person("more")], mode="append")
        assert list(problems(graph)) == []
    reserve = tmp_path / layout.RESERVE
    assert reserve.stat().st_size == compute_reserve_bytes(1 + branches)


def test_a_clean_up_without_any_room_says_how_much_it_needs_and_goes_on_with_it(
    tmp_path: Path,
) -> None:
    _seeded(tmp_path, branches=1)
    (tmp_path / layout.RESERVE).unlink()
    system = FullSystem(tmp_path)
    system.fill()
    with _opened(tmp_path, system) as graph:
        with pytest.raises(StorageFullError, match="No space left") as caught:
            graph.cleanup(keep=1, dry_run=False, grace=0)
        assert caught.value.hint is not None
        assert "free 96 KiB elsewhere" in caught.value.hint
        assert list(problems(graph)) == []
        system.blocks_free += compute_reserve_bytes(2) // 4096
        assert graph.cleanup(keep=1, dry_run=False, grace=0).errors == ()
        assert list(problems(graph)) == []


def test_what_no_commit_can_refer_to_makes_room_without_a_reserve(tmp_path: Path) -> None:
    _seeded(tmp_path, branches=0)
    (tmp_path / layout.RESERVE).unlink()
    note = tmp_path / layout.build_staging_folder("01arz3ndektsv4rrffq69g5fav") / "note"
    note.parent.mkdir(parents=True)
    note.write_bytes(b"x" * 65536)
    system = FullSystem(tmp_path)
    system.fill()
    with _opened(tmp_path, system) as graph:
        done = graph.cleanup(keep=1, dry_run=False, grace=0)
        assert done.other is not None
        assert done.other.objects["staged files"] == 1
        assert not note.exists()
        assert list(problems(graph)) == []
