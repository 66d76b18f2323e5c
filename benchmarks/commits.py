"""What a commit costs: ratios within one run, beside their budgets; times are medians."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from single_rows import PERSON, Floor, Graph, table_files

THREADS: Final = (1, 8, 32)
PROCESSES: Final = 4
# How long a process may take to start and to import everything.
START_S: Final = 6.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    alone: int = 200
    commits: int = 2_000
    rounds: int = 3
    round_s: float = 1.5


FULL: Final = Sizes(alone=500, commits=10_000, rounds=5, round_s=3.0)


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement; without a budget it is there to explain the others."""

    work: str
    measured: str
    budget: str = ""
    is_met: bool | None = None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10,000 commits, longer rounds")
    sizes = FULL if parser.parse_args().full else Sizes()
    table = Table(title=f"single-row commits on {os.cpu_count()} cores")
    for name in ("work", "measured", "budget", "met"):
        table.add_column(name, justify="left" if name == "work" else "right")
    load_before, began = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for line in _lines(Path(folder), sizes):
            met = {None: "", True: "yes", False: "NO"}[line.is_met]
            table.add_row(line.work, line.measured, line.budget, met)
    console = Console()
    console.print(table)
    console.print(
        f"load {load_before:.1f} before and {os.getloadavg()[0]:.1f} after,"
        f" {time.perf_counter() - began:.0f} s"
    )


def _lines(folder: Path, sizes: Sizes) -> Iterator[Line]:
    for is_durable in (False, True):
        yield from _alone(folder / f"alone-{is_durable}", sizes, is_durable=is_durable)
    yield from _growth(folder / "growth", sizes)
    for is_durable in (False, True):
        yield from _threads(folder / f"threads-{is_durable}", sizes, is_durable=is_durable)
    for is_durable in (False, True):
        yield from _processes(folder / f"processes-{is_durable}", sizes, is_durable=is_durable)
    yield from _branch(folder / "branch")


def _alone(folder: Path, sizes: Sizes, *, is_durable: bool) -> Iterator[Line]:
    """One writer against the floor; they take turns, so that a busy machine slows both."""
    floor = Floor(folder / "floor", is_durable=is_durable)
    graph = Graph(folder / "graph", is_durable=is_durable, is_compacting=False, is_new=True)
    floors: list[float] = []
    commits: list[float] = []
    turns = [(floors, floor.insert), (commits, graph.insert)]
    for _ in range(sizes.alone):
        for times, work in turns:
            times.append(_time_ms(work))
        # Who is second may wait for what the first one left to the disk.
        turns.reverse()
    assert graph.head().pins[PERSON].rows == sizes.alone
    graph.close()
    least, commit, name = statistics.median(floors), statistics.median(commits), _fsync(is_durable)
    yield Line(f"floor: fragment, detached commit, put; {name}", f"{least:.2f} ms")
    yield _at_most(f"one commit / floor, {name} ({commit:.2f} ms)", commit / least, 2.0)


def _growth(folder: Path, sizes: Sizes) -> Iterator[Line]:
    """One writer for a long time, with compaction; on the way, what a newcomer has to read."""
    graph = Graph(folder / "old", is_durable=False, is_new=True)
    times: list[float] = []
    # Beside the last commits, the first ones of another graph: the machine may change meanwhile.
    beside: list[float] = []
    reads: dict[int, int] = {}
    young = Graph(folder / "young", is_durable=False, is_new=True)
    while len(times) < sizes.commits:
        times.append(_time_ms(graph.insert))
        if len(times) > sizes.commits - 100:
            beside.append(_time_ms(young.insert))
        if len(times) in (10, 1_000, sizes.commits):
            reads[len(times)] = _objects_read(graph.folder)
    young.close()
    graph.close()
    pin = graph.head().pins[PERSON]
    assert pin.rows == sizes.commits
    first, last = statistics.median(times[:100]), statistics.median(times[-100:])
    name = f"commits {sizes.commits - 100:,}-{sizes.commits:,} / commits 1-100"
    yield _at_most(name, last / first, 1.3)
    yield _at_most(f"{name}, in turns", last / statistics.median(beside), 1.3)
    if sizes.commits > 2_000:
        middle = statistics.median(times[1_900:2_000])
        yield _at_most("commits 1,900-2,000 / commits 1-100", middle / first, 1.3)
    yield Line("the longest commit / commits 1-100", f"{max(times) / first:.1f}x")
    yield Line("fragments at the end", str(pin.fragments))
    for commits, count in reads.items():
        name = f"objects read for the state at {commits:,} commits"
        yield Line(name, str(count), f"= {reads[10]}", count == reads[10])


