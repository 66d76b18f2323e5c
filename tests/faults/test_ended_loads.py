"""Loads in units whose process is killed or interrupted in the midst of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from faults.world import create, exported, person, problems, reopen
from omnigraph import Graph
from omnigraph.storage.objects import layout
from omnigraph.versioning.gc.collector import Collected, Collector

_TESTS = Path(__file__).parent.parent
WRITERS = 2
# Each of them removes what the one before it left, and fences off both writers.
CLEANUPS = 12


@contextmanager
def _loading(uri: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has written some units of a load, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-m", "faults.bulk_process", str(uri)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "written\n"
            yield process
        finally:
            process.kill()


def _seeded(uri: Path) -> bytes:
    with create(uri) as graph:
        graph.branch().load([person("ada", age=36)], mode="append")
        return exported(graph)


def _staging(uri: Path) -> list[Path]:
    return list((uri / layout.STAGING).iterdir())


def _data_files(uri: Path) -> set[Path]:
    return set(uri.glob("t/*/data/*"))


def _collected(graph: Graph, *, grace_s: float, is_dry: bool = False) -> Collected:
    resources = graph._session.resources
    storage = resources.storage
    assert storage.reopen is not None
    settings = replace(resources.committer.settings, grace_s=grace_s)
    collector = Collector(storage.objects, storage.tables, tracer=storage.reopen, settings=settings)
    return collector.collect(is_dry=is_dry)


@pytest.mark.slow
def test_a_killed_load_leaves_nothing_that_a_clean_up_does_not_remove(tmp_path: Path) -> None:
    uri = tmp_path / "graph"
    before = _seeded(uri)
    with _loading(uri) as process:
        process.kill()
        process.wait()
    assert _staging(uri) != []
    with reopen(uri) as graph:
        assert exported(graph) == before
        # Who loads at this moment is not known: what is young stays.
        assert _collected(graph, grace_s=3600).swept == ()
        assert _staging(uri) != []
        assert _collected(graph, grace_s=0).swept != ()
        assert _staging(uri) == []
        assert _collected(graph, grace_s=0, is_dry=True).swept == ()
        assert exported(graph) == before
        assert list(problems(graph)) == []
        graph.branch().load([person("p1")], mode="append")


def test_the_files_of_a_killed_load_go_at_once_beside_writers_that_lose_nothing(
    tmp_path: Path,
) -> None:
    uri = tmp_path / "graph"
    _seeded(uri)
    before = _data_files(uri)
    with _loading(uri) as process:
        process.kill()
        process.wait()
    left = _data_files(uri) - before
    assert left
    is_over = Event()
    with ThreadPoolExecutor(WRITERS) as pool, reopen(uri) as graph:
        try:
            writing = [pool.submit(_write_until, uri, f"w{n}", is_over) for n in range(WRITERS)]
            for _ in range(CLEANUPS):
                assert graph.cleanup(keep=1, dry_run=False, grace=0).errors == ()
        finally:
            is_over.set()
        acknowledged = {name for each in writing for name in each.result()}
    assert len(acknowledged) >= WRITERS
    assert _staging(uri) == []
    with reopen(uri) as graph:
        graph.cleanup(keep=1, dry_run=False, grace=0)
        assert not left & _data_files(uri)
        text = "query q() { match { $x: Person } return { $x.name as name } }"
        found = {row["name"] for row in graph.branch().query(text).to_pylist()}
        assert found == acknowledged | {"ada"}
        assert list(problems(graph)) == []


def _write_until(uri: Path, who: str, is_over: Event) -> list[str]:
    """Commit one person after the other; those that were acknowledged."""
    acknowledged: list[str] = []
    with reopen(uri) as graph:
        while not (acknowledged and is_over.is_set()):
            name = f"{who}-{len(acknowledged)}"
            graph.branch().load([person(name)], mode="append")
            acknowledged.append(name)
    return acknowledged


def test_what_a_load_left_that_was_killed_while_it_wrote_its_first_note_is_removed(
    tmp_path: Path,
) -> None:
    uri = tmp_path / "graph"
    before = _seeded(uri)
    left = [
        uri
        / layout.build_staging_folder("01ARZ3NDEKTSV4RRFFQ69G5FAV")
        / ".tmp-17-0123456789abcdef",
        uri / "__pipelines" / "people" / "runs" / ".tmp-17-0123456789abcdef",
    ]
    for path in left:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"a part of a note")
    with reopen(uri) as graph:
        assert _collected(graph, grace_s=3600).swept == ()
        told = _collected(graph, grace_s=0, is_dry=True).swept
        assert [(each.objects, each.bytes) for each in told if each.table is None] == [
            ({"temporary files": 2}, 32)
        ]
        assert all(path.exists() for path in left)
        swept = _collected(graph, grace_s=0).swept
        assert [each.objects for each in swept if each.table is None] == [{"temporary files": 2}]
        assert all(each.error is None for each in swept)
        assert not any(path.exists() for path in left)
        assert _staging(uri) == []
        assert exported(graph) == before


@pytest.mark.slow
def test_an_interrupted_load_removes_what_it_wrote_and_leaves_the_graph(tmp_path: Path) -> None:
    uri = tmp_path / "graph"
    before = _seeded(uri)
    files = _data_files(uri)
    with _loading(uri) as process:
        assert _staging(uri) != []
        assert _data_files(uri) > files
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert _staging(uri) == []
    assert _data_files(uri) == files
    with reopen(uri) as graph:
        assert exported(graph) == before
        assert list(problems(graph)) == []
        graph.branch().load([person("p1")], mode="append")
