"""What a plan and an apply without a change cost: beside reading and hashing the same files.

CPU seconds of one process, because other work on the machine does not count in them; the kinds take
turns. The files are the configuration, and the payloads that are applied.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from omnigraph.clusters.control_plane import ControlPlane

GRAPHS = 100
QUERIES = 200
# Queries of one graph in one file.
QUERIES_PER_FILE = 1
ROUNDS = 7
RATIO_MAX = 3.0
SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\n"
QUERY = """\
query q{number}($name: String, $limit: I32) @description("Finds the people of one name.") {{
  match {{ $p: Person {{ name: $name }} }}
  return {{ $p.name, $p.age }}
  limit 10
}}
"""
BUNDLE = """\
version: 1
groups: {all: [ada]}
rules:
  - id: read
    allow: {actors: {group: all}, actions: [read, invoke_query]}
"""


def main() -> None:
    """Apply a large cluster, then measure what changes nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = _write_config(folder)
        assert _open(folder).import_state().is_ok
        assert _open(folder).apply().is_ok
        work: dict[str, Callable[[], object]] = {
            "read and hash the files": lambda: _hash_files(files),
            "plan": lambda: _require_unchanged(_open(folder).plan().fields),
            "apply without a change": lambda: _require_unchanged(_open(folder).apply().fields),
        }
        cpu, wall = _measure(work)
    raw = cpu["read and hash the files"]
    table = Table(title=f"{GRAPHS} graphs x {QUERIES} queries, medians of {ROUNDS} rounds")
    for column in ("work", "CPU s", "of reading and hashing", "seconds"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for name, each in cpu.items():
        table.add_row(name, f"{each:.3f}", f"{each / raw:.2f}x", f"{wall[name]:.3f}")
    Console().print(table)
    if max(cpu.values()) > RATIO_MAX * raw:
        sys.exit(f"more than {RATIO_MAX}x of reading and hashing the same files")


def _write_config(folder: Path) -> list[Path]:
    lines = ["version: 1", "graphs:"]
    files = [folder / "cluster.yaml", folder / "policy.yaml"]
    files[1].write_text(BUNDLE)
    for number in range(GRAPHS):
        own = folder / f"g{number}"
        own.mkdir()
        schema = own / "schema.pg"
        schema.write_text(SCHEMA)
        files.append(schema)
        for first in range(0, QUERIES, QUERIES_PER_FILE):
            path = own / f"q{first:03}.gq"
            numbers = range(first, first + QUERIES_PER_FILE)
            path.write_text("\n".join(QUERY.format(number=each) for each in numbers))
            files.append(path)
        lines.append(f"  g{number}: {{schema: g{number}/schema.pg, queries: g{number}}}")
    bound = ", ".join(f"g{number}" for number in range(GRAPHS))
    lines += ["policies:", f"  all: {{file: policy.yaml, applies_to: [{bound}]}}"]
    files[0].write_text("\n".join(lines) + "\n")
    return files


def _open(folder: Path) -> ControlPlane:
    return ControlPlane(str(folder), "ada")


def _require_unchanged(fields: dict[str, object]) -> None:
    assert fields["changes"] == []


def _hash_files(files: list[Path]) -> None:
    for path in files:
        hashlib.sha256(path.read_bytes()).hexdigest()


def _measure(
    work: dict[str, Callable[[], object]],
) -> tuple[dict[str, float], dict[str, float]]:
    cpu: dict[str, list[float]] = {name: [] for name in work}
    wall: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, call in work.items():
            started, used = time.perf_counter(), time.process_time()
            call()
            cpu[name].append(time.process_time() - used)
            wall[name].append(time.perf_counter() - started)
    return (
        {name: statistics.median(each) for name, each in cpu.items()},
        {name: statistics.median(each) for name, each in wall.items()},
    )


if __name__ == "__main__":
    main()
