"""The soak of clean-up: it runs beside writers and readers, and loses nothing anybody needs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from faults.cleanup_workers import KEEP, opened
from faults.world import create, names, problems

_TESTS = Path(__file__).parents[1]
_ROLES = ("write", "write", "read", "clean", "clean")
# Beyond its time, a worker may need this long to start and to end on a busy machine.
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a soak did: turns of writers and readers, clean-ups, objects they removed, checks."""

    writes: int
    reads: int
    cleanups: int
    removed: int
    checks: int
    left: int


def soak(folder: Path, *, seconds: float) -> Outcome:
    """Run all workers for a time, checking the graph meanwhile; then look at what is left."""
    graph = folder / "cleaned.omni"
    create(graph).close()
    logs = [folder / f"{role}{number}.log" for number, role in enumerate(_ROLES)]
    workers = [
        _start(role, graph, logs[number], number, seconds) for number, role in enumerate(_ROLES)
    ]
    checks, end = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < end and all(each.poll() in (None, 0) for each in workers):
            with opened(str(graph)) as seen:
                found = list(problems(seen))
                assert found == [], found
            checks += 1
        for worker in workers:
            assert worker.wait(timeout=PATIENCE_S) == 0, "a worker met an error"
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    told = {log: log.read_text().splitlines() for log in logs}
    removed = [int(line.split()[-1]) for log in logs for line in told[log] if "removed" in line]
    writes = [line.split()[1] for log in logs if "write" in log.name for line in told[log]]
    return Outcome(
        writes=len(writes),
        reads=sum(len(told[log]) for log in logs if "read" in log.name),
        cleanups=len(removed),
        removed=sum(removed),
        checks=checks,
        left=_verified(graph, {who for who in writes if who.startswith("write")}),
    )


def _start(
    role: str, graph: Path, log: Path, number: int, seconds: float
) -> subprocess.Popen[bytes]:
    log.touch()
    arguments = [role, str(graph), str(log), str(number), str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-m", "faults.cleanup_workers", *arguments],
        cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    )


def _verified(folder: Path, written: set[str]) -> int:
    """Nothing that was written is lost, and nothing is left that nobody needs; how many files."""
    with opened(str(folder), grace_s=0.0) as graph:
        main = graph.branch()
        people = names(main)
        assert written <= people, "an acknowledged write is lost"
        before = sorted(b"".join(main.export()).splitlines())
        for tag in graph.tags():
            graph.delete_tag(tag.name)
        for name in graph.branches()[1:]:
            graph.delete_branch(name)
        graph.cleanup(keep=KEEP, dry_run=False)
        assert graph.cleanup(keep=KEEP).objects == 0
    with opened(str(folder), grace_s=0.0) as graph:
        assert list(problems(graph)) == []
        assert sorted(b"".join(graph.branch().export()).splitlines()) == before
        assert sum(commit.message != "cleanup" for commit in graph.branch().commits()) == KEEP
        needed = _needed(graph, folder)
        stored = {str(path.relative_to(folder)) for path in folder.glob("t/**/*") if path.is_file()}
        assert stored == needed, "something unreachable is left, or something reachable is gone"
        graph.branch().load([{"type": "Note", "data": {"text": "after"}}], mode="append")
    return len(stored)


def _needed(graph: object, folder: Path) -> set[str]:
    """Every file of the tables that the kept commits refer to, found commit by commit."""
    tables = graph._session.resources.storage.tables  # type: ignore[attr-defined]
    pins = {
        pin
        for commit in graph.branch().commits()  # type: ignore[attr-defined]
        for pin in graph.snapshot(commit).at.pins.values()  # type: ignore[attr-defined]
    }
    needed: set[str] = set()
    for reference in {each for pin in pins for each in tables.list_references(pin)}:
        target = folder / reference
        found = target.rglob("*") if reference.endswith("/") else [target]
        needed |= {str(path.relative_to(folder)) for path in found if path.is_file()}
    return needed


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
        found = soak(Path(name), seconds=seconds)
        sys.stdout.write(
            f"{seconds:.0f} s of clean-up beside writers and readers: {found.writes} writes, "
            f"{found.reads} reads, {found.cleanups} clean-ups removed {found.removed} objects, "
            f"{found.checks} checks found nothing missing, {found.left} files are left\n"
        )