def _objects_read(folder: Path) -> int:
    stranger = Graph(folder, is_durable=False, is_compacting=False)
    stranger.head()
    stranger.close()
    return len(stranger.objects.read)


def _threads(folder: Path, sizes: Sizes, *, is_durable: bool) -> Iterator[Line]:
    """Threads of one process; all numbers take turns."""
    graphs = {
        count: Graph(folder / str(count), is_durable=is_durable, is_new=True) for count in THREADS
    }
    rates: dict[int, list[float]] = {count: [] for count in THREADS}
    with ThreadPoolExecutor(max(THREADS)) as executor:
        for _ in range(sizes.rounds):
            for count, graph in graphs.items():
                start = time.time()
                end = start + sizes.round_s
                found = [executor.submit(graph.insert_between, start, end) for _ in range(count)]
                # The last commits end later than asked for: they count, and so does their time.
                writes = sum(each.result() for each in found)
                rates[count].append(writes / (time.time() - start))
    for graph in graphs.values():
        graph.close()
    one, name = statistics.median(rates[1]), _fsync(is_durable)
    yield Line(f"1 thread, {name}", f"{one:.0f} writes/s")
    for count, budget in ((8, 2.0), (32, 4.0)):
        ratio = statistics.median(rates[count]) / one
        yield _at_least(f"{count} threads / 1 thread, {name}", ratio, budget)


def _processes(folder: Path, sizes: Sizes, *, is_durable: bool) -> Iterator[Line]:
    """Processes on one branch, and one of them alone on another graph; they take turns."""
    counts = (1, PROCESSES)
    graphs = {
        count: Graph(folder / str(count), is_durable=is_durable, is_new=True) for count in counts
    }
    rates: dict[int, list[float]] = {count: [] for count in counts}
    acknowledged = dict.fromkeys(counts, 0)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as executor:
        for number in range(sizes.rounds + 1):
            for count, graph in graphs.items():
                is_warm = number > 0
                start = time.time() + (0.2 if is_warm else START_S)
                writes, took = _round(
                    executor, (count, graph.folder), (start, start + sizes.round_s), is_durable
                )
                acknowledged[count] += writes
                if is_warm:
                    rates[count].append(writes / took)
    is_exact = all(graph.head().pins[PERSON].rows == acknowledged[n] for n, graph in graphs.items())
    one, name = statistics.median(rates[1]), _fsync(is_durable)
    yield Line(f"1 process, {name}", f"{one:.0f} writes/s")
    ratio = statistics.median(rates[PROCESSES]) / one
    yield _at_least(f"{PROCESSES} processes / 1 process, {name}", ratio, 0.8)
    total = sum(acknowledged.values())
    yield Line(f"rows = acknowledged writes ({total:,}), no error", str(is_exact), "True", is_exact)


def _round(
    executor: Executor, place: tuple[int, Path], times: tuple[float, float], is_durable: bool
) -> tuple[int, float]:
    """Writes of several processes at the same time, and how long they took."""
    count, folder = place
    tasks = [executor.submit(write_in_process, folder, times, is_durable) for _ in range(count)]
    writes = sum(task.result() for task in tasks)
    return writes, time.time() - times[0]


_graphs: dict[Path, Graph] = {}


def write_in_process(folder: Path, times: tuple[float, float], is_durable: bool) -> int:
    """What a writing process does; its handle stays open for the next round."""
    graph = _graphs.get(folder)
    if graph is None:
        graph = _graphs[folder] = Graph(folder, is_durable=is_durable)
    return graph.insert_between(*times)


def _branch(folder: Path) -> Iterator[Line]:
    """The creation of a branch, watched."""
    graph = Graph(folder, is_durable=True, is_compacting=False, is_new=True)
    for _ in range(20):
        graph.insert()
    files, calls = table_files(folder), graph.tables.calls
    graph.objects.written.clear()
    graph.graph.create_branch("review")
    calls = graph.tables.calls - calls
    changed = len(set(table_files(folder).items()) ^ set(files.items()))
    written = len(graph.objects.written)
    graph.close()
    yield Line("branch create: calls of tables", str(calls), "0", calls == 0)
    yield Line("branch create: files under t/ changed", str(changed), "0", changed == 0)
    yield Line("branch create: objects written", str(written))


def _at_most(work: str, ratio: float, budget: float) -> Line:
    return Line(work, f"{ratio:.2f}x", f"<= {budget}x", ratio <= budget)


def _at_least(work: str, ratio: float, budget: float) -> Line:
    return Line(work, f"{ratio:.2f}x", f">= {budget}x", ratio >= budget)


def _fsync(is_durable: bool) -> str:
    return "fsync" if is_durable else "no fsync"


def _time_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
