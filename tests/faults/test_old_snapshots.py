"""Who holds an old snapshot gets the same answers, whatever others do to the graph meanwhile."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import pytest

import places
from faults import snapshot_workers as workers
from faults.world import create, problems, reopen
from omnigraph.execution.query_budget import Access

COMMITS = 200 if places.is_on_s3() else 1_000
# One that writes, one that maintains, and one that reads.
PROCESSES = 3
# Between its snapshot and its last answer a reader must have asked at least so often.
ROUNDS_MIN = 3


@pytest.mark.slow
def test_readers_of_an_old_snapshot_notice_neither_commits_nor_maintenance(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "held.omni")
    with create(uri) as made:
        made.branch().load(workers.seed(), mode="append")
        commit = made.branch().head.id
        made.tag("held", commit)
    held = {access: workers.opened_snapshot(uri, commit, access) for access in Access}
    expected = workers.answers(held[Access.AUTO])
    # Lance does not survive a fork.
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        is_over = manager.Event()
        reading = pool.submit(workers.read_over_and_over, uri, commit, expected, is_over)
        maintaining = pool.submit(workers.maintain_over_and_over, uri, is_over)
        writing = pool.submit(workers.write_many, uri, COMMITS)
        rounds = 0
        try:
            while not writing.done() or rounds < ROUNDS_MIN:
                for access, snapshot in held.items():
                    found = workers.answers(snapshot)
                    assert found == expected, workers.difference(expected, found, access)
                rounds += 1
                wait([writing], timeout=workers.PAUSE_S)
        finally:
            is_over.set()
        assert writing.result() == COMMITS
        assert all(maintaining.result()), "a way of maintenance had nothing to do"
        elsewhere, differing = reading.result()
        assert not differing
        assert elsewhere >= ROUNDS_MIN
    _check_afterwards(uri, commit, expected)


def _check_afterwards(uri: str, commit: str, expected: list[object]) -> None:
    """The old commit is as it was for whoever comes now, and the new one is another."""
    assert workers.answers(workers.opened_snapshot(uri, commit, Access.AUTO)) == expected
    with reopen(uri) as graph:
        assert workers.answers(graph.branch().snapshot()) != expected
        assert list(problems(graph)) == []
