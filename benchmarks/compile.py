"""How long the compilers take on a large project; medians of several runs in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from workload import EDGE_TYPES, NODE_TYPES, QUERIES, queries_text, schema_text

from omnigraph.query import compile_query, format_queries, lint_file, parse_query_file
from omnigraph.schema import compile_schema, load_catalog

RUNS = 5


def main() -> None:
    """Measure and print."""
    schema, queries = schema_text(), queries_text()
    catalog = load_catalog(schema)
    one = queries_text(1)
    report = lint_file(queries, catalog)
    assert not report.has_errors, report.diagnostics[:3]
    table = Table(title=f"{NODE_TYPES} node types, {EDGE_TYPES} edge types, {QUERIES} queries")
    table.add_column("work")
    table.add_column("median ms", justify="right")
    for name, work in {
        "compile the schema": lambda: compile_schema(schema),
        "parse all queries": lambda: parse_query_file(queries),
        "lint all queries": lambda: lint_file(queries, catalog),
        "format all queries": lambda: format_queries(queries),
        "compile one query": lambda: compile_query(one, catalog),
    }.items():
        table.add_row(name, f"{_median_ms(work):.2f}")
    Console().print(table)


def _median_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
