"""What pipelines cost beside loads and raw writes of the same files, in CPU seconds.

python benchmarks/pipeline_cost.py --nodes 1_000_000 --edges 5_000_000

The CPU seconds are those of all processes: this one, Java, and the Python workers of Spark. The
turns of what is compared follow each other, and the first of each is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.csv as pcsv
from rich.console import Console
from rich.table import Table
from spark_load import apart, edges, list_descendants, people, raw_write, write_edges, write_people

import omnigraph
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from omnigraph.spark.spark_session import SparkOptions, get_session

CSV_RATIO_MAX: Final = 1.5
PARQUET_RATIO_MAX: Final = 1.3
RAW_RATIO_MIN: Final = 0.5
SCHEMA: Final = """
node Person { name: String @key  age: I32?  @range(age, 0..150)  city: String? }
edge Knows: Person -> Person { weight: F64?  since: I64? }
"""
CASTS: Final = {"age": "int(age)", "weight": "double(weight)", "since": "bigint(since)"}
PIPELINE: Final = """
graphs: {{town: graph.omni}}
sources:
  people: {{kind: files, paths: {folder}/people.{format}}}
  knows: {{kind: files, paths: {folder}/edges.{format}}}
into:
  - graph: town
    mode: {mode}
    map:
      nodes:
        - {{type: Person, source: people, set: {{name: name, age: {age}, city: city}}}}
      edges:
        - type: Knows
          source: knows
          from: from
          to: to
          id: id
          set: {{weight: {weight}, since: {since}}}
"""


@dataclass
class Costs:
    """The CPU seconds and the seconds of each turn of each of what is compared."""

    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, what: str, work: Callable[[], object]) -> None:
        """Do it once."""
        cpu, started = count_cpu_seconds(), time.perf_counter()
        work()
        self.wall.setdefault(what, []).append(time.perf_counter() - started)
        self.cpu.setdefault(what, []).append(count_cpu_seconds() - cpu)

    def median(self, what: str) -> float:
        """The CPU seconds of all turns but the first."""
        return statistics.median(self.cpu[what][1:] or self.cpu[what])


def count_cpu_seconds() -> float:
    """What this process and its descendants have used so far, with those that have ended."""
    ticks = 0
    for process in list_descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def write_csv(folder: Path, nodes: int, count: int) -> None:
    """The same rows as CSV files."""
    pcsv.write_csv(people(0, nodes), folder / "people.csv")
    pcsv.write_csv(edges(count, nodes), folder / "edges.csv")


def load_files(folder: Path, graph_folder: Path, ending: str) -> None:
    """Load the files of both types in one commit."""
    graph = omnigraph.create(str(graph_folder / "graph.omni"), schema=SCHEMA, durable=False)
    files = {"Person": folder / f"people.{ending}", "Knows": folder / f"edges.{ending}"}
    graph.branch().load(files, mode="append", engine="spark")
    graph.close()


def run_mapping(folder: Path, graph_folder: Path, ending: str) -> None:
    """Run a pipeline that maps the same files."""
    omnigraph.create(str(graph_folder / "graph.omni"), schema=SCHEMA, durable=False).close()
    values = CASTS if ending == "csv" else {name: name for name in CASTS}
    text = PIPELINE.format(folder=folder, format=ending, mode="append", **values)
    path = graph_folder / "town.yaml"
    path.write_text(text)
    ended = run_pipeline(read_pipeline(path))
    assert ended.status == "succeeded", ended.targets[0].error


def measure_turn(costs: Costs, folder: Path, turn: int) -> None:
    """One turn of everything, in an order that alternates."""
    costs.measure("raw write", lambda: raw_write(folder, folder))
    for ending in ("csv", "parquet"):
        for name, work in (("load", load_files), ("pipeline", run_mapping)):
            own = folder / f"{name}-{ending}-{turn}"
            own.mkdir()
            costs.measure(f"{name} {ending}", lambda w=work, o=own, e=ending: w(folder, o, e))


def build_rows(costs: Costs) -> Table:
    """The table that is printed."""
    table = Table("what", "CPU", "time", "ratio", title="Pipelines beside loads, local[2]")
    loads = {ending: costs.median(f"load {ending}") for ending in ("csv", "parquet")}
    ratios = {"load parquet": (costs.median("raw write") / loads["parquet"], RAW_RATIO_MIN, ">=")}
    for ending, bound in (("csv", CSV_RATIO_MAX), ("parquet", PARQUET_RATIO_MAX)):
        ratios[f"pipeline {ending}"] = (
            costs.median(f"pipeline {ending}") / loads[ending],
            bound,
            "<=",
        )
    for what in costs.cpu:
        found = ratios.get(what)
        ratio = "" if found is None else f"{found[0]:.2f}x ({found[2]} {found[1]})"
        took = statistics.median(costs.wall[what][1:] or costs.wall[what])
        table.add_row(what, f"{costs.median(what):.1f} s", f"{took:.1f} s", ratio)
    return table


def main() -> None:
    """Print what everything took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--turns", type=int, default=3)
    sizes = parser.parse_args()
    costs = Costs()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = get_session(SparkOptions(master="local[2]"))
        apart(write_people, folder / "people.parquet", 0, sizes.nodes)
        apart(write_edges, folder / "edges.parquet", sizes.edges, sizes.nodes)
        apart(write_csv, folder, sizes.nodes, sizes.edges)
        for turn in range(sizes.turns + 1):
            measure_turn(costs, folder, turn)
        spark.stop()
    Console(width=100).print(build_rows(costs))


if __name__ == "__main__":
    main()
