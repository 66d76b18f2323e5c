"""What small writes cost in tables of different sizes, without any command; times are medians."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph import Graph
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import open_storage

SCHEMA: Final = """
node Person {
  name: String @key
  email: String @unique
  team: enum(red, green, blue)
  age: I32?
}
edge Knows: Person -> Person { since: I32? }
"""
QUERIES: Final = """
query update($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query insert($name: String) {
  insert Person { name: $name, email: $name, team: "red" }
}
query link($from: String, $to: String) { insert Knows { from: $from, to: $to } }
query remove($name: String) { delete Person where name = $name }
"""
SIZES: Final = (10_000, 1_000_000, 4_000_000)
QUICK: Final = (10_000, 200_000)
ROUNDS: Final = 15
# A process has used nothing yet in its first rounds.
WARM_ROUNDS: Final = 3
DELTA: Final = 50
LOADS: Final = 3
LOADED_ROWS: Final = 1_000_000
COST_RATIO_MAX: Final = 1.3
LOAD_RATIO_MAX: Final = 1.15
# What must be met; the others explain it.
REQUIRED: Final = ("upsert of one row", "update of one row", f"merge of {DELTA} rows")


@dataclass(frozen=True, slots=True)
class Cost:
    """The times of one piece of work: on the clock, and of all cores."""

    wall_ms: float
    cpu_ms: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 200,000 rows")
    sizes = QUICK if parser.parse_args().quick else SIZES
    table = Table(title=f"small writes by the size of the table, on {os.cpu_count()} cores")
    for name in ("work", *(f"{rows:,} rows" for rows in sizes), "ratio", "of cpu", "budget", "met"):
        table.add_column(name, justify="left" if name == "work" else "right")
    load_before, began = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for line in (*_writes(Path(folder), sizes), _loads(Path(folder), len(sizes))):
            table.add_row(*line)
    console = Console()
    console.print(table)
    console.print(
        f"load {load_before:.1f} before and {os.getloadavg()[0]:.1f} after,"
        f" {time.perf_counter() - began:.0f} s"
    )


# ---- small writes ----


def _writes(folder: Path, sizes: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    graphs = {rows: _loaded(folder / str(rows), rows) for rows in sizes}
    costs: dict[str, dict[int, list[Cost]]] = {}
    for number in range(ROUNDS + WARM_ROUNDS):
        # They take turns, so that a busy machine slows all of them.
        for rows, graph in graphs.items():
            for work, cost in _round(graph, number, rows):
                if number >= WARM_ROUNDS:
                    costs.setdefault(work, {}).setdefault(rows, []).append(cost)
    for graph in graphs.values():
        graph.close()
    least, most = sizes[0], sizes[-1]
    for work, found in costs.items():
        walls = {rows: _median(found[rows], "wall_ms") for rows in sizes}
        cpus = {rows: _median(found[rows], "cpu_ms") for rows in sizes}
        # The worst of the larger sizes, not only the largest one.
        ratio = max(walls.values()) / walls[least]
        is_met = "yes" if ratio <= COST_RATIO_MAX else "NO"
        budget = (f"<= {COST_RATIO_MAX}x", is_met) if work in REQUIRED else ("", "")
        times = (f"{walls[rows]:.1f} ms" for rows in sizes)
        yield (work, *times, f"{ratio:.2f}x", f"{cpus[most] / cpus[least]:.2f}x", *budget)


def _loaded(folder: Path, rows: int) -> Graph:
    """A graph whose indexes are what the engine makes of them by itself."""
    graph = omnigraph.create(folder, schema=SCHEMA, durable=False)
    graph.branch().load(people(0, rows), type="Person", mode="append")
    graph.branch().load(friends(rows), type="Knows", mode="append")
    _settle(graph)
    return graph


def _settle(graph: Graph) -> None:
    """Wait for what the engine does in the background."""
    resources = graph._session.resources  # noqa: SLF001 — what users never see
    resources.background.submit(lambda: None).result()


def _round(graph: Graph, number: int, rows: int) -> Iterator[tuple[str, Cost]]:
    main = graph.branch()
    chosen = np.random.default_rng(number).choice(rows, DELTA + 6, replace=False)
    names = [f"person-{each}" for each in chosen.tolist()]
    new = f"new-{number}"

    def mutate(query: str, **params: object) -> Callable[[], object]:
        return lambda: main.mutate(QUERIES, name=query, params=params)

    one, fifty = people_at(chosen[:1], age=number), people_at(chosen[:DELTA], age=number + 1)
    yield (
        "upsert of one row",
        _measured(graph, lambda: main.load(one, type="Person", mode="merge")),
    )
    yield "update of one row", _measured(graph, mutate("update", name=names[-1], age=number))
    yield "insert of one node", _measured(graph, mutate("insert", name=new))
    yield "insert of one edge", _measured(graph, mutate("link", **{"from": new, "to": names[-2]}))
    yield "delete of one node", _measured(graph, mutate("remove", name=names[-3]))
    branch = graph.create_branch(f"branch{number}")
    yield (
        f"upsert of {DELTA} rows",
        _measured(graph, lambda: branch.load(fifty, type="Person", mode="merge")),
    )
    # Otherwise the merge is a fast-forward.
    main.mutate(QUERIES, name="update", params={"name": names[-4], "age": number})
    yield f"merge of {DELTA} rows", _measured(graph, lambda: main.merge(branch))


# ---- loads ----


def _loads(folder: Path, sizes: int) -> tuple[str, ...]:
    """The load that makes a table large, with and without what follows it; they take turns."""
    rows = people(0, LOADED_ROWS)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * LOADS):
        is_indexed = number % 2 == 0
        storage = open_storage(str(folder / f"load{number}"), is_durable=False, options=None)
        graph = create_on(storage, schema=SCHEMA)
        if not is_indexed:
            resources = graph._session.resources  # noqa: SLF001 — what users never see
            resources.publishers.on_published = None
        began = time.perf_counter()
        graph.branch().load(rows, type="Person", mode="append")
        times[is_indexed].append(time.perf_counter() - began)
        _settle(graph)
        graph.close()
    ratio = statistics.median(times[True]) / statistics.median(times[False])
    is_met = "yes" if ratio <= LOAD_RATIO_MAX else "NO"
    work = f"load of {LOADED_ROWS:,} rows / the same without indexes"
    return (work, *[""] * sizes, f"{ratio:.2f}x", "", f"<= {LOAD_RATIO_MAX}x", is_met)


# ---- rows ----


def people(first: int, count: int) -> pa.Table:
    """Rows of people, the same each time."""
    return people_at(np.arange(first, first + count))


def people_at(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], age: int = 0) -> pa.Table:
    """The same people in any order; their ages differ, and grow by the given one."""
    texts = pc.cast(pa.array(numbers), pa.utf8())
    return pa.table(
        {
            "name": pc.binary_join_element_wise("person-", texts, ""),
            "email": pc.binary_join_element_wise(texts, "@example.com", ""),
            "team": pa.array(["red", "green", "blue"]).take(pa.array(numbers % 3)),
            "age": pa.array((numbers * 7919 % 90 + age).astype(np.int32)),
        }
    )


def friends(count: int) -> pa.Table:
    """An edge from each person to another one."""
    numbers = np.arange(count)
    ends = [
        pc.binary_join_element_wise("person-", pc.cast(pa.array(each), pa.utf8()), "")
        for each in (numbers, (numbers * 7 + 1) % count)
    ]
    since = pa.array((numbers % 20).astype(np.int32))
    return pa.table({"from": ends[0], "to": ends[1], "since": since})


# ---- measuring ----


def _measured(graph: Graph, work: Callable[[], object]) -> Cost:
    _settle(graph)
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)


def _median(costs: list[Cost], name: str) -> float:
    return float(statistics.median(getattr(cost, name) for cost in costs))


if __name__ == "__main__":
    main()
