"""Generated damage: every kind of stored object, cut, flipped, zeroed, swapped and deleted.

    python -m faults.damage 2000

Each damage is done to a copy of a small graph. A process of its own then opens the graph, runs
every reader, a deep check and a repair, reads again, and writes. All of them must end in the answer
of the healthy graph or in a typed error: never in another answer, a traceback, a signal or a hang.
What a deep check must find is listed in `FOUND`, what must harm nobody in `HARMLESS`.

    python -m faults.damage 100 1 FOLDER index

does so to one kind of objects only.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import omnigraph
from faults.damaged_world import WRITTEN, answers, build, copy_to, expected, kind_of, write
from omnigraph.errors import OmnigraphError
from omnigraph.storage.tables.lance_tables import Tables

TIMEOUT_S: Final = 120.0
PROGRESS_EVERY: Final = 100
RIGHT, ERROR, WRONG, TRACEBACK = "right", "error", "wrong", "traceback"
SIGNAL, HANG = "signal", "hang"
BAD: Final = (WRONG, TRACEBACK, SIGNAL, HANG)
# Of these, whatever a commit refers to is found by a deep check.
FOUND: Final = frozenset(
    ("format", "record", "schema", "change_set", "manifest", "data", "blob", "deletions", "index")
)
# Derived from other objects: whatever is done to these, reads and writes end as they should.
HARMLESS: Final = frozenset(("index", "cache", "hint"))
_LIBRARIES: Final = ("omnigraph", "lance", "pyarrow", "numpy", "scipy", "obstore", "re2")
Edit = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to one object; a swapped one changes places with `other`."""

    number: int
    kind: str
    operation: str
    path: str
    other: str | None = None

    def __str__(self) -> str:
        return f"{self.number:05} {self.operation} {self.kind} {self.path}"


@dataclass(slots=True)
class Tally:
    """How many readers of how many damages ended in what."""

    damages: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[Damage] = field(default_factory=list)
    bad: list[tuple[Damage, str, str]] = field(default_factory=list)

    def add(self, damage: Damage, found: dict[str, Any], is_needed: bool) -> None:
        """Count the outcomes of one damage."""
        self.damages += 1
        self.by_kind[damage.kind, damage.operation] += 1
        for action, (outcome, detail) in found["actions"].items():
            if outcome == WRONG and action == "first names" and is_name_lost(damage):
                self.outcomes["forgotten"] += 1
                continue
            self.outcomes[outcome] += 1
            if outcome in BAD or (outcome == ERROR and damage.kind in HARMLESS):
                self.bad.append((damage, action, f"{outcome}: {detail}"))
        is_found = bool(found["problems"])
        if damage.kind in FOUND and is_needed and not is_found:
            self.missed.append(damage)

    def lines(self) -> Iterator[str]:
        """The tally as a report."""
        kinds = len({kind for kind, _ in self.by_kind})
        yield f"{self.damages} damages of {kinds} kinds of objects"
        yield f"outcomes of actions: {dict(sorted(self.outcomes.items()))}"
        yield f"not found by a deep check: {len(self.missed)}"
        yield from (f"  {damage}" for damage in self.missed)
        yield from (f"  {damage}: {action}: {what}" for damage, action, what in self.bad)


def run(count: int, *, seed: int, folder: Path, kind: str | None = None) -> Tally:
    """Damage a graph so many times, and look at what becomes of its readers and writers."""
    world, healthy = folder / "world", folder / "healthy"
    world.mkdir(parents=True)
    right = _forked(lambda: _built(world))
    assert isinstance(right, dict), right
    # Processes are forked from one that has imported all they need, and has used none of it.
    for name in right["modules"]:
        with suppress(ImportError):
            importlib.import_module(name)
    world.rename(healthy)
    files = sorted(str(each.relative_to(healthy)) for each in healthy.rglob("*") if each.is_file())
    files = [path for path in files if kind in (None, kind_of(path))]
    tally = Tally()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        copy_to(healthy, world)
        damage = _inflict(number, rng, world, files)
        found = _forked(lambda: _observed(world, right["answers"]))
        if isinstance(found, str):
            found = {"actions": {"process": (found.partition(" ")[0], found)}, "problems": 1}
        tally.add(damage, found, _is_needed(damage, right["needed"]))
        if number % PROGRESS_EVERY == PROGRESS_EVERY - 1:
            sys.stderr.write(f"{number + 1} of {count}: {dict(tally.outcomes)}\n")
    return tally


def is_name_lost(damage: Damage) -> bool:
    """Whether the one object is gone that says what became of a name: nothing else knows."""
    return damage.operation == "delete" and damage.kind == "branch"


def _is_needed(damage: Damage, needed: list[str]) -> bool:
    """Whether a kept commit of a live branch refers to the object."""
    if damage.path.startswith("graph/t/"):
        return damage.path in needed
    return not damage.path.startswith("graph/__manifest/gone.")


# ---- damage ----


def _inflict(number: int, rng: random.Random, world: Path, files: list[str]) -> Damage:
    """Do something to one of the files that changes its bytes."""
    by_kind: dict[str, list[str]] = {}
    for path in files:
        by_kind.setdefault(kind_of(path), []).append(path)
    while True:
        kind = rng.choice(sorted(by_kind))
        path, other = rng.choice(by_kind[kind]), rng.choice(by_kind[kind])
        operation = rng.choice([*EDITS, "swap", "delete"])
        data = (world / path).read_bytes()
        if operation == "delete":
            (world / path).unlink()
            return Damage(number, kind, operation, path)
        if operation == "swap":
            theirs = (world / other).read_bytes()
            if theirs != data:
                _write(world / path, theirs)
                _write(world / other, data)
                return Damage(number, kind, operation, path, other)
        elif data and (edited := EDITS[operation](data, rng)) != data:
            _write(world / path, edited)
            return Damage(number, kind, operation, path)


