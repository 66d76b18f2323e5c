"""What reads cost beside commits and beside each other: ratios within one run, with bounds."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from commits import Line
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph import Branch, Graph

SCHEMA: Final = """
node Person { name: String @key  age: I64  city: String }
edge Knows: Person -> Person
"""
HOP: Final = """query hop($name: String) {
  match { $p: Person { name: $name }  $p knows $q }
  return { $q.name as name, $q.age as age }
  order { name }
  limit 10
}"""
CHANGES: Final = """
query add($name: String) { insert Person { name: $name, age: 3, city: "c5" } }
query age($name: String) { update Person set { age: 3 } where name = $name }
query join($name: String, $to: String) { insert Knows { from: $name, to: $to } }
query remove($name: String) { delete Person where name = $name }
"""
DEGREE: Final = 3
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    nodes: tuple[int, ...] = (20_000, 200_000)
    commits: int = 200
    round_s: float = 1.5


FULL: Final = Sizes(nodes=(20_000, 200_000, 1_000_000), commits=1_000, round_s=8.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a million nodes, 1,000 commits")
    sizes = FULL if parser.parse_args().full else Sizes()
    table = Table(title=f"reads beside writes on {os.cpu_count()} cores")
    for name in ("work", "measured", "bound", "met"):
        table.add_column(name, justify="left" if name == "work" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for line in _lines(Path(folder), sizes):
            met = {None: "", True: "met", False: "NOT MET"}[line.is_met]
            table.add_row(line.work, line.measured, line.budget, met)
    Console().print(table)


def _lines(folder: Path, sizes: Sizes) -> Iterator[Line]:
    costs: list[float] = []
    for nodes in sizes.nodes:
        graph = _network(folder / str(nodes), nodes)
        first, later, warm = _first_reads(graph.branch(), nodes, sizes.commits)
        costs.append(later)
        yield _bounded(f"first read after a commit, {nodes:,} nodes", later / warm, "<= 5 warm", 5)
        yield _bounded(
            f"the last commits by the first, {nodes:,} nodes", later / first, "<= 1.5", 1.5
        )
        graph.close()
    yield _bounded("first read, most nodes by fewest", costs[-1] / costs[0], "<= 1.5", 1.5)
    graph = _network(folder / "threads", sizes.nodes[0])
    yield from _beside(graph.branch(), sizes)
    graph.close()


def _network(folder: Path, nodes: int) -> Graph:
    """People who know three others each, with all that reads need in memory."""
    graph = omnigraph.create(str(folder), schema=SCHEMA)
    main = graph.branch()
    names = np.char.add("p", np.arange(nodes).astype(np.str_))
    people = {
        "name": names,
        "age": np.arange(nodes) % 90,
        "city": [f"c{n % 99}" for n in range(nodes)],
    }
    main.load(pa.table(people), mode="append", type="Person")
    ends = np.random.default_rng(1).integers(0, nodes, (2, DEGREE * nodes))
    knows = {"from": names[ends[0]], "to": names[ends[1]]}
    main.load(pa.table(knows), mode="append", type="Knows")
    started = time.monotonic()
    while time.monotonic() - started < 1 or _read(main, 1) > 0.005:
        _read(main, 0)
    return graph


def _read(branch: Branch, number: int) -> float:
    """One read; the seconds of this thread's own work."""
    started = time.thread_time()
    branch.query(HOP, params={"name": f"p{number}"})
    return time.thread_time() - started


def _first_reads(branch: Branch, nodes: int, commits: int) -> tuple[float, float, float]:
    """The cost of the first read after each of the first and last commits, and of a warm one."""
    first, warm = [], []
    for number in range(commits):
        _commit(branch, number, nodes)
        first.append(_read(branch, number % nodes))
        warm += [_read(branch, (number * 7 + n) % nodes) for n in range(3)]
    part = max(commits // 5, 1)
    median = statistics.median
    return median(first[:part]), median(first[-part:]), median(warm)


def _commit(branch: Branch, number: int, nodes: int) -> None:
    name, to = f"p{number * 13 % nodes}", f"p{number * 17 % nodes}"
    match number % 4:
        case 0:
            branch.mutate(CHANGES, name="add", params={"name": f"n{number}-{os.urandom(4).hex()}"})
        case 1:
            branch.mutate(CHANGES, name="age", params={"name": name})
        case 2 if number > 2:
            branch.mutate(CHANGES, name="join", params={"name": "p1", "to": "p2"})
        case _:
            branch.mutate(CHANGES, name="age", params={"name": to})


def _beside(branch: Branch, sizes: Sizes) -> Iterator[Line]:
    """Threads that read at once, alone and beside threads that write."""
    one, eight, alone, beside = [], [], [], []
    waits: list[float] = []
    before = _memory()
    for _ in range(ROUNDS):
        one.append(_readers(branch, 1, sizes.round_s)[0])
        eight.append(_readers(branch, 8, sizes.round_s)[0])
        alone.append(_readers(branch, 32, sizes.round_s)[0])
        speed, seconds = _readers(branch, 32, sizes.round_s, writers=4)
        beside.append(speed)
        waits += seconds
    grown = (_memory() - before) / 2**20
    of_one = statistics.median(b / a for a, b in zip(one, eight, strict=True))
    of_alone = statistics.median(b / a for a, b in zip(alone, beside, strict=True))
    yield Line("one reader", f"{statistics.median(one):.0f}/s")
    yield Line("eight readers by one", f"{of_one:.2f}", ">= 0.9", of_one >= 0.9)
    yield Line("32 readers", f"{statistics.median(alone):.0f}/s")
    yield Line("32 readers beside 4 writers by alone", f"{of_alone:.2f}", ">= 0.5", of_alone >= 0.5)
    worst = 1_000 * float(np.percentile(waits, 99))
    yield Line("their slowest of a hundred", f"{worst:.0f} ms", "<= 100 ms", worst <= 100)
    yield Line("memory they added", f"{grown:.0f} MiB", "<= 64 MiB", grown <= 64)


def _readers(
    branch: Branch, threads: int, seconds: float, *, writers: int = 0
) -> tuple[float, list[float]]:
    """Reads per second of so many threads together, and how long each took."""
    end = time.monotonic() + seconds
    waits: list[float] = []

    def read(place: int) -> None:
        number = place
        while (started := time.monotonic()) < end:
            number += 31
            _read(branch, number % 10_000)
            waits.append(time.monotonic() - started)

    def write(place: int) -> None:
        number = place
        while time.monotonic() < end:
            number += 4
            branch.mutate(CHANGES, name="add", params={"name": f"w{place}-{os.urandom(8).hex()}"})

    works = [partial(read, place) for place in range(threads)]
    _at_once([*works, *(partial(write, place) for place in range(writers))])
    return len(waits) / seconds, waits


def _at_once(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _memory() -> int:
    """The resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _bounded(work: str, measured: float, budget: str, most: float) -> Line:
    return Line(work, f"{measured:.2f}", budget, measured <= most)


if __name__ == "__main__":
    main()
