"""What bulk loads on Spark cost, beside raw writes of the same rows in the same run.

python benchmarks/spark_load.py --nodes 1_000_000 --edges 10_000_000 --lines 5_000_000
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from lance import write_dataset
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.errors import LoadError
from omnigraph.spark.spark_session import SparkOptions, get_session

RATIO_MIN: Final = 0.5
MEMORY_BYTES_MAX: Final = 4 * 1024**3
BAD_LINES: Final = 40
ROW_GROUP_ROWS: Final = 250_000
SCHEMA: Final = """
node Person { name: String @key  age: I32?  @range(age, 0..150)  city: String? }
edge Knows: Person -> Person { weight: F64?  since: I64? }
"""


@dataclass
class Peak:
    """The most memory that this process and all it started had at one time."""

    bytes: int = 0


@dataclass
class Rows:
    """The table that is printed."""

    table: Table
    peak: Peak
    most: int = 0

    def begin(self) -> None:
        """Forget the memory of what came before."""
        self.peak.bytes = 0

    def add(self, what: str, seconds: float, count: int, result: str) -> None:
        """What something took, and the memory since it began."""
        peak = self.peak.bytes
        self.most = max(self.most, peak)
        rate = f"{count / seconds / 1_000:,.0f} k rows/s"
        memory = f"{peak / 1024**3:.2f} GiB"
        self.table.add_row(what, f"{seconds:.1f} s", rate, memory, result)


@contextmanager
def memory_watched() -> Iterator[Peak]:
    """Look at the memory of this process and its descendants while something runs."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while not ended.wait(0.25):
            peak.bytes = max(peak.bytes, sum(map(_resident, list_descendants(os.getpid()))))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def list_descendants(root: int) -> list[int]:
    """A process and all that it started, as far as they run."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += parents.get(process, [])
    return found


def _resident(process: int) -> int:
    """The memory of a process; what it shares with others counts as a share."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = [line for line in text.splitlines() if line.startswith("Pss:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def people(start: int, count: int) -> pa.Table:
    """Rows of people."""
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "name": _named("person-", numbers),
            "age": pa.array(numbers % 90, pa.int32()),
            "city": _named("city-", numbers % 1_000),
        }
    )


def edges(count: int, nodes: int) -> pa.Table:
    """Rows of edges between those people."""
    random = np.random.default_rng(7)
    return pa.table(
        {
            "id": _named("edge-", np.arange(count)),
            "from": _named("person-", random.integers(0, nodes, count)),
            "to": _named("person-", random.integers(0, nodes, count)),
            "weight": pa.array(random.random(count)),
            "since": pa.array(np.arange(count)),
        }
    )


