"""Every writer, stopped before and after each of its durable steps while others go on.

Meanwhile another process commits and cleans up without any grace, as if the pause were longer than
every grace. Then the writer goes on. What it acknowledges is there, what others acknowledged is
there, no branch has gone back, and `check` finds nothing.

Two processes may be stopped at once: a writer at its record, and a collector wherever it looks at
the log, while another collector lets go of more and the writer goes on. Or the creator of a name,
and a collector, while others commit on the new branch as soon as they see it.

`python -m faults.pauses` tries every step of every writer; the suite tries what the log gets.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from faults.matrix_writers import (
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
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import PAUSES, Fault, FaultKind, Result, Steps
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import MAIN, Settings
from omnigraph.versioning.gc import gc_roots
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.gc.gc_roots import Policy

OTHERS = [{"type": "Team", "data": {"name": "others"}}]
NEW = "new"
# They name the newest commit of main, of which a clean-up lets go after the next commit.
NAMING = (
    Writer("name-branch", lambda graph: graph.create_branch(NEW)),
    Writer("name-tag", lambda graph: graph.tag("v1")),
)
# Those that need no second branch, which would keep all commits since it was created.
ON_MAIN = ("append", "merge", "overwrite", "insert", "update", "delete")


@dataclass(frozen=True, slots=True)
class Ends:
    """What a graph may show after a pause, depending on whether the writer was acknowledged."""

    acknowledged: tuple[dict[str, bytes], ...]
    refused: tuple[dict[str, bytes], ...]


def check_pauses(place: Place, writer: Writer, *, is_whole: bool) -> int:
    """Stop a writer at its durable steps, one after the other; how many windows there were."""
    # Another branch would keep the commit that is named.
    seed = _seed_main if writer in NAMING else Place.seeded
    seed(place, writer)
    counted = Steps()
    writer.write(place.opened(counted))
    ends = _naming_ends(place, writer) if writer in NAMING else _ends(place, writer, _go_on)
    windows = 0
    for number, step in enumerate(counted.taken, 1):
        if not (is_whole or (is_log_step(step) and step.operation == "put_new")):
            continue
        for kind in PAUSES:
            seed(place, writer)
            _check_pause(place, writer, Fault(number, kind, step.operation), ends)
            windows += 1
    return windows


def check_overlaps(place: Place, writer: Writer, kind: FaultKind, *, is_whole: bool) -> int:
    """Stop a writer at its record, and a collector where it looks at the log; how many windows.

    Unless all of them are tried, the collector is stopped before and while it states a floor.
    """
    _seed_main(place, writer)
    counted = Steps()
    writer.write(place.opened(counted))
    seqs = [layout.parse_record_path(step.path) for step in counted.taken]
    number = next(at for at, seq in enumerate(seqs, 1) if seq is not None)
    ends = _ends(place, writer, _commit_others, seed=_seed_main)
    looks = _count_looks(place)
    stated = looks.index("put_new") + 1
    numbers = range(1, len(looks) + 1) if is_whole else range(stated - 3, stated + 1)
    fault = Fault(number, kind, "put_new")
    for find_commit in numbers:
        _seed_main(place, writer)
        refusal = _write_beside(place, writer, fault, find_commit)
        _require_whole(place, ends, refusal, seen={}, window=(writer.name, fault, find_commit))
    return len(numbers)


def check_naming(place: Place, writer: Writer, *, is_whole: bool) -> int:
    """Stop the creator of a name at its puts, and a collector where it looks; how many windows.

    While the collector is stopped, the put happens, and others commit on the branch if they see it.
    Unless all windows are tried, the put is that of the event, and the collector is about to end.
    """
    _seed_main(place, writer)
    counted = Steps()
    writer.write(place.opened(counted))
    puts = [at for at, step in enumerate(counted.taken, 1) if step.operation == "put_new"]
    ends = _naming_ends(place, writer)
    _seed_main(place, writer)
    looks = StoppedLooks(place.storage().objects, is_naming=True)
    _collect_beside(place, looks)
    last = len(looks.taken)
    windows = [
        (Fault(put, kind, "put_new"), look)
        for put in (puts if is_whole else puts[-1:])
        for kind in PAUSES
        for look in range(1 if is_whole else last - 2, last + 1)
    ]
    for fault, look in windows:
        _seed_main(place, writer)
        _check_naming(place, writer, fault, look, ends)
    return len(windows)


def _check_naming(place: Place, writer: Writer, fault: Fault, look: int, ends: Ends) -> None:
    seen: dict[str, int] = {}

    def overlap(put: Callable[[], object]) -> None:
        def during() -> None:
            put()
            with place.opened() as other:
                if NEW in other.branches():
                    other.branch(NEW).load(OTHERS, mode="merge")
                    seen[NEW] = other.branch(NEW).head.version

        objects = place.storage().objects
        _collect_beside(place, StoppedLooks(objects, look, during, is_naming=True))

    refusal = _write(place, writer, OverlappingSteps(fault, overlap=overlap))
    _require_whole(place, ends, refusal, seen=seen, window=(writer.name, fault, look))


def _collect_beside(place: Place, objects: Objects) -> None:
    """Commit, and collect all that was there before."""
    with place.opened() as other:
        other.branch().load(OTHERS, mode="merge")
    _collect(place, objects, keep=1)


def _count_looks(place: Place) -> list[str]:
    """The looks at the log of a collector that nothing stops."""
    looks = StoppedLooks(place.storage().objects)
    _collect(place, looks, keep=2)
    return looks.taken


def _write_beside(place: Place, writer: Writer, fault: Fault, find_commit: int) -> Exception | None:
    """Write, and meanwhile stop a collector at a look, and meanwhile let another one finish."""

    def overlap(put: Callable[[], object]) -> None:
        with place.opened() as other:
            _commit_others(other)
        during = partial(_collect_and_put, place, put)
        _collect(place, StoppedLooks(place.storage().objects, find_commit, during), keep=2)

    return _write(place, writer, OverlappingSteps(fault, overlap=overlap))


def _collect_and_put(place: Place, put: Callable[[], object]) -> None:
    with place.opened() as other:
        collect_all(other)
    put()


def _collect(place: Place, objects: Objects, keep: int) -> None:
    storage = place.storage()
    settings = Settings(grace_s=0.0, pause=lambda _: None)
    tracer = storage.reopen or (lambda: storage.tables)
    collector = Collector(objects, storage.tables, tracer=tracer, settings=settings)
    # One record at a time, so that it has not read those that it lets go, as in a long history.
    with patch.object(gc_roots, "_PAGE", 1):
        collector.collect(Policy(keep=keep), is_dry=False)


@dataclass(slots=True)
class OverlappingSteps(Steps):
    """Steps of a writer whose put happens, or was answered, while others are under way."""

    overlap: Callable[[Callable[[], object]], object] = lambda put: put()

    def _pause(self, kind: FaultKind, action: Callable[[], Result]) -> Result:
        results: list[Result] = []

        def act() -> None:
            if not results:
                results.append(action())

        if kind is FaultKind.PAUSE_AFTER:
            act()
        self.overlap(act)
        act()
        return results[0]


class StoppedLooks:
    """A store whose process is stopped when it lists the records or floors of main, or puts one.

    With `is_naming` also when it lists names or leases, and when it removes something.
    """

    def __init__(
        self,
        inner: Objects,
        number: int = 0,
        during: Callable[[], object] = lambda: None,
        *,
        is_naming: bool = False,
    ) -> None:
        self.uri = inner.uri
        self.taken: list[str] = []
        self._inner = inner
        self._number = number
        self._during = during
        self._is_naming = is_naming

    def get(self, path: str) -> bytes | None:
        return self._inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return self._inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        self._look("put_new", path)
        return self._inner.put_new(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._inner.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._inner.replace(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        self._look("list", prefix)
        return self._inner.list(prefix, after=after)

    def delete(self, paths: Iterable[str]) -> None:
        removed = list(paths)
        if removed:
            self._look("delete", layout.MANIFEST)
        self._inner.delete(removed)

    def _look(self, operation: str, path: str) -> None:
        folder = layout.build_floor_folder(MAIN.id)
        is_log = path in (layout.build_stream_folder(MAIN.id), folder)
        of_names = operation == "delete" or path in (layout.BRANCHES, layout.LEASES)
        if is_log or path.startswith(f"{folder}/") or (self._is_naming and of_names):
            self.taken.append(operation)
            if len(self.taken) == self._number:
                self._during()


def _check_pause(place: Place, writer: Writer, fault: Fault, ends: Ends) -> None:
    seen: dict[str, int] = {}

    def during() -> None:
        with place.opened() as other:
            seen.update(_go_on(other))

    steps = fault.create_steps(during)
    refusal = _write(place, writer, steps)
    _require_whole(place, ends, refusal, seen=seen, window=(writer.name, fault))


def _write(place: Place, writer: Writer, steps: Steps) -> Exception | None:
    """Why a writer that is stopped at a step was refused; None if it was acknowledged."""
    refusal: Exception | None = None
    with place.opened(steps) as graph:
        try:
            writer.write(graph)
        except (OmnigraphError, AssertionError) as error:
            # A writer asserts that it had something to do, and gave nothing up.
            refusal = error
    assert steps.has_fired, steps.fault
    return refusal


def _require_whole(
    place: Place,
    ends: Ends,
    refusal: Exception | None,
    *,
    seen: Mapping[str, int],
    window: tuple[object, ...],
) -> None:
    with place.opened() as graph:
        expected = ends.acknowledged if refusal is None else ends.refused
        assert state(graph) in expected, (*window, refusal)
        ended = {"review"} if window[0] == "delete-branch" else set()
        for name in seen.keys() - ended:
            assert graph.branch(name).head.version >= seen[name], window
        assert list(problems(graph)) == [], window
        graph.branch().load([{"type": "Team", "data": {"name": "next"}}], mode="append")
        assert b'"next"' in exported(graph)


def _go_on(graph: Graph) -> dict[str, int]:
    """Commit, also on a branch that is new, clean up, and say how far the branches were then."""
    for name in {MAIN.branch, NEW}.intersection(graph.branches()):
        graph.branch(name).load(OTHERS, mode="merge")
    collect_all(graph)
    return {name: graph.branch(name).head.version for name in graph.branches()}


def _commit_others(graph: Graph) -> None:
    """Commit so often that a collector lets go of records that it has not read."""
    for size in range(4):
        others = {"type": "Team", "data": {"name": "others", "size": size}}
        graph.branch().load([others], mode="merge")


def _seed_main(place: Place, writer: Writer) -> None:
    """A graph that has no other branch: that would keep all commits since it was created."""
    place.seeded(writer)
    with place.opened() as graph:
        graph.delete_branch("review")


def _ends(
    place: Place,
    writer: Writer,
    others: Callable[[Graph], object],
    *,
    seed: Callable[[Place, Writer], None] = Place.seeded,
) -> Ends:
    """The states after the writer and others, in both orders, and after the others alone."""
    shown_after = partial(_shown_after, place, writer, seed)
    acknowledged = [shown_after(writer.write, others)]
    # What others did may leave a writer nothing to do, such as no commit to revert.
    with suppress(OmnigraphError, AssertionError):
        acknowledged.append(shown_after(others, writer.write))
    return Ends(tuple(acknowledged), (*acknowledged, shown_after(others)))


def _naming_ends(place: Place, writer: Writer) -> Ends:
    """The states after a name was given before or after the commit of others on main.

    They may have committed on the new branch or not; without the name, they cannot have.
    """

    def commit_on_main(graph: Graph) -> None:
        graph.branch().load(OTHERS, mode="merge")

    shown_after = partial(_shown_after, place, writer, _seed_main)
    orders = [
        (writer.write, commit_on_main),
        (writer.write, _go_on),
        (commit_on_main, writer.write),
        (commit_on_main, writer.write, _go_on),
        # The name of the commit of a clean-up.
        (_go_on, writer.write),
    ]
    acknowledged = [shown_after(*order) for order in orders]
    return Ends(tuple(acknowledged), (shown_after(commit_on_main),))


def _shown_after(
    place: Place,
    writer: Writer,
    seed: Callable[[Place, Writer], None],
    *writes: Callable[[Graph], object],
) -> dict[str, bytes]:
    """What a graph shows after some writes."""
    seed(place, writer)
    for write in writes:
        with place.opened() as graph:
            write(graph)
    with place.opened() as graph:
        return state(graph)


def main() -> None:
    """Try every step of every writer on the disk, and count."""
    total = 0
    for writer in (*WRITERS, *NAMING):
        with tempfile.TemporaryDirectory() as folder:
            windows = check_pauses(Place("local", Path(folder)), writer, is_whole=True)
        total += windows
        sys.stdout.write(f"{writer.name:28} {windows:5} pauses: nothing lost, nothing went back\n")
        sys.stdout.flush()
    sys.stdout.write(f"{total} pauses of {len(WRITERS) + len(NAMING)} writers\n")
    for writer in WRITERS:
        if writer.name in ON_MAIN:
            with tempfile.TemporaryDirectory() as folder:
                place = Place("local", Path(folder))
                windows = sum(check_overlaps(place, writer, kind, is_whole=True) for kind in PAUSES)
            sys.stdout.write(f"{writer.name:28} {windows:5} pauses of a writer and a collector\n")
            sys.stdout.flush()
    for writer in NAMING:
        with tempfile.TemporaryDirectory() as folder:
            windows = check_naming(Place("local", Path(folder)), writer, is_whole=True)
        sys.stdout.write(f"{writer.name:28} {windows:5} pauses of a creator and a collector\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
