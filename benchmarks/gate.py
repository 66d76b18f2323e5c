"""What a policy costs: a point query with and without one, and a decision alone.

A decision is looked up once it was made; the first one of each kind is made by Cedar. Seconds of
CPU are counted, because other work on the machine does not take part in them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.decisions import Policy
from omnigraph.policy.policy_bundle import parse_bundle

ROWS = 10_000
CALLS = 200
ROUNDS = 60
SCHEMA = "node Person {\n  name: String @key\n}\n"
QUERY = "query one($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
BUNDLE = """\
version: 1
groups: {all: [ada]}
protected_branches: [main]
rules:
  - id: read
    allow: {actors: {group: all}, actions: [read], branch_scope: any}
  - id: write
    allow: {actors: {group: all}, actions: [change], branch_scope: unprotected}
"""


def main() -> None:
    """Measure and print."""
    policy = Policy(parse_bundle(BUNDLE, file="bundle.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder, "g.omni"))
        with omnigraph.create(uri, schema=SCHEMA) as graph:
            graph.branch().load(
                [{"name": f"p{n}"} for n in range(ROWS)], mode="append", type="Person"
            )
        plain = omnigraph.open(uri, actor="ada")
        gated = omnigraph.open(uri, actor="ada", policy=policy)
        snapshots = {"point query": plain.snapshot("main"), "with a policy": gated.snapshot("main")}
        work: dict[str, Callable[[int], object]] = {
            name: lambda n, at=at: at.query(QUERY, params={"n": f"p{n % ROWS}"})
            for name, at in snapshots.items()
        }
        act = Act(Action.READ, "main")
        work["decision, kept"] = lambda _: policy.check("ada", act)
        work["decision by Cedar"] = lambda n: policy.decide("ada", Act(Action.READ, f"b{n}"))
        times = _measure(work)
        plain.close()
        gated.close()
    table = Table(title=f"microseconds of CPU, medians of {ROUNDS} rounds of {CALLS} calls")
    for column in ("work", "µs", "of a point query"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for name, each in times.items():
        table.add_row(name, f"{each:.2f}", f"{each / times['point query']:.1%}")
    Console().print(table)


def _measure(work: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """Medians in microseconds of CPU; the kinds take turns, so that a busy moment meets all."""
    found: dict[str, list[float]] = {name: [] for name in work}
    for round_ in range(ROUNDS):
        for name, call in work.items():
            calls = CALLS // 20 if "Cedar" in name else CALLS
            started = time.process_time()
            for number in range(calls):
                call(round_ * calls + number)
            found[name].append((time.process_time() - started) / calls * 1e6)
    return {name: statistics.median(each) for name, each in found.items()}


if __name__ == "__main__":
    main()
