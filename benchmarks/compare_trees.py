"""What reads, commits, loads and merges cost in this tree beside another checkout of it.

    python benchmarks/compare_trees.py OTHER_CHECKOUT [names of works ...]

Each tree has a process and graphs of its own. The processes take turns, one at a time, and every
work is done in both before the next one begins: noise hits both. Run it on a quiet machine.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from queries_report import time_ms
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from omnigraph import Branch, Graph

ROUNDS: Final = 9
PEOPLE: Final = 100_000
ASKED: Final = 10
ROWS: Final = 10_000
LOADED: Final = 200_000
MERGED: Final = 50
TURN_MS: Final = 100.0
TURN_WORKS_MAX: Final = 400
SLOWER_MAX: Final = 1.05
SCHEMA: Final = """
node Person { name: String @key  age: I32?  city: String? @index }
edge Knows: Person -> Person { weight: F64? }
"""
UPDATE: Final = "query m($n: String) { update Person set { age: 7 } where name = $n }"

# One unit of work: it prepares itself and returns the milliseconds of what is measured.
Work = Callable[[], float]


def main(arguments: list[str]) -> None:
    """Measure both trees and print a line for each work."""
    here = Path(__file__).resolve().parent.parent
    trees = [Tree(Path(arguments[0]).resolve()), Tree(here)]
    names = [name for name in trees[1].ask("names") if not arguments[1:] or name in arguments[1:]]
    title = f"medians; load of the machine {os.getloadavg()[0]:.1f}"
    table = Table("work", "other ms", "this ms", "ratio", "", title=title)
    for name in names:
        times: list[list[float]] = [[], []]
        for number in range(ROUNDS + 1):
            for tree in (0, 1) if number % 2 else (1, 0):
                turn = trees[tree].ask(name)
                # The first turn warms both up.
                times[tree] += turn if number else []
        other, this = map(statistics.median, times)
        verdict = "" if this <= other * SLOWER_MAX else "slower"
        table.add_row(name, f"{other:.3f}", f"{this:.3f}", f"{this / other:.2f}", verdict)
    for tree in trees:
        tree.close()
    Console(width=100).print(table)


class Tree:
    """A process that works with the code of one checkout."""

    def __init__(self, root: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        command = [sys.executable, __file__, "--worker"]
        self._process = subprocess.Popen(  # noqa: S603 — our own script
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, name: str) -> list[Any]:
        """The answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        answer: list[Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Answer lines with the milliseconds of one turn each."""
    with tempfile.TemporaryDirectory() as folder:
        works = dict(build_works(Path(folder)))
        for line in sys.stdin:
            name = line.strip()
            answer = list(works) if name == "names" else take_turn(works[name])
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def take_turn(work: Work) -> list[float]:
    """The times of a work that is repeated for a while."""
    times = [work()]
    while sum(times) < TURN_MS and len(times) < TURN_WORKS_MAX:
        times.append(work())
    return times


def build_works(folder: Path) -> Iterator[tuple[str, Work]]:
    """Everything that is measured, by name."""
    from social_engines import Ours  # noqa: PLC0415 — a worker's, of its own tree
    from social_network import generate  # noqa: PLC0415
    from social_queries import NINE, ONE_PERSON  # noqa: PLC0415

    ours = Ours(folder / "social.omni", generate(people=PEOPLE))
    asked = random.Random(3).sample(range(PEOPLE), ASKED)
    for question in NINE:
        yield question.name, build_read(ours.prepared(question), [question.params])
    for question in ONE_PERSON:
        yield question.name, build_read(ours.prepared(question), [{"who": each} for each in asked])
    yield from build_writes(folder)


def build_read(ask: Callable[[Any], object], params: list[Any]) -> Work:
    """A read that goes through some parameters."""
    numbers = count()
    return lambda: time_ms(lambda: ask(params[next(numbers) % len(params)]))


def build_writes(folder: Path) -> Iterator[tuple[str, Work]]:
    """Commits, loads and merges."""
    import omnigraph  # noqa: PLC0415 — a worker's, of its own tree

    graph = omnigraph.create(str(folder / "writes.omni"), schema=SCHEMA, actor="bench")
    main = graph.branch()
    main.load([build_person(number) for number in range(ROWS)], mode="append")
    numbers = count(ROWS)

    def upsert() -> object:
        return main.load([build_person(next(numbers) % ROWS)], mode="merge")

    def insert() -> object:
        return main.load([build_person(next(numbers))], mode="append")

    def mutate() -> object:
        return main.mutate(UPDATE, params={"n": f"p{next(numbers) % ROWS}"})

    yield "insert 1 row", lambda: time_ms(insert)
    yield "upsert 1 row", lambda: time_ms(upsert)
    yield "mutate 1 row", lambda: time_ms(mutate)
    yield "upsert 200 rows", lambda: time_upserts(main, next(numbers), 200)
    yield f"merge {MERGED} rows", lambda: time_merge(graph, next(numbers))
    yield f"load {LOADED} rows", lambda: time_load(folder, next(numbers))


def build_person(number: int) -> dict[str, Any]:
    """A node as a record of a load."""
    return {"type": "Person", "data": {"name": f"p{number}", "age": 1, "city": f"c{number % 500}"}}


def time_upserts(main: Branch, start: int, rows: int) -> float:
    """Replace some rows in one commit."""
    records = [build_person((start + number) % ROWS) for number in range(rows)]
    return time_ms(lambda: main.load(records, mode="merge"))


def time_merge(graph: Graph, number: int) -> float:
    """Merge a branch of some rows into main, which went on."""
    name = f"review-{number}"
    review = graph.create_branch(name)
    review.load([build_person((number + each) % 5_000) for each in range(MERGED)], mode="merge")
    graph.branch().load([build_person(5_000 + number % 5_000)], mode="merge")
    taken = time_ms(lambda: graph.branch().merge(name))
    graph.delete_branch(name)
    return taken


def time_load(folder: Path, number: int) -> float:
    """Append many rows to an empty graph."""
    import pyarrow as pa  # noqa: PLC0415

    import omnigraph  # noqa: PLC0415 — a worker's, of its own tree

    rows = range(LOADED)
    people = pa.table(
        {
            "name": [f"p{row}" for row in rows],
            "age": pa.array([row % 90 for row in rows], pa.int32()),
        }
    )
    with omnigraph.create(str(folder / f"load-{number}.omni"), schema=SCHEMA) as graph:
        return time_ms(lambda: graph.branch().load(people, type="Person", mode="append"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        serve()
    else:
        main(sys.argv[1:])
