"""How much memory one process needs for many commits on many branches, and whether it grows."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

import omnigraph

COMMITS: Final = 20_000
BRANCHES: Final = 200
# The first tenth warms every cache; from there on, memory must not grow.
WARM_SHARE: Final = 10
RATIO_MAX: Final = 1.2
# One commit in so many is on a branch instead of main.
BRANCH_EVERY: Final = 4
_SCHEMA: Final = "node Person { name: String @key value: String }"
_INSERT: Final = 'query add($n: String) { insert Person { name: $n, value: "a short text" } }'
_READ: Final = "query one($n: String) { match { $p: Person { name: $n } } return { $p.value } }"


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of the process after so many commits."""

    commits: int
    branches: int
    resident_mb: float
    anonymous_mb: float
    seconds: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=COMMITS)
    parser.add_argument("--branches", type=int, default=BRANCHES)
    parser.add_argument("--reads", action="store_true", help="read one entity after each commit")
    arguments = parser.parse_args()
    table = Table(title="memory of one process")
    for name in ("commits", "branches", "resident MB", "of it anonymous MB", "s"):
        table.add_column(name, justify="right")
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OMNIGRAPH_CACHE_DIR"] = str(Path(folder) / "cache")
        for sample in _samples(Path(folder) / "graph", arguments):
            samples.append(sample)
            cells = (sample.resident_mb, sample.anonymous_mb, sample.seconds)
            row = (sample.commits, sample.branches, *(f"{each:.0f}" for each in cells))
            table.add_row(*map(str, row))
    console = Console()
    console.print(table)
    warm = next(each for each in samples if each.commits * WARM_SHARE >= samples[-1].commits)
    ratio = samples[-1].resident_mb / warm.resident_mb
    met = "yes" if ratio <= RATIO_MAX else "NO"
    console.print(f"last / first {warm.commits}: {ratio:.2f}, at most {RATIO_MAX}: {met}")


def _samples(folder: Path, arguments: argparse.Namespace) -> Iterator[Sample]:
    """Commit single rows; branches come one by one, all along the way."""
    began = time.perf_counter()
    graph = omnigraph.create(folder, schema=_SCHEMA, durable=False)
    main, turn = graph.branch(), 0
    branches: list[omnigraph.Branch] = []
    per_branch = max(arguments.commits // max(arguments.branches, 1), 1)
    for commit in range(1, arguments.commits + 1):
        if len(branches) < arguments.branches and commit % per_branch == 0:
            branches.append(graph.create_branch(f"branch-{len(branches)}", source=main))
        target = main
        if branches and commit % BRANCH_EVERY == 0:
            target, turn = branches[turn % len(branches)], turn + 1
        target.mutate(_INSERT, params={"n": f"p{commit}"})
        if arguments.reads:
            assert len(target.query(_READ, params={"n": f"p{commit}"})) == 1
        if commit % max(arguments.commits // WARM_SHARE, 1) == 0:
            yield Sample(commit, len(branches), *_memory_mb(), time.perf_counter() - began)
    graph.close()


def _memory_mb() -> tuple[float, float]:
    """What is resident now, and what of it is no file: Linux says it."""
    fields = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        fields[name] = value
    resident, anonymous = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    return resident, anonymous


if __name__ == "__main__":
    main()
