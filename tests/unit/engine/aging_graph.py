"""A graph whose clock can be put forward: commits grow old, and no test has to wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.world import SCHEMA, person
from omnigraph import Branch, Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.storage import Tables, open_objects
from omnigraph.versioning import Settings

DAY_S = 86_400.0


@dataclass(slots=True)
class Clock:
    """The time of day, and how far ahead of it a test has gone."""

    ahead_s: float = 0.0

    def now_us(self) -> int:
        return time.time_ns() // 1000 + int(self.ahead_s * 1_000_000)

    def forward(self, seconds: float) -> None:
        self.ahead_s += seconds


@dataclass(slots=True)
class Aging:
    """Where a graph is, and the clock of everybody who opens it."""

    folder: Path
    schema: str = SCHEMA
    grace_s: float = DAY_S
    clock: Clock = field(default_factory=Clock)

    def create(self) -> Graph:
        return _quiet(
            create_on(self._storage(), schema=self.schema, environment=self._environment())
        )

    def open(self) -> Graph:
        """The graph as another process has it."""
        return _quiet(open_on(self._storage(), environment=self._environment()))

    def files(self) -> dict[str, int]:
        """Every file of the graph and its size."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.stat().st_size for path in found}

    def later(self, days: float = 2.0) -> None:
        self.clock.forward(days * DAY_S)

    def _storage(self) -> Storage:
        uri = str(self.folder)

        def tables() -> Tables:
            return Tables(uri, is_durable=False)

        return Storage(open_objects(uri, is_durable=False), tables(), reopen=tables)

    def _environment(self) -> Environment:
        clock = self.clock
        settings = Settings(
            now_us=clock.now_us, read_store_time=lambda _: clock.now_us(), grace_s=self.grace_s
        )
        return Environment(settings=settings)


def _quiet(graph: Graph) -> Graph:
    """Without compaction after commits: a test counts its own commits."""
    graph._session.resources.publishers.on_published = None
    return graph


def add(branch: Branch, *names: str) -> None:
    """One commit for each of some people."""
    for name in names:
        branch.load([person(name)], mode="append")


def people(branch_or_snapshot: object) -> list[str]:
    text = "query q() { match { $x: Person } return { $x.name as name } order { name } }"
    return [row["name"] for row in branch_or_snapshot.query(text).to_pylist()]  # type: ignore[attr-defined]


def versions(branch: Branch) -> list[int]:
    """The versions of a branch's commits, without those that a clean-up made."""
    return [commit.version for commit in branch.commits() if not commit.is_maintenance]


def numbered(first: int, last: int) -> Iterator[str]:
    return (f"p{number:03}" for number in range(first, last + 1))
