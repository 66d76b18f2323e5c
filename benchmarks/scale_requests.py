"""What each verb asks of an object store, at growing sizes: requests, bytes, and time.

    PYTHONPATH=tests .venv/bin/python benchmarks/scale_requests.py [EDGES ...]

A graph with ten edges a node is loaded onto an S3 server of the loopback interface, which counts.
Each verb starts in a graph that was just opened, with nothing in memory and no cache on the disk;
what opening it takes is a verb of its own. Times are those of a server in Python, and of no use for
S3 itself: there, a request takes 10 to 100 ms, and its requests say more than its time here.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, OFF
from stores import S3Server, Seen, s3_server

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
}
edge Knows: Person -> Person { since: I32? }
"""
QUERIES: Final = """
query person($who: String) { match { $p: Person { name: $who } } return { $p.age } }
query known($who: String) {
  match { $p: Person { name: $who } $p knows $q }
  return { $q.name }
}
query hire($who: String) { insert Person { name: $who, age: 30 } }
query age($who: String) { update Person set { age: 31 } where name = $who }
query link($from: String, $to: String) { insert Knows { from: $from, to: $to } }
query count() { match { $p: Person } return { count($p) as n, max($p.age) as oldest } }
"""
SIZES: Final = (100_000, 1_000_000, 10_000_000)
EDGES_PER_NODE: Final = 10
# A file of so many rows is one task of a load.
ROWS_PER_FILE: Final = 1_048_576
KIB: Final = 1024
WHO: Final = {"who": "p7"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one verb asked of the store."""

    verb: str
    gets: int
    puts: int
    lists: int
    others: int
    read_bytes: int
    written_bytes: int
    seconds: float

    @property
    def requests(self) -> int:
        """All of them."""
        return self.gets + self.puts + self.lists + self.others


def list_verbs() -> Iterator[tuple[str, Callable[[Graph], object]]]:
    """What is measured, each on the graph as the ones before left it."""
    yield "open", lambda graph: graph.branch().head
    yield "look up one node", lambda graph: graph.branch().query(QUERIES, name="person", params=WHO)
    yield "one hop", lambda graph: graph.branch().query(QUERIES, name="known", params=WHO)
    yield "aggregate a column of nodes", lambda graph: graph.branch().query(QUERIES, name="count")
    yield "insert one node", _mutate("hire", who="new")
    yield "update one node", _mutate("age", who="p9")
    yield "insert one edge", _mutate("link", **{"from": "p1", "to": "p2"})
    yield "create a branch", lambda graph: graph.create_branch("draft")
    yield "write on the branch", lambda graph: _mutate("hire", who="late")(graph, "draft")
    yield "diff of the branch", lambda graph: list(graph.diff("main", "draft"))
    yield "move main on", _mutate("hire", who="other")
    yield "merge the branch", lambda graph: graph.branch().merge("draft")
    yield "history of one node", lambda graph: list(graph.branch().history("Person", "p9"))
    yield "one hop in an old version", _read_version
    yield "tag", lambda graph: graph.tag("v1")


def _mutate(name: str, **params: object) -> Callable[..., object]:
    def run(graph: Graph, branch: str = "main") -> object:
        return graph.branch(branch).mutate(QUERIES, name=name, params=params)

    return run


def _read_version(graph: Graph) -> object:
    return graph.snapshot(2).query(QUERIES, name="known", params=WHO)


def measure(server: S3Server, edges: int) -> list[Cost]:
    """Load a graph, and what each verb costs in it."""
    address = f"s3://{server.new_bucket()}/graphs/one"
    options = dict(server.options)
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), edges)
        with omnigraph.create(address, schema=SCHEMA, storage_options=options) as graph:
            main = graph.branch()
            costs.append(_count(server, "load", lambda: _load(main, Path(folder))))
            costs.append(_count(server, "indexes in the background", lambda: _wait(graph)))
    for verb, run in list_verbs():
        if verb == "open":
            costs.append(_count(server, verb, lambda: _open(address, options).close()))
            continue
        with _open(address, options) as graph:
            costs.append(_count(server, verb, lambda run=run, graph=graph: run(graph)))
    return costs


def _load(branch: Branch, folder: Path) -> object:
    """Tasks in threads of this process, as for every load by type of files of such sizes."""
    files = {name: folder / name for name in ("Person", "Knows")}
    return branch.load(files, mode="append", engine="local", on_error="quarantine")


def _wait(graph: Graph) -> None:
    """Until what a commit leaves to the background is done."""
    graph._session.resources.background.submit(lambda: None).result()  # noqa: SLF001


def _open(address: str, options: dict[str, str]) -> Graph:
    return omnigraph.open(address, storage_options=options)


def _count(server: S3Server, verb: str, run: Callable[[], object]) -> Cost:
    server.clear()
    began = time.perf_counter()
    run()
    seconds = time.perf_counter() - began
    return _sum_requests(verb, server.seen, seconds)


def _sum_requests(verb: str, seen: list[Seen], seconds: float) -> Cost:
    is_list = [each.method == "GET" and "list-type" in each.query for each in seen]
    gets = sum(each.method == "GET" for each in seen) - sum(is_list)
    puts = sum(each.method in ("PUT", "POST") for each in seen)
    return Cost(
        verb,
        gets,
        puts,
        sum(is_list),
        len(seen) - gets - puts - sum(is_list),
        sum(each.sent for each in seen),
        sum(each.received for each in seen),
        seconds,
    )


def _write_files(folder: Path, edges: int) -> None:
    """Parquet files, a folder for each type."""
    random = np.random.default_rng(7)
    people = edges // EDGES_PER_NODE
    for name in ("Person", "Knows"):
        (folder / name).mkdir()
    names = _name(np.arange(people))
    ages = pa.array(random.integers(1, 99, people), pa.int32())
    pq.write_table(pa.table({"name": names, "age": ages}), folder / "Person" / "0.parquet")
    for part, start in enumerate(range(0, edges, ROWS_PER_FILE)):
        count = min(ROWS_PER_FILE, edges - start)
        ends = {end: _name(random.integers(0, people, count)) for end in ("from", "to")}
        since = pa.array(random.integers(1990, 2026, count), pa.int32())
        rows = pa.table({**ends, "since": since})
        pq.write_table(rows, folder / "Knows" / f"{part}.parquet")


def _name(numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("p", pa.array(numbers, pa.int64()).cast(pa.string()), "")


def _show(console: Console, edges: int, costs: list[Cost]) -> None:
    table = Table(title=f"{edges:,} edges, {edges // EDGES_PER_NODE:,} nodes")
    for column in ("verb", "GET", "PUT", "LIST", "other", "KiB read", "KiB written", "s here"):
        table.add_column(column, justify="left" if column == "verb" else "right")
    for cost in costs:
        table.add_row(
            cost.verb,
            *(f"{each:,}" for each in (cost.gets, cost.puts, cost.lists, cost.others)),
            f"{cost.read_bytes / KIB:,.0f}",
            f"{cost.written_bytes / KIB:,.0f}",
            f"{cost.seconds:.2f}",
        )
    console.print(table)


def main() -> None:
    """Measure each size, and print a table and a line of JSON for it."""
    os.environ[FOLDER_VARIABLE] = OFF
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    console = Console(width=120)
    with s3_server() as server:
        for edges in sizes:
            costs = measure(server, edges)
            _show(console, edges, costs)
            found = {"edges": edges, "costs": [*map(asdict, costs)]}
            console.print(json.dumps(found), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
