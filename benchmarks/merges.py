"""What a merge and a page of the change feed cost: they follow the change, not the graph."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import omnigraph

SCHEMA: Final = """
node Item {
  slug: String @key
  title: String
  number: I64?
  vector: Vector(768)?
}
"""
WIDTH: Final = 768
BATCH: Final = 20_000
# How many rows a branch changes, and how many main changes meanwhile.
DELTA: Final = 50
BESIDE: Final = 10
MERGES: Final = 9
SIZES: Final = (10_000, 100_000)
FULL: Final = (10_000, 100_000, 1_000_000)
COMMITS: Final = (10, 1_000)
ROWS: Final = 1_000
POLLS: Final = 30
RATIO_MAX: Final = 1.3
MEMORY_MIB_MAX: Final = 64.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement; without a budget it is there to explain the others."""

    work: str
    measured: str
    budget: str = ""
    is_met: bool | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work took."""

    time_ms: float
    read_kib: float
    memory_mib: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to 1,000,000 rows (3 GB of disk)")
    sizes = FULL if parser.parse_args().full else SIZES
    table = Table(title=f"merges and the change feed on {os.cpu_count()} cores")
    for name in ("work", "measured", "budget", "met"):
        table.add_column(name, justify="left" if name == "work" else "right")
    load_before, began = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for line in (*_merges(Path(folder), sizes), *_feed(Path(folder))):
            met = {None: "", True: "yes", False: "NO"}[line.is_met]
            table.add_row(line.work, line.measured, line.budget, met)
    console = Console()
    console.print(table)
    console.print(
        f"load {load_before:.1f} before and {os.getloadavg()[0]:.1f} after,"
        f" {time.perf_counter() - began:.0f} s"
    )


# ---- merges ----


def _merges(folder: Path, sizes: tuple[int, ...]) -> Iterator[Line]:
    graphs = {rows: _loaded(folder / str(rows), rows) for rows in sizes}
    costs: dict[int, list[Cost]] = {rows: [] for rows in sizes}
    for number in range(MERGES + 1):
        # They take turns, so that a busy machine slows all of them.
        for rows, graph in graphs.items():
            cost = _merge(graph, number, rows)
            if number:
                costs[rows].append(cost)
    for rows, graph in graphs.items():
        _changed(graph, MERGES + 1, rows)
        graph.close()
    least = sizes[0]
    for name, unit in (("time_ms", "ms"), ("read_kib", "KiB")):
        typical = {rows: _typical(found, name) for rows, found in costs.items()}
        yield Line(f"merge {DELTA} rows into {least:,}: {unit}", f"{typical[least]:,.1f} {unit}")
        for rows in sizes[1:]:
            work = f"{DELTA} rows into {rows:,} / into {least:,}: {unit} ({typical[rows]:,.1f})"
            yield _at_most(work, typical[rows] / typical[least], RATIO_MAX)
    for rows in sizes:
        # A process that has done nothing yet has no free memory to use again.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            cost = fresh.submit(merge_in_process, folder / str(rows), MERGES + 1).result()
        budget, is_met = f"< {MEMORY_MIB_MAX:.0f} MiB", cost.memory_mib < MEMORY_MIB_MAX
        work = f"memory of a merge into {rows:,}, in a new process ({cost.time_ms:,.0f} ms)"
        yield Line(work, f"{cost.memory_mib:.1f} MiB", budget, is_met)


def merge_in_process(folder: Path, number: int) -> Cost:
    """What the first merge of a process costs, after it has written a row."""
    with omnigraph.open(folder, durable=False) as graph:
        main = graph.branch()
        graph.create_branch("elsewhere").load(_items(0, 1), mode="merge", type="Item")
        return _measured(lambda: main.merge(f"branch{number}"))[0]


def _loaded(folder: Path, rows: int) -> omnigraph.Graph:
    graph = omnigraph.create(folder, schema=SCHEMA, durable=False)
    for first in range(0, rows, BATCH):
        graph.branch().load(_items(first, min(BATCH, rows - first)), mode="append", type="Item")
    graph.branch().optimize()
    return graph


def _items(first: int, count: int, *, title: str = "as loaded") -> pa.Table:
    numbers = np.arange(first, first + count)
    vectors = np.random.default_rng(first).random((count, WIDTH), dtype=np.float32)
    return pa.table(
        {
            "slug": [f"item-{number:08}" for number in numbers],
            "title": [title] * count,
            "number": numbers,
            "vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), WIDTH),
        }
    )


def _merge(graph: omnigraph.Graph, number: int, rows: int) -> Cost:
    branch = _changed(graph, number, rows)
    cost, result = _measured(lambda: graph.branch().merge(branch))
    assert result.outcome == "merged"
    return cost


def _changed(graph: omnigraph.Graph, number: int, rows: int) -> omnigraph.Branch:
    """A branch that inserts, updates and deletes, beside a main that moves on."""
    branch, main = graph.create_branch(f"branch{number}"), graph.branch()
    # Every branch changes other rows, all over the table.
    changed, deleted = DELTA // 2, DELTA // 10
    spread = np.linspace(number, rows - 2 * MERGES - BESIDE, changed + deleted, dtype=np.int64)
    updates = pa.concat_tables(
        [_items(int(at), 1, title=f"changed {number}") for at in spread[:changed]]
    )
    branch.load(updates, mode="merge", type="Item")
    fresh = DELTA - changed - deleted
    branch.load(_items(rows + number * DELTA, fresh), mode="append", type="Item")
    for at in spread[changed:]:
        branch.mutate(f'query d() {{ delete Item where slug = "item-{at:08}" }}')
    beside = _items(rows - BESIDE, BESIDE, title=f"beside {number}")
    main.load(beside, mode="merge", type="Item")
    return branch


# ---- the change feed ----


def _feed(folder: Path) -> Iterator[Line]:
    graphs = {count: _committed(folder / f"feed-{count}", count) for count in COMMITS}
    costs: dict[int, list[Cost]] = {count: [] for count in COMMITS}
    cursors = {count: graph.branch().changes(start="now").cursor for count, graph in graphs.items()}
    for number in range(POLLS):
        for count, graph in graphs.items():
            graph.branch().load([_row(f"new-{number}")], mode="append")
            cursor = cursors[count]
            cost, page = _measured(lambda g=graph, c=cursor: g.branch().changes(cursor=c))
            # A commit of maintenance may come along: it is a block without changes.
            assert [change.id for each in page.blocks for change in each.changes] == [
                f"new-{number}"
            ]
            assert page.caught_up
            cursors[count] = page.cursor
            costs[count].append(cost)
    for graph in graphs.values():
        graph.close()
    least, most = COMMITS
    for name, unit in (("time_ms", "ms"), ("read_kib", "KiB")):
        typical = {count: _typical(found[2:], name) for count, found in costs.items()}
        yield Line(f"a page of the feed after {least} commits", f"{typical[least]:,.2f} {unit}")
        work = f"a page after {most:,} commits / after {least}: {unit} ({typical[most]:,.2f})"
        yield _at_most(work, typical[most] / typical[least], RATIO_MAX)


def _committed(folder: Path, count: int) -> omnigraph.Graph:
    graph = omnigraph.create(folder, schema=SCHEMA, durable=False)
    # Both graphs are equally large: only the number of commits differs.
    graph.branch().load([_row(f"row-{number}") for number in range(ROWS)], mode="append")
    for number in range(count):
        graph.branch().load([_row(f"row-{number % ROWS}")], mode="merge")
    graph.branch().optimize()
    return graph


def _row(slug: str) -> dict[str, object]:
    return {"type": "Item", "data": {"slug": slug, "title": "x"}}


# ---- measuring ----


def _measured(work: Callable[[], Result]) -> tuple[Cost, Result]:
    """What a piece of work costs this process, from what the kernel counts."""
    # Writing 5 lets the peak of the memory start anew.
    Path("/proc/self/clear_refs").write_text("5")
    memory, read = _status_kib("VmRSS"), _bytes_read()
    began = time.perf_counter()
    result = work()
    took = time.perf_counter() - began
    peak = _status_kib("VmHWM")
    read_kib = (_bytes_read() - read) / 1024
    return Cost(took * 1000, read_kib, max(0, peak - memory) / 1024), result


def _typical(costs: Sequence[Cost], name: str) -> float:
    """The least time, as whatever else the machine does only adds to it; the median of the rest."""
    choose = min if name == "time_ms" else statistics.median
    return float(choose([getattr(cost, name) for cost in costs]))


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def _status_kib(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name)))


def _at_most(work: str, ratio: float, budget: float) -> Line:
    return Line(work, f"{ratio:.2f}x", f"<= {budget}x", ratio <= budget)


if __name__ == "__main__":
    main()
