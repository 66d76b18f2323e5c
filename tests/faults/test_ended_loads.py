"""Loads in units whose process is killed or interrupted in the midst of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from faults.world import create, exported, person, problems, reopen
from omnigraph import Graph
from omnigraph.storage import layout
from omnigraph.versioning.collect import Collected, Collector

_TESTS = Path(__file__).parent.parent


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
    assert storage.reopened is not None
    settings = replace(resources.committer.settings, grace_s=grace_s)
    collector = Collector(
        storage.objects, storage.tables, tracer=storage.reopened, settings=settings
    )
    return collector.collect(is_dry=is_dry)


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


def test_what_a_load_left_that_was_killed_while_it_wrote_its_first_note_is_removed(
    tmp_path: Path,
) -> None:
    uri = tmp_path / "graph"
    before = _seeded(uri)
    left = [
        uri / layout.staging_folder("01ARZ3NDEKTSV4RRFFQ69G5FAV") / ".tmp-17-0123456789abcdef",
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
