"""Print the size of `src` and how many modules five typical operations pass.

An operation passes a module when it calls a function of it, on any thread of this process. It
crosses packages whenever a function of one package of omnigraph calls one of another package.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = "omnigraph"
# The tree before it was reorganized, measured by this script: modules and crossings.
LINES_BEFORE = 82_004
FILES_BEFORE = 618
BEFORE = {
    "warm one-hop read": (59, 23),
    "one-row write": (71, 149),
    "small merge": (85, 533),
    "Spark load": (74, 276),
    "pipeline run": (132, 338),
}

SCHEMA = """
node Person { handle: String @key  name: String  level: enum(junior, senior) }
edge Knows: Person -> Person { since: Date?  @key(@src, @dst) }
"""
FRIENDS = """query friends($who: String) {
  match { $p: Person { handle: $who }  $p knows $q } return { $q.name } order { $q.name }
}"""
PROMOTE = 'query up($who: String) { update Person set { level: "senior" } where @id = $who }'
PIPELINE = """
graphs:
  people: GRAPH
source: {kind: files, paths: people.jsonl}
into:
  - graph: people
    map:
      nodes:
        - type: Person
          set: {handle: login, name: full_name, level: {value: senior}}
"""


@dataclass
class Trace:
    """The modules and the crossings of one operation; nothing is recorded while it is inactive."""

    is_active: bool = False
    modules: set[str] = field(default_factory=set)
    crossings: Counter[tuple[str, str]] = field(default_factory=Counter)

    def record(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record the call of a function of the package; the profiler of every thread."""
        if not self.is_active or event != "call" or frame.f_code.co_name == "<module>":
            return
        name = frame.f_globals.get("__name__", "")
        if not _is_own(name):
            return
        self.modules.add(name)
        caller = _find_caller(frame)
        if caller is not None and _package_of(caller) != _package_of(name):
            self.crossings[_package_of(caller), _package_of(name)] += 1

    def run(self, operation: Callable[[], object]) -> Trace:
        """Record one operation."""
        found = Trace()
        self.modules, self.crossings = found.modules, found.crossings
        self.is_active = True
        try:
            operation()
        finally:
            self.is_active = False
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-spark", action="store_true", help="leave out what needs Spark")
    parser.add_argument("--modules", action="store_true", help="list the modules of each operation")
    arguments = parser.parse_args()
    print_size()
    trace = Trace()
    # Before anything is imported, so that threads that are kept for later are traced too.
    threading.setprofile(trace.record)
    sys.setprofile(trace.record)
    with tempfile.TemporaryDirectory() as folder:
        for name, operation in list_operations(Path(folder), with_spark=not arguments.no_spark):
            print_trace(name, trace.run(operation), with_modules=arguments.modules)
    sys.setprofile(None)


def print_size() -> None:
    """Lines and files of the tree, beside the figures before."""
    files = sorted(SOURCE.rglob("*.py"))
    lines = sum(len(path.read_text().splitlines()) for path in files)
    print(f"{'src':<18} {lines:>7,} lines  {len(files):>4} files", end="")
    print(f"   before: {LINES_BEFORE:,} lines, {FILES_BEFORE} files")


def print_trace(name: str, found: Trace, *, with_modules: bool) -> None:
    crossings = sum(found.crossings.values())
    modules_before, crossings_before = BEFORE[name]
    print(f"{name:<18} {len(found.modules):>7,} modules {crossings:>6,} crossings", end="")
    print(f"   before: {modules_before} modules, {crossings_before} crossings")
    if with_modules:
        for module in sorted(found.modules):
            print(f"    {module}")


def list_operations(folder: Path, *, with_spark: bool) -> list[tuple[str, Callable[[], object]]]:
    """The operations by name, on a graph that is made here; those without Spark are warm."""
    import omnigraph  # noqa: PLC0415 — after the profiler is set

    graph = omnigraph.create(str(folder / "people.omni"), schema=SCHEMA, actor="ada")
    main = graph.branch("main")
    main.load(_list_people(range(8)), mode="append")
    main.query(FRIENDS, params={"who": "p0"})
    main.mutate(PROMOTE, params={"who": "p0"})
    for who in ("p1", "p2"):
        graph.create_branch(f"review-{who}", source=main).mutate(PROMOTE, params={"who": who})
    main.mutate(PROMOTE, params={"who": "p3"})
    main.merge(graph.branch("review-p1"))
    main.query(FRIENDS, params={"who": "p0"})
    operations: list[tuple[str, Callable[[], object]]] = [
        ("warm one-hop read", lambda: main.query(FRIENDS, params={"who": "p0"}).to_pylist()),
        ("one-row write", lambda: main.mutate(PROMOTE, params={"who": "p4"})),
        ("small merge", lambda: main.merge(graph.branch("review-p2"))),
    ]
    if with_spark:
        operations += [
            ("Spark load", lambda: _load_with_spark(main, folder)),
            ("pipeline run", lambda: _run_pipeline(folder)),
        ]
    return operations


def _load_with_spark(main: Any, folder: Path) -> None:
    path = folder / "more.jsonl"
    lines = (json.dumps(record) for record in _list_people(range(100, 104)))
    path.write_text("\n".join(lines) + "\n")
    main.load(str(path), mode="append", engine="spark")


def _run_pipeline(folder: Path) -> None:
    from omnigraph.pipelines.config.definition_reader import read_pipeline  # noqa: PLC0415
    from omnigraph.pipelines.run.pipeline_run import run_pipeline  # noqa: PLC0415

    (folder / "people.jsonl").write_text('{"login": "cy", "full_name": "Cy"}\n')
    definition = folder / "people.yaml"
    definition.write_text(PIPELINE.replace("GRAPH", str(folder / "people.omni")))
    run_pipeline(read_pipeline(definition))


def _list_people(numbers: range) -> list[dict[str, object]]:
    """Nodes with these numbers, each of whom knows the next one."""
    nodes: list[dict[str, object]] = [
        {"type": "Person", "data": {"handle": f"p{at}", "name": f"P{at}", "level": "junior"}}
        for at in numbers
    ]
    edges: list[dict[str, object]] = [
        {"edge": "Knows", "from": f"p{at}", "to": f"p{at + 1}", "data": {}} for at in numbers[:-1]
    ]
    return nodes + edges


def _find_caller(frame: FrameType) -> str | None:
    """The nearest module of the package that the call came from, through other libraries."""
    above = frame.f_back
    while above is not None:
        name = above.f_globals.get("__name__", "")
        if _is_own(name):
            return str(name)
        above = above.f_back
    return None


def _is_own(name: object) -> bool:
    return isinstance(name, str) and (name == PACKAGE or name.startswith(f"{PACKAGE}."))


def _package_of(name: str) -> str:
    """The package of a module below omnigraph, or omnigraph itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 2 else PACKAGE


if __name__ == "__main__":
    main()
