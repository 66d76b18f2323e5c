"""How far hostile reads run beyond their time: the bound is 0.2 s after a timeout of one second.

    python benchmarks/hostile.py [--repeat 3]

Every read of `tests/hostile_reads.py` runs with a timeout of one second on a fresh graph. Printed
are the longest time of each, how it ended, and by how much it was late.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import omnigraph
from hostile_reads import HOSTILE, SCHEMA, fill, params_of
from omnigraph.errors import OmnigraphError

TIMEOUT_S = 1.0
LATE_MAX_S = 0.2


def main() -> int:
    """Run all reads; fails if one of them was too late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    too_late = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        omnigraph.create(f"{folder}/hostile.omni", schema=SCHEMA, durable=False) as graph,
    ):
        fill(graph)
        for name, text in HOSTILE.items():
            found = [_run(graph, text, params_of(name)) for _ in range(repeat)]
            seconds = max(each for each, _ in found)
            late = max(0.0, seconds - TIMEOUT_S)
            too_late += late > LATE_MAX_S
            _say(f"{name:34} {seconds:6.2f} s  late {late:5.2f} s  {found[-1][1]}")
    _say(f"{too_late} of {len(HOSTILE)} were more than {LATE_MAX_S} s late")
    return 1 if too_late else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _run(graph: omnigraph.Graph, text: str, params: dict[str, object] | None) -> tuple[float, str]:
    started = time.monotonic()
    try:
        found = graph.branch().query(text, params=params, timeout=TIMEOUT_S)
        outcome = f"{len(found)} rows"
    except OmnigraphError as error:
        outcome = error.code
    return time.monotonic() - started, outcome


if __name__ == "__main__":
    sys.exit(main())
