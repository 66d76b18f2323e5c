"""Kills a stream between two graphs at random moments: `python -m spark.stream_soak 20`.

A program follows the change feed of a graph, transforms the changes and appends them to another
graph, whose entities have no keys: a change that is written twice is two entities there. It is
killed with its Java while it works and started again, while the first graph is written to. In the
end every change is in the other graph once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import omnigraph
from omnigraph import Graph

SOURCE = "node Person {\n  name: String @key\n  age: I32\n}"
TARGET = "node Change {\n  name: String\n  age: I32\n  made_by: String\n}"
# So many commits of the first graph are there for each life of the program.
COMMITS = 6
# A program that makes no commit for so long is stuck.
PATIENCE_S = 600.0
PROGRAM = """
import sys
from omnigraph.spark.spark_session import get_session

source, target, checkpoint, is_last = sys.argv[1:]
changes = get_session().readStream.format("omnigraph").options(types="Person", ops="insert,update")
rows = changes.option("maxRowsPerTrigger", "1").load(source).selectExpr(
    "id AS name",
    "2 * cast(get_json_object(after, '$.properties.age') AS int) AS age",
    "commit AS made_by",
)
sink = rows.writeStream.format("omnigraph").options(type="Change", mode="append", path=target)
sink = sink.option("checkpointLocation", checkpoint)
once = dict(availableNow=True) if is_last == "last" else dict(processingTime="0 seconds")
sink.trigger(**once).start().awaitTermination()
"""


def main() -> None:
    """Kill the program as often as the command line asks for."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with (
            omnigraph.create(folder / "source.omni", schema=SOURCE) as source,
            omnigraph.create(folder / "target.omni", schema=TARGET) as target,
        ):
            known: Counter[tuple[str, int]] = Counter()
            for number in range(1, kills + 1):
                _write_changes(source, chance, known)
                before = _count_commits(target)
                begun = _begin(folder, "killed")
                _wait_for_commit(target, before, begun)
                time.sleep(chance.uniform(0, 2))
                os.killpg(begun.pid, signal.SIGKILL)
                begun.wait()
                sys.stdout.write(f"kill {number}: {_count_commits(target)} commits\n")
                sys.stdout.flush()
            assert _begin(folder, "last").wait() == 0, "the program that is left alone ends well"
            _check(known, target)
    sys.stdout.write(f"{kills} kills, every change once\n")


def _write_changes(source: Graph, chance: random.Random, known: Counter[tuple[str, int]]) -> None:
    """Commits of one change each, and what the other graph must hold for it."""
    for _ in range(COMMITS):
        name, age = f"p{chance.randrange(12)}", known.total()
        source.branch().load([{"name": name, "age": age}], type="Person", mode="merge")
        known[name, 2 * age] += 1


def _begin(folder: Path, way: str) -> subprocess.Popen[bytes]:
    paths = [str(folder / name) for name in ("source.omni", "target.omni", "checkpoint")]
    command = [sys.executable, "-c", PROGRAM, *paths, way]
    # A group of its own, so that Java ends with it.
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


def _wait_for_commit(target: Graph, before: int, begun: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while _count_commits(target) == before:
        assert begun.poll() is None, "the program goes on until it is killed"
        assert time.monotonic() < end, "the program makes commits"
        time.sleep(0.05)


def _count_commits(graph: Graph) -> int:
    return graph.branch().head.version


def _check(wanted: Counter[tuple[str, int]], target: Graph) -> None:
    text = "query q() { match { $c: Change } return { $c.name, $c.age } }"
    rows = target.branch().query(text).to_pylist()
    found = Counter((row["c.name"], row["c.age"]) for row in rows)
    assert found == wanted, (found - wanted, wanted - found)


if __name__ == "__main__":
    main()
