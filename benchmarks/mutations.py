"""Mutations beside one load that writes the same rows: of many statements, and of one pattern.

    python benchmarks/mutations.py [rows in the table] [statements ...]

Both are one commit, measured in turns on the same branch. Every turn has a text of its own: its
first run compiles it, the next one does not. Times and ratios are those of medians on the clock:
run it on a machine that does nothing else.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph import Branch

SCHEMA: Final = """
node Person { name: String @key  age: I32?  city: String? @index }
edge Knows: Person -> Person { weight: F64? }
"""
ROWS: Final = 10_000
STATEMENTS: Final = (200, 2_000)
REPEATS: Final = 25
PATTERN_ROWS: Final = 20_000

Texts = Callable[[int, int], list[str]]


def updates(start: int, count: int) -> list[str]:
    """Updates by key."""
    numbers = range(start, start + count)
    return [f'update Person set {{ age: {n % 90} }} where name = "p{n}"' for n in numbers]


def updates_by_value(start: int, count: int) -> list[str]:
    """Updates by the value of a property that is not a key."""
    numbers = range(start, start + count)
    return [f'update Person set {{ age: {n % 90} }} where city = "c{n}"' for n in numbers]


def computed_updates(start: int, count: int) -> list[str]:
    """Updates by key of what is computed from the entity."""
    numbers = range(start, start + count)
    return [
        f'update Person set {{ age: coalesce(age, 0) + 1 }} where name = "p{n}"' for n in numbers
    ]


def inserts(start: int, count: int) -> list[str]:
    """Inserts that replace nodes."""
    numbers = range(start, start + count)
    return [f'insert Person {{ name: "p{n}", age: {n % 90}, city: "c{n}" }}' for n in numbers]


def mixed(start: int, count: int) -> list[str]:
    """New nodes, updates of them and of others, and edges."""
    found = []
    for n in range(start, start + count, 4):
        found += [
            f'insert Person {{ name: "new{n}" }}',
            f'update Person set {{ age: {n % 90} }} where name = "p{n}"',
            f'insert Knows {{ from: "p{n}", to: "new{n}" }}',
            f'update Person set {{ city: "there" }} where name = "new{n}"',
        ]
    return found


def deletes(start: int, count: int) -> list[str]:
    """Deletes of nodes by key."""
    return [f'delete Person where name = "p{n}"' for n in range(start, start + count)]


KINDS: Final[dict[str, Texts]] = {
    "update by key": updates,
    "computed update": computed_updates,
    "update by value": updates_by_value,
    "insert": inserts,
    "mixed": mixed,
    "delete": deletes,
}


def person(number: int) -> dict[str, Any]:
    """A node as a record of a load."""
    return {"type": "Person", "data": {"name": f"p{number}", "age": 1, "city": f"c{number}"}}


def time_once(times: list[float], work: Callable[[], object]) -> None:
    """Add the seconds that something takes."""
    start = time.perf_counter()
    work()
    times.append(time.perf_counter() - start)


def measure(main: Branch, make: Texts, rows: int, count: int) -> tuple[list[float], ...]:
    """The seconds of mutations of new texts, of known ones, and of loads, in turns."""
    new, known, loads = list[float](), list[float](), list[float]()
    for repeat in range(REPEATS):
        start = repeat * count % max(rows - count, 1)
        text = "query m() {\n" + "\n".join(make(start, count)) + f"\n}} // {repeat}"
        records = [person(number) for number in range(start, start + count)]
        for times in (new, known):
            time_once(times, partial(main.mutate, text))
            time_once(loads, partial(main.load, records, mode="merge"))
    return new, known, loads


def measure_pattern(uri: str, rows: int) -> tuple[list[float], ...]:
    """The same for the update of all that a pattern matches, and loads of a table of Arrow."""
    new, known, loads = list[float](), list[float](), list[float]()
    found = pa.Table.from_pylist([person(number)["data"] for number in range(rows)])
    with omnigraph.create(uri, schema=SCHEMA, actor="bench") as graph:
        branch = graph.branch()
        load = partial(branch.load, found, type="Person", mode="merge")
        load()
        for repeat in range(REPEATS):
            text = f"query m() {{ match {{ $p: Person }} update $p set {{ age: {repeat} }} }}"
            for times in (new, known):
                time_once(times, partial(branch.mutate, text))
                time_once(loads, load)
    return new, known, loads


def main(arguments: Sequence[str]) -> None:
    """Print a line for each kind and number of statements."""
    rows = int(arguments[0]) if arguments else ROWS
    counts = [int(each) for each in arguments[1:]] or STATEMENTS
    table = Table(
        "statements", "count", "new ms", "known ms", "load ms", "new / load", "known / load"
    )
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "graph.omni")
        with omnigraph.create(uri, schema=SCHEMA, actor="bench") as graph:
            branch = graph.branch()
            branch.load([person(number) for number in range(rows)], mode="append")
            for count in counts:
                for name, make in KINDS.items():
                    table.add_row(name, str(count), *cells(*measure(branch, make, rows, count)))
        found = measure_pattern(str(Path(folder) / "pattern.omni"), PATTERN_ROWS)
        table.add_row("match … update", str(PATTERN_ROWS), *cells(*found))
    Console(width=120).print(table)


def cells(new: list[float], known: list[float], loads: list[float]) -> Iterator[str]:
    """Medians, and how many times the load takes."""
    for times in (new, known, loads):
        yield f"{median(times) * 1_000:.1f}"
    for times in (new, known):
        yield f"{median(times) / median(loads):.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
