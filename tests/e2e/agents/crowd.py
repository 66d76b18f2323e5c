"""Starts the agents: `python -m e2e.agents.crowd 16 10 20` has 16 of them, 10 rounds, 20 edits."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import omnigraph
import places
from e2e.agents.agent import SCHEMA, SHARED, Turn, work
from e2e.agents.judge import Judge


@dataclass(frozen=True, slots=True)
class Result:
    """What the agents did, and how long all of it took."""

    turns: tuple[Turn, ...]
    edits: int
    took_s: float

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(turn.outcome for turn in self.turns)

    def __str__(self) -> str:
        merges = sorted(turn.merge_s for turn in self.turns)
        counted = ", ".join(f"{count} {word}" for word, count in sorted(self.outcomes.items()))
        return (
            f"{len(self.turns)} branches of {self.edits} edits in {self.took_s:.0f} s: {counted};"
            f" {len(self.turns) * self.edits / self.took_s:.0f} edits/s,"
            f" {len(self.turns) / self.took_s:.2f} merges/s,"
            f" a merge takes {merges[len(merges) // 2] * 1000:.0f} ms"
            f" (median; longest {merges[-1] * 1000:.0f} ms)"
        )


def run(folder: Path, *, agents: int, rounds: int, edits: int) -> Result:
    """Let agents work on one graph, and judge what they left."""
    uri = places.fresh_uri(folder / "agents.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(SHARED)]
        graph.branch().load(people, mode="append")
    began = time.monotonic()
    # Lance does not survive a fork.
    with ProcessPoolExecutor(agents, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(work, uri, number, rounds, edits) for number in range(agents)]
        turns = tuple(turn for run in runs for turn in run.result())
    took = time.monotonic() - began
    with omnigraph.open(uri, durable=False) as graph:
        Judge(graph).judge(turns)
        assert graph.check().problems == ()
    return Result(turns, edits, took)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]] or [16, 10, 20]
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name), agents=given[0], rounds=given[1], edits=given[2])
        sys.stdout.write(f"{given[0]} agents: {found}\n")
