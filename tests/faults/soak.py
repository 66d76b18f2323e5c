"""The soak: writer processes on one graph are killed at random moments, again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import places
from faults.world import create, names, problems, reopen, rows

WRITERS = 4
# A writer needs about this long to start; it is killed some time after its first commit.
LIFE_S_MAX = 1.5
START_S_MAX = 60.0

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a soak did."""

    kills: int
    acknowledged: int
    in_flight: int


class Writer:
    """A writer process and what it told so far; it can be killed and started again."""

    def __init__(self, graph: str, folder: Path, number: int) -> None:
        self._graph, self._folder, self._number = graph, folder, number
        self._life = 0
        self.logs: list[Path] = []
        self.start()

    def start(self) -> None:
        self._life += 1
        name = f"w{self._number}-{self._life}"
        log = self._folder / f"{name}.log"
        log.touch()
        self.logs.append(log)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "faults.soak_writer", self._graph, str(log), name],
            cwd=_TESTS,
            env={**os.environ, "PYTHONPATH": str(_TESTS)},
        )

    def wait_for_a_commit(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while "ok " not in self.logs[-1].read_text():
            assert self.process.poll() is None, "a writer stopped by itself"
            assert time.monotonic() < deadline, "a writer makes no commits"
            time.sleep(0.01)

    def kill(self) -> None:
        assert self.process.poll() is None, "a writer stopped by itself"
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def soak(folder: Path, *, kills: int, seed: int = 7) -> Outcome:
    """Kill writers at random moments; everything acknowledged must be there, whole."""
    graph = places.fresh_uri(folder / "soak.omni")
    create(graph).close()
    chance = random.Random(seed)
    writers = [Writer(graph, folder, number) for number in range(WRITERS)]
    try:
        for number in range(kills):
            victim = writers[number % WRITERS]
            victim.wait_for_a_commit()
            time.sleep(chance.uniform(0, LIFE_S_MAX / WRITERS))
            victim.kill()
            victim.start()
        for writer in writers:
            writer.wait_for_a_commit()
    finally:
        for writer in writers:
            writer.process.kill()
            writer.process.wait()
    return _verified(graph, [log for writer in writers for log in writer.logs], kills)


def _verified(graph: str, logs: list[Path], kills: int) -> Outcome:
    tried, acknowledged = set(), {}
    for log in logs:
        for line in log.read_text().splitlines():
            verb, *words = line.split(" ")
            if verb == "try":
                tried.add(words[0])
            elif len(words) == 2:
                acknowledged[words[0]] = words[1]
    opened = reopen(graph)
    main = opened.branch("main")
    people, teams = names(main), names(main, "Team")
    pairs = rows(main, "query m() { match { $t: Team } return { $t.name } }")
    assert acknowledged.keys() <= people, "an acknowledged commit is lost"
    assert people <= tried, "somebody is there whom nobody wrote"
    assert {f"team of {name}" for name in people} == teams, "a commit is there in part"
    assert len(pairs) == len(people) == main.count("MemberOf"), "a commit is there in part"
    commits = {commit.id for commit in main.commits()}
    assert set(acknowledged.values()) <= commits, "an acknowledged commit is not in the history"
    assert list(problems(opened)) == []
    # The graph that was left behind takes the next write.
    main.load([{"type": "Note", "data": {"text": "after"}}], mode="append")
    assert main.count("Note") == 1
    return Outcome(kills, len(acknowledged), len(tried) - len(acknowledged))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        started = time.monotonic()
        found = soak(Path(name), kills=int(sys.argv[1]) if len(sys.argv) > 1 else 200)
        sys.stdout.write(
            f"{found.kills} kills of {WRITERS} writers in {time.monotonic() - started:.0f} s: "
            f"{found.acknowledged} acknowledged writes, none lost, none in part; "
            f"{found.in_flight} writes were under way when their writer died\n"
        )
