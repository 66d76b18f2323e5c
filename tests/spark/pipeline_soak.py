"""Kills pipeline runs at random moments and runs them again: `python -m spark.pipeline_soak 20`.

Every round has a file, new or put back, two targets, a process that is killed with its Java, and
one that is left alone. Then each target must have one commit more of this file, all entities, and a
ledger that agrees with the records.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import omnigraph
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.run.pipeline_inspection import read_runs
from spark.pipeline_world import SIMPLE, company, defined, entities, logins

_ROWS = 2000
_TARGETS = ("company", "people")


def main() -> None:
    """Run the rounds that the command line asks for."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in _TARGETS:
            company(folder, f"{name}.omni").close()
        second = SIMPLE[SIMPLE.index("  - graph") :].replace("graph: company", "graph: people")
        graphs = "company.omni, people: people.omni}"
        text = SIMPLE.replace("company.omni}", graphs) + second
        pipeline = defined(folder, text.replace("mode: append", "mode: merge"))
        usual = _round(folder, 0, None)
        for number in range(1, rounds + 1):
            kill_after = chance.uniform(0, usual)
            _round(folder, number, kill_after)
            _check(folder, number, Path(pipeline.file))
            sys.stdout.write(f"round {number}: killed after {kill_after:.1f} s, one commit each\n")
            sys.stdout.flush()


def _round(folder: Path, number: int, kill_after: float | None) -> float:
    """New records, a run that is killed, and one that is not; how long the last one took."""
    file = _file_of(number)
    logins(folder, "a.jsonl", *(f"r{file}-{row}" for row in range(_ROWS)))
    os.utime(folder / "in" / "a.jsonl", (file, file))
    if kill_after is not None:
        begun = _begin(folder)
        time.sleep(kill_after)
        os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()
    start = time.monotonic()
    assert _begin(folder).wait() == 0, "the run that is left alone succeeds"
    return time.monotonic() - start


def _begin(folder: Path) -> subprocess.Popen[bytes]:
    program = "from omnigraph.cli.app import main; main()"
    command = [sys.executable, "-c", program, "pipeline", "run", str(folder / "people.yaml")]
    # A group of its own, so that Java ends with it.
    return subprocess.Popen(
        [*command, "--master", "local[2]"], stdout=subprocess.DEVNULL, start_new_session=True
    )


def _file_of(number: int) -> int:
    """The file of a round: every third round has that of two rounds before, moved back."""
    return number if number % 3 else max(number - 2, 0)


def _check(folder: Path, number: int, definition: Path) -> None:
    pipeline = read_pipeline(definition)
    runs = read_runs(pipeline, Resolver.from_environment(pipeline), limit=None)
    slot = runs[0].slot
    files = [_file_of(each) for each in range(number + 1)]
    for name in _TARGETS:
        with omnigraph.open(folder / f"{name}.omni") as graph:
            commits = graph.branch("main").commits()
            made = {each.id for each in commits if f", {slot}, " in (each.message or "")}
            assert len(made) == files.count(files[-1]), (number, name, made)
            assert len(entities(graph)["Person"]) == len(set(files)) * _ROWS
            assert graph.check().problems == ()
            told = {
                target.commit
                for run in runs
                if run.slot == slot
                for target in run.targets
                if target.graph == name and target.commit is not None
            }
            assert told == made, (number, name, told)


if __name__ == "__main__":
    main()
