"""How long commands take to start, beside a Python that does nothing.

Each line is the median of ten processes, started in turns so that a busy moment meets all of them.
The libraries that a read needs are measured too: no read of a graph can take less. Byte code is
there, as after an installation: without it, most of a start is compiling.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

RUNS = 10
PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
SCHEMA = "node Person {\n  name: String @key\n}\n"
PEOPLE = "".join(
    f'{{"type": "Person", "data": {{"name": "{name}"}}}}\n' for name in ("ada", "bob", "cyd")
)
QUERY = "query people() { match { $p: Person } return { $p.name } }"
WITHOUT_PANDAS = """
import sys
class Finder:
    def find_spec(name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Finder)
import lance
"""
COMPLETION = {
    "_OMNIGRAPH_COMPLETE": "complete_zsh",
    "_TYPER_COMPLETE_ARGS": "omnigraph sch",
}


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        graph = _make_graph(Path(folder))
        lines = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import omnigraph": [sys.executable, "-c", "import omnigraph"],
            "import typer": [sys.executable, "-c", "import typer"],
            "import pyarrow": [sys.executable, "-c", "import pyarrow"],
            "import lance": [sys.executable, "-c", "import lance"],
            "import lance without pandas": [sys.executable, "-c", WITHOUT_PANDAS],
            "omnigraph version": [PROGRAM, "version"],
            "omnigraph --help": [PROGRAM, "--help"],
            "omnigraph query --help": [PROGRAM, "query", "--help"],
            "completion": [PROGRAM],
            "omnigraph query": [PROGRAM, "query", "--store", graph, "-e", QUERY],
        }
        times: dict[str, list[float]] = {name: [] for name in lines}
        for number in range(RUNS + 1):
            for name, line in lines.items():
                taken = _time_process(line, is_completion=name == "completion")
                # The first of each writes the byte code of what it loads.
                times[name] += [taken] if number else []
    base = statistics.median(times["python -c pass"])
    table = Table(title=f"medians of {RUNS} processes")
    for column in ("process", "ms", "times"):
        table.add_column(column, justify="left" if column == "process" else "right")
    for name, found in times.items():
        median = statistics.median(found)
        table.add_row(name, f"{median * 1000:.0f}", f"{median / base:.1f}")
    Console().print(table)


def _make_graph(folder: Path) -> str:
    schema, people, graph = folder / "s.pg", folder / "people.jsonl", str(folder / "g.omni")
    schema.write_text(SCHEMA)
    people.write_text(PEOPLE)
    for line in (
        [PROGRAM, "init", graph, "--schema", str(schema)],
        [PROGRAM, "load", graph, "--data", str(people), "--mode", "append"],
    ):
        subprocess.run(line, check=True, capture_output=True)  # noqa: S603 — our own program
    return graph


def _time_process(line: list[str], *, is_completion: bool) -> float:
    environment = os.environ | (COMPLETION if is_completion else {})
    before = time.perf_counter()
    subprocess.run(line, check=True, capture_output=True, env=environment)  # noqa: S603
    return time.perf_counter() - before


if __name__ == "__main__":
    main()
