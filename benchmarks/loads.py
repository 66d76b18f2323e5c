"""What a load costs in this process, beside raw writes of the same rows; each in one of its own."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation, write_dataset
from lance.fragment import write_fragments
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.rows.entity_ids import generate_ids

ROWS: Final = 1_000_000
MERGED: Final = ROWS // 10
RATIO_MAX: Final = 3.0
MEMORY_BYTES_MAX: Final = 2 * 1024**3

SCHEMA: Final = """
node Person {
  name: String @key
  email: String @unique
  age: I32?
  @range(age, 0..150)
  team: enum(red, green, blue)
}
edge Knows: Person -> Person { since: Date? }
"""


def people(start: int, count: int) -> pa.Table:
    """Rows of people, the same each time."""
    numbers = pa.array(range(start, start + count), pa.int64())
    texts = pc.cast(numbers, pa.utf8())
    teams = pa.array(["red", "green", "blue"]).take(pc.cast(_modulo(numbers, 3), pa.int64()))
    return pa.table(
        {
            "name": pc.binary_join_element_wise("person-", texts, ""),
            "email": pc.binary_join_element_wise(texts, "@example.com", ""),
            "age": pc.cast(_modulo(numbers, 90), pa.int32()),
            "team": teams,
        }
    )


def edges(count: int) -> pa.Table:
    """Rows of edges between those people."""
    numbers = pa.array(range(count), pa.int64())
    ends = [
        pc.binary_join_element_wise("person-", pc.cast(_modulo(each, count), pa.utf8()), "")
        for each in (numbers, pc.add(pc.multiply(numbers, 7), 1))
    ]
    days = pc.cast(pc.cast(_modulo(numbers, 20_000), pa.int32()), pa.date32())
    return pa.table({"from": ends[0], "to": ends[1], "since": days})


def _modulo(numbers: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def raw(folder: str) -> dict[str, float]:
    """Write the rows as they are stored, with Lance alone: fragments and one detached commit."""
    took = {}
    nodes = _identified(people(0, ROWS))
    took["append nodes"] = _timed(lambda: _written(f"{folder}/nodes.lance", nodes))
    links = edges(ROWS).add_column(0, "__id", generate_ids(ROWS))
    took["append edges"] = _timed(lambda: _written(f"{folder}/edges.lance", links))
    changed = _identified(people(ROWS - MERGED // 2, MERGED))
    took["merge nodes"] = _timed(lambda: _written(f"{folder}/changed.lance", changed))
    return took | {"memory": _peak_bytes()}


def _identified(rows: pa.Table) -> pa.Table:
    return rows.add_column(0, "__id", rows["name"])


def _written(uri: str, rows: pa.Table) -> None:
    dataset = write_dataset(rows.schema.empty_table(), uri, enable_stable_row_ids=True)
    fragments = write_fragments(rows, dataset)
    LanceDataset.commit(dataset, LanceOperation.Append(fragments), read_version=1, detached=True)


def loaded(folder: str) -> dict[str, float]:
    """Load the rows into a graph: typed, validated, one commit per load."""
    took = {}
    graph = omnigraph.create(f"{folder}/graph", schema=SCHEMA, durable=False)
    main = graph.branch()
    nodes = people(0, ROWS)
    took["append nodes"] = _timed(lambda: main.load(nodes, type="Person", mode="append"))
    links = edges(ROWS)
    took["append edges"] = _timed(lambda: main.load(links, type="Knows", mode="append"))
    changed = people(ROWS - MERGED // 2, MERGED)
    took["merge nodes"] = _timed(lambda: main.load(changed, type="Person", mode="merge"))
    assert main.count("Person") == ROWS + MERGED // 2
    assert main.count("Knows") == ROWS
    graph.close()
    return took | {"memory": _peak_bytes()}


def lines(folder: str) -> dict[str, float]:
    """Load the same people from JSON lines, for comparison; the file is written before."""
    path = Path(folder) / "people.jsonl"
    with path.open("w") as file:
        for batch in people(0, ROWS).to_batches(max_chunksize=65_536):
            texts = pc.binary_join_element_wise(
                '{"type":"Person","data":{"name":"',
                batch["name"],
                '","email":"',
                batch["email"],
                '","age":',
                pc.cast(batch["age"], pa.utf8()),
                ',"team":"',
                batch["team"],
                '"}}\n',
                "",
            )
            file.writelines(texts.to_pylist())
    graph = omnigraph.create(f"{folder}/graph", schema=SCHEMA, durable=False)
    took = {"load lines": _timed(lambda: graph.branch().load(path, mode="append"))}
    took["export lines"] = _timed(lambda: sum(map(len, graph.branch().export())))
    graph.close()
    return took | {"memory": _peak_bytes()}


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    context = multiprocessing.get_context("spawn")
    found: list[dict[str, float]] = []
    for job in (raw, loaded, lines):
        with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, context) as pool:
            found.append(pool.submit(job, folder).result())
    least, graph, text = found
    table = Table(title=f"loads of {ROWS:,} rows, no fsync")
    for name in ("work", "raw", "graph", "ratio", "budget", "met"):
        table.add_column(name, justify="left" if name == "work" else "right")
    steps = [name for name in least if name != "memory"]
    for name in [*steps, "append and merge of nodes"]:
        parts = ["append nodes", "merge nodes"] if name not in least else [name]
        before, after = (sum(run[part] for part in parts) for run in (least, graph))
        ratio, is_judged = after / before, name not in least
        verdict = ("yes" if ratio <= RATIO_MAX else "NO") if is_judged else ""
        budget = f"<= {RATIO_MAX}x" if is_judged else ""
        table.add_row(name, f"{before:.2f} s", f"{after:.2f} s", f"{ratio:.2f}x", budget, verdict)
    for name in ("load lines", "export lines"):
        table.add_row(name, "", f"{text[name]:.2f} s", "", "", "")
    for name, run in (("peak memory, Arrow", graph), ("peak memory, lines", text)):
        verdict = "yes" if run["memory"] < MEMORY_BYTES_MAX else "NO"
        table.add_row(name, "", f"{run['memory'] / 1024**2:.0f} MiB", "", "< 2048 MiB", verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