def _write(path: Path, data: bytes) -> None:
    # The file is shared with the healthy graph.
    path.unlink()
    path.write_bytes(data)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flip(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 8))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _zero(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice((1, 16, 512, len(data))))
    return data[:start] + bytes(end - start) + data[end:]


EDITS: Final[dict[str, Edit]] = {"truncate": _truncate, "flip": _flip, "zero": _zero}


# ---- what happens then, in a process of its own ----


def _built(world: Path) -> dict[str, Any]:
    build(world)
    right = dict(expected(world))
    address = str(world / "graph")
    graph = omnigraph.open(address)
    tables = Tables(address)
    resources = graph._session.resources
    needed = set()
    for name in resources.branches.list():
        stream = resources.branches.resolve(name)
        for commit in graph.branch(name).commits():
            for pin in resources.log.read_snapshot(stream, commit.version).pins.values():
                needed |= {f"graph/{path}" for path in tables.list_references(pin)}
    folders = tuple(path for path in needed if path.endswith("/"))
    files = (each.relative_to(world) for each in world.rglob("*") if each.is_file())
    below = {str(each) for each in files if str(each).startswith(folders)}
    modules = [name for name in sys.modules if name.partition(".")[0] in _LIBRARIES]
    return {"answers": right, "needed": sorted(needed | below), "modules": sorted(modules)}


def _observed(world: Path, right: dict[str, str]) -> dict[str, Any]:
    actions: dict[str, tuple[str, str]] = {}
    problems: list[str] = []

    def check() -> str:
        with omnigraph.open(str(world / "graph")) as graph:
            report = graph.check(deep=True)
            problems.extend(map(str, report.problems))
            # An index of older commits is damaged, and nobody needs it.
            problems.extend(str(each) for each in report.notices if each.kind == "index")
        return ""

    def repair() -> str:
        with omnigraph.open(str(world / "graph")) as graph:
            graph.repair()
            graph.repair(confirm=True)
        return ""

    def open_all(readers: dict[str, Callable[[], str]]) -> str:
        readers.update(answers(world))
        return ""

    def read(stage: str, names: Iterable[str]) -> None:
        readers: dict[str, Callable[[], str]] = {}
        actions[f"{stage} open"] = _outcome(partial(open_all, readers), "")
        for name in names if readers else ():
            actions[f"{stage} {name}"] = _outcome(readers[name], right[name])

    read("first", right)
    actions["check"] = _outcome(check, "")
    if actions["check"][0] == ERROR:
        problems.append(actions["check"][1])
    actions["repair"] = _outcome(repair, "")
    # A repair writes derived objects only, by which states are found.
    read("repaired", ("main 0", "review", "tag", "close"))
    actions["write"] = _outcome(partial(write, world), WRITTEN)
    return {"actions": actions, "problems": len(problems), "told": problems[:3]}


def _outcome(action: Callable[[], str], right: str) -> tuple[str, str]:
    try:
        found = action()
    except OmnigraphError as error:
        return ERROR, f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001  # a panic of Rust is not an Exception
        return TRACEBACK, f"{type(error).__name__}: {error}"
    return (RIGHT, "") if found == right else (WRONG, found[:200])


def _forked(action: Callable[[], dict[str, Any]]) -> dict[str, Any] | str:
    """What an action answers in a process of its own, or how that process ended."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _answer(action, reading, writing)
    os.close(writing)
    data, deadline = b"", time.monotonic() + TIMEOUT_S
    with open(reading, "rb", buffering=0) as answer:
        while select.select([answer], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = answer.read(65536)
            if not piece:
                break
            data += piece
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"{HANG} after {TIMEOUT_S} s"
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        return f"{SIGNAL if status < 0 else TRACEBACK} {status}"
    found: dict[str, Any] = json.loads(data)
    return found


def _answer(action: Callable[[], dict[str, Any]], reading: int, writing: int) -> None:
    """Run an action in the forked process, and end it."""
    status = 1
    try:
        os.close(reading)
        with open(os.devnull, "w") as nowhere:
            # A panic of Rust is printed before it is raised.
            os.dup2(nowhere.fileno(), 2)
        found = json.dumps(action()).encode()
        with open(writing, "wb") as answer:
            answer.write(found)
        status = 0
    finally:
        os._exit(status)


def main(count: int, seed: int, workers: int = 2) -> int:
    """Run in a few processes, and print one report."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        shares = [count // workers + (at < count % workers) for at in range(workers)]
        jobs = [
            pool.submit(_in_process, share, f"{seed}{at}", Path(folder) / str(at))
            for at, share in enumerate(shares)
        ]
        return max(job.result() for job in jobs)


def _in_process(count: int, seed: str, folder: Path) -> int:
    arguments = [sys.executable, "-m", "faults.damage", str(count), seed, str(folder)]
    return subprocess.run(arguments, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
    only = sys.argv[4] if len(sys.argv) > 4 else None
    tally = run(int(sys.argv[1]), seed=int(sys.argv[2]), folder=Path(sys.argv[3]), kind=only)
    sys.stdout.write("".join(f"{line}\n" for line in tally.lines()))
    sys.exit(bool(tally.bad or tally.missed))