def _named(prefix: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    texts = pc.cast(pa.array(numbers), pa.utf8())
    return pc.binary_join_element_wise(prefix, texts, "")


def write_lines(path: Path, count: int) -> None:
    """Mixed JSON lines: a fifth are people, the others edges; some of them are bad."""
    nodes = count // 5
    names = _named("person-", np.arange(nodes))
    random = np.random.default_rng(11)
    ends = [names.take(pa.array(random.integers(0, nodes, count - nodes))) for _ in range(2)]
    ages = pc.cast(pa.array(np.arange(nodes) % 90), pa.utf8())
    node_lines = pc.binary_join_element_wise(
        '{"type":"Person","data":{"name":"', names, '","age":', ages, "}}", ""
    )
    edge_lines = pc.binary_join_element_wise(
        '{"edge":"Knows","from":"', ends[0], '","to":"', ends[1], '","data":{"since":1}}', ""
    )
    lines = pa.chunked_array([node_lines, edge_lines])
    order = random.permutation(len(lines))
    # Lines of edges: a bad person would leave edges dangling, which is another story.
    chosen = np.flatnonzero(order >= nodes)[:: (count - nodes) // (BAD_LINES + 2)]
    texts = lines.take(pa.array(order)).to_pylist()
    for place in chosen[:BAD_LINES].tolist():
        texts[place] = texts[place].replace('"since":1', '"since":"never"')
    texts[int(chosen[BAD_LINES])] = '{"edge":"Knows","from":"nobody","to":"person-1"}'
    texts[int(chosen[BAD_LINES + 1])] = '{"type":"Person","data":{"name":"person-3"}}'
    path.write_text("\n".join(texts) + "\n")


def write_people(path: Path, start: int, count: int) -> None:
    """People as a Parquet file."""
    pq.write_table(people(start, count), path, row_group_size=ROW_GROUP_ROWS)


def write_edges(path: Path, count: int, nodes: int) -> None:
    """Edges as a Parquet file."""
    pq.write_table(edges(count, nodes), path, row_group_size=ROW_GROUP_ROWS)


def apart(work: Callable[..., None], *arguments: object) -> None:
    """Do something in a process of its own, whose memory goes with it."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def timed(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def raw_write(folder: Path, parquet: Path) -> float:
    """The same files by pyarrow and Lance alone, into one table for each type."""

    def write() -> None:
        for name in ("people", "edges"):
            source = pq.ParquetFile(parquet / f"{name}.parquet")
            reader = pa.RecordBatchReader.from_batches(
                source.schema_arrow, source.iter_batches(262_144)
            )
            write_dataset(reader, str(folder / f"raw-{name}-{time.time_ns()}.lance"))

    return timed(write)


def load_parquet(folder: Path, parquet: Path, rows: Rows, sizes: argparse.Namespace) -> None:
    """Nodes and edges in one commit, against the raw write, each several times."""
    raws, loads = [], []
    rows.begin()
    # The first turn starts the workers.
    for turn in range(sizes.turns + 1):
        raws.append(raw_write(folder, parquet))
        graph = omnigraph.create(str(folder / f"graph-{turn}"), schema=SCHEMA, durable=False)
        files = {"Person": parquet / "people.parquet", "Knows": parquet / "edges.parquet"}
        loads.append(timed(partial(graph.branch().load, files, mode="append", engine="spark")))
        assert graph.branch().count("Knows") == sizes.edges
        graph.close()
    raw, load_ = statistics.median(raws[1:]), statistics.median(loads[1:])
    total = sizes.nodes + sizes.edges
    rows.add("raw write of the same rows", raw, total, "")
    rows.add("load, validated, one commit", load_, total, f"{raw / load_:.2f}x (>= {RATIO_MIN})")


def load_bad_lines(folder: Path, rows: Rows, count: int) -> None:
    """Lines with mistakes: all of them are found, and nothing is published."""
    path = folder / "bad.jsonl"
    apart(write_lines, path, count)
    graph = omnigraph.create(str(folder / "bad"), schema=SCHEMA, durable=False)
    main, found = graph.branch(), 0
    rows.begin()

    def load() -> None:
        nonlocal found
        try:
            main.load(path, mode="append", engine="spark")
        except LoadError as error:
            found = len({each.place for each in error.violations})

    took = timed(load)
    assert main.count("Person") == 0
    graph.close()
    told = f"{found} of {BAD_LINES + 2} told, none published"
    rows.add(f"{count:,} JSON lines with mistakes", took, count, told)
    path.unlink()


def merge(folder: Path, rows: Rows, merged: int) -> None:
    """Rows merged into five times as many, nine of ten of which are there."""
    graph = omnigraph.create(str(folder / "merge"), schema=SCHEMA, durable=False)
    main, parquet = graph.branch(), folder / "merge.parquet"
    apart(write_people, parquet, 0, 5 * merged)
    main.load(parquet, type="Person", mode="append", engine="spark")
    apart(write_people, parquet, 4 * merged + merged // 10, merged)
    rows.begin()
    took = timed(lambda: main.load(parquet, type="Person", mode="merge", engine="spark"))
    assert main.count("Person") == 5 * merged + merged // 10
    graph.close()
    rows.add(f"merge of {merged:,} into {5 * merged:,}", took, merged, "one commit")


def main() -> None:
    """Print what everything took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--merged", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    sizes = parser.parse_args()
    table = Table("what", "time", "rate", "memory", "", title="Bulk loads on Spark, local[2]")
    with tempfile.TemporaryDirectory() as name, memory_watched() as peak:
        folder, rows = Path(name), Rows(table, peak)
        spark = get_session(SparkOptions(master="local[2]"))
        apart(write_people, folder / "people.parquet", 0, sizes.nodes)
        apart(write_edges, folder / "edges.parquet", sizes.edges, sizes.nodes)
        load_parquet(folder, folder, rows, sizes)
        load_bad_lines(folder, rows, sizes.lines)
        merge(folder, rows, sizes.merged)
        spark.stop()
    verdict = "met" if rows.most < MEMORY_BYTES_MAX else "NOT met"
    table.caption = f"memory of all processes together: < 4 GiB {verdict}"
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
