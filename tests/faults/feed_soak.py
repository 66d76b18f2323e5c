"""A follower of a branch is killed at random moments, again and again, beside a live writer."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import omnigraph
import places
from faults.world import MUTATIONS, create, person

# A process needs some time to start, on a busy machine a long time.
START_S_MAX = 120.0
# A consumer is killed some time after its first block.
LIFE_S_MAX = 0.6
# Commits that wait when the first consumer starts, so that it is killed in the middle of them.
BACKLOG = 40

_TESTS = Path(__file__).parents[1]
_PATHS = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
Json: TypeAlias = Any  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a soak did."""

    kills: int
    commits: int
    told: int


class Consumer:
    """A consumer process, and the files it leaves behind."""

    def __init__(self, graph: str, folder: Path) -> None:
        self._graph, self._folder = graph, folder
        self.files: list[Path] = []
        self.start()

    def start(self) -> None:
        told = self._folder / f"told-{len(self.files):03}.jsonl"
        told.touch()
        self.files.append(told)
        self.process = _started("feed_consumer", self._graph, self._folder / "cursor", told)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + START_S_MAX
        while text not in self.files[-1].read_text():
            assert self.process.poll() is None, "the consumer stopped by itself"
            assert time.monotonic() < deadline, "the consumer hears nothing"
            time.sleep(0.01)

    def kill(self) -> None:
        assert self.process.poll() is None, "the consumer stopped by itself"
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def soak(folder: Path, *, kills: int, seed: int = 7) -> Outcome:
    """Kill a consumer at random moments; it must be told the history, all of it and in order."""
    uri = places.fresh_uri(folder / "feed.omni")
    graph = create(uri)
    main = graph.branch("main")
    _fill(main)
    chance = random.Random(seed)
    writer, consumer = _started("feed_writer", uri), Consumer(uri, folder)
    try:
        for _ in range(kills):
            consumer.wait_for("\n")
            time.sleep(chance.uniform(0, LIFE_S_MAX))
            consumer.kill()
            consumer.start()
        assert writer.poll() is None, "the writer stopped by itself"
        writer.kill()
        writer.wait()
        last = main.load([person("last")], mode="append").commit.id
        consumer.wait_for(last)
    finally:
        for process in (writer, consumer.process):
            process.kill()
            process.wait()
    return _verified(main, consumer.files, last, kills)


def _started(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"faults.{module}", *map(str, arguments)],
        cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*_PATHS, str(_TESTS)])},
    )


def _fill(main: omnigraph.Branch) -> None:
    main.load([person(f"p{number}", age=number) for number in range(60)], mode="append")
    for number in range(BACKLOG):
        main.mutate(MUTATIONS, name="age", params={"name": f"p{number}", "age": 90})
    main.mutate(MUTATIONS, name="leave", params={"name": "p59"})


def _verified(main: omnigraph.Branch, files: list[Path], last: str, kills: int) -> Outcome:
    told = [block for file in files for block in _blocks(file)]
    blocks: dict[str, Json] = {}
    for block in told:
        known = blocks.setdefault(block["cause"]["graph_commit_id"], block)
        assert known == block, "a commit was told in two ways"
    history = [commit.id for commit in main.commits()][-2::-1]
    assert list(blocks) == history[: history.index(last) + 1], "not every commit once, in order"
    replica: dict[tuple[str, str], Json] = {}
    for block in blocks.values():
        for change in block["changes"]:
            _apply(replica, change)
    assert replica == _exported(main.graph.snapshot(last)), "the changes do not add up"
    return Outcome(kills, len(blocks), len(told))


def _blocks(file: Path) -> list[Json]:
    """The whole lines of a consumer; the last one may be torn."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


def _apply(replica: dict[tuple[str, str], Json], change: Json) -> None:
    key = change["type"]["name"], change["id"]
    assert replica.get(key) == change.get("before"), "a change does not follow from the last one"
    if change["op"] == "delete":
        del replica[key]
    else:
        replica[key] = change["after"]


def _exported(snapshot: omnigraph.Snapshot) -> dict[tuple[str, str], Json]:
    found = {}
    types = {key.name: type_.properties for key, type_ in snapshot.view.types.items()}
    for line in b"".join(snapshot.export()).splitlines():
        record = json.loads(line)
        properties = types[record.get("type") or record["edge"]]
        # An export leaves nulls out, an image does not.
        image = {"properties": dict.fromkeys(properties) | record["data"]}
        if "edge" in record:
            image["endpoints"] = {"from": record["from"], "to": record["to"]}
        found[record.get("type") or record["edge"], record["id"]] = image
    return found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(f"{soak(Path(name), kills=int(sys.argv[1]))}\n")
