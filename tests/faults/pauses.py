"""Every writer, stopped before and after each of its durable steps while others go on.

Meanwhile another process commits and cleans up without any grace, as if the pause were longer than
every grace. Then the writer goes on. What it acknowledges is there, what others acknowledged is
there, no branch has gone back, and `check` finds nothing.

`python -m faults.pauses` tries every step of every writer; the suite tries what the log gets.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from faults.test_crash_matrix import (
    WRITERS,
    Place,
    Writer,
    collect_all,
    is_log_step,
    state,
)
from faults.world import exported, problems
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.storage.faults import PAUSES, Fault, Steps

OTHERS = [{"type": "Team", "data": {"name": "others"}}]


@dataclass(frozen=True, slots=True)
class Ends:
    """What a graph may show after a pause, depending on whether the writer was acknowledged."""

    acknowledged: tuple[dict[str, bytes], ...]
    refused: tuple[dict[str, bytes], ...]


def check_pauses(place: Place, writer: Writer, *, is_whole: bool) -> int:
    """Stop a writer at its durable steps, one after the other; how many windows there were."""
    place.seeded(writer)
    counted = Steps()
    writer.write(place.opened(counted))
    ends = _ends(place, writer)
    windows = 0
    for number, step in enumerate(counted.taken, 1):
        if not (is_whole or (is_log_step(step) and step.operation == "put_new")):
            continue
        for kind in PAUSES:
            place.seeded(writer)
            _check_pause(place, writer, Fault(number, kind, step.operation), ends)
            windows += 1
    return windows


def _check_pause(place: Place, writer: Writer, fault: Fault, ends: Ends) -> None:
    seen: dict[str, int] = {}

    def during() -> None:
        with place.opened() as other:
            seen.update(_go_on(other))

    steps = fault.steps(during)
    refusal: Exception | None = None
    with place.opened(steps) as graph:
        try:
            writer.write(graph)
        except (OmnigraphError, AssertionError) as error:
            # A writer asserts that it had something to do, and gave nothing up.
            refusal = error
    assert steps.is_met, fault
    with place.opened() as graph:
        expected = ends.acknowledged if refusal is None else ends.refused
        assert state(graph) in expected, (writer.name, fault, refusal)
        for name in graph.branches():
            assert graph.branch(name).head.version >= seen.get(name, 0), (writer.name, fault)
        assert list(problems(graph)) == [], (writer.name, fault)
        graph.branch().load([{"type": "Team", "data": {"name": "next"}}], mode="append")
        assert b'"next"' in exported(graph)


def _go_on(graph: Graph) -> dict[str, int]:
    """Commit, clean up, and tell how far the branches were then."""
    graph.branch().load(OTHERS, mode="merge")
    collect_all(graph)
    return {name: graph.branch(name).head.version for name in graph.branches()}


def _ends(place: Place, writer: Writer) -> Ends:
    """The states after the writer and others, in both orders, and after the others alone."""
    first = _shown_after(place, writer, writer.write, _go_on)
    others = _shown_after(place, writer, _go_on)
    acknowledged = [first]
    # What others did may leave a writer nothing to do, such as no commit to revert.
    with suppress(OmnigraphError, AssertionError):
        acknowledged.append(_shown_after(place, writer, _go_on, writer.write))
    return Ends(tuple(acknowledged), (*acknowledged, others))


def _shown_after(
    place: Place, writer: Writer, *writes: Callable[[Graph], object]
) -> dict[str, bytes]:
    place.seeded(writer)
    for write in writes:
        with place.opened() as graph:
            write(graph)
    with place.opened() as graph:
        return state(graph)


def main() -> None:
    """Try every step of every writer on the disk, and count."""
    total = 0
    for writer in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            windows = check_pauses(Place("local", Path(folder)), writer, is_whole=True)
        total += windows
        sys.stdout.write(f"{writer.name:28} {windows:5} pauses: nothing lost, nothing went back\n")
        sys.stdout.flush()
    sys.stdout.write(f"{total} pauses of {len(WRITERS)} writers\n")


if __name__ == "__main__":
    main()
