"""Large patterns: morsels, limits, and what a query may use."""

from __future__ import annotations

import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from omnigraph.errors import QueryCancelledError, QueryTimeoutError, ResourceLimitError
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators import pattern_executor
from omnigraph.execution.operators.pattern_executor import run_pattern, stream_pattern
from omnigraph.execution.query_budget import Budget, Cancellation
from omnigraph.query.logical_plan import Operator
from unit.execution.model_views import model_graph, plan_of
from unit.execution.operators.full_source import FullSource
from unit.execution.operators.model_source import pattern_of, reading_of

SCHEMA = """
node Person { name: String @key  age: I64 }
edge Knows: Person -> Person { since: I64? }
"""
GRAPH = model_graph(SCHEMA)
TWO_HOPS = "$a: Person  $a knows $b  $b knows $c"
MEGABYTE = 2**20


def _full(
    clauses: str, size: int, *, budget: Budget | None = None, pause_s: float = 0
) -> tuple[Operator, ExecutionContext, FullSource]:
    text = f"query q() {{ match {{ {clauses} }} return {{ $a.name }} }}"
    root = plan_of(GRAPH, text).root
    source = FullSource(size, pause_s)
    reading = reading_of(GRAPH, root, budget=budget)
    return pattern_of(root), replace(reading, source=source), source


def test_rows_come_in_morsels_and_together_are_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_executor, "MORSEL_ROWS", 1_000)
    pattern, reading, _ = _full(TWO_HOPS, 30)
    batches = list(stream_pattern(pattern, reading))
    assert len(batches) > 27
    assert max(each.num_rows for each in batches) <= 1_000
    assert sum(each.num_rows for each in batches) == 30**3
    together = run_pattern(pattern, reading)
    keys = together.nodes["a"] * 900 + together.nodes["b"] * 30 + together.nodes["c"]
    assert np.array_equal(np.sort(keys), np.arange(30**3))


@pytest.mark.parametrize(
    "clauses",
    [
        TWO_HOPS,
        "$a: Person  $a $e:knows $b  $b knows $c",
        "$a: Person  $b: Person  $c: Person",
        "$a: Person  $a <knows> $b  $b <knows> $c",
        "$a: Person  $a knows{1,2} $b  $b knows{1,2} $c",
    ],
)
def test_rows_that_need_too_much_memory_are_refused_before_they_are_made(clauses: str) -> None:
    pattern, reading, _ = _full(clauses, 200, budget=Budget(memory_bytes=8 * MEGABYTE))
    tracemalloc.start()
    try:
        with pytest.raises(ResourceLimitError, match="query_memory_bytes"):
            run_pattern(pattern, reading)
        assert tracemalloc.get_traced_memory()[1] < 128 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_a_refused_query_gives_its_memory_back() -> None:
    budget = Budget(memory_bytes=64 * MEGABYTE)
    pattern, reading, _ = _full(TWO_HOPS, 1_000, budget=budget)
    with pytest.raises(ResourceLimitError):
        run_pattern(pattern, reading)
    budget.require_memory(64 * MEGABYTE)


@pytest.mark.parametrize(
    ("clauses", "rows"),
    [
        (f"{TWO_HOPS}  $a.age > $c.age  $b.age = 0  $c.age < 2", 397),
        ("$a: Person  $a knows $b  $a.age = $b.age", 200),
        ("$a: Person  $a.age < 2  count { $a knows $b  $b knows $c } = 40000", 2),
        ("$a: Person  $a.age < 2  exists { $a knows $b  $b knows $c  $c.age = 7 }", 2),
        ("$a: Person  sum($c.age) { $a knows $b  $b.age = 1  $b knows $c } > 0", 200),
    ],
)
def test_what_a_later_test_drops_never_is_in_memory_at_once(
    clauses: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_executor, "MORSEL_ROWS", 10_000)
    # All rows of two hops from all people would take a hundred megabytes.
    budget = Budget(memory_bytes=4 * MEGABYTE)
    pattern, reading, _ = _full(clauses, 200, budget=budget)
    assert run_pattern(pattern, reading).num_rows == rows


def test_a_limit_stops_walking_early() -> None:
    pattern, reading, source = _full(TWO_HOPS, 500)
    assert run_pattern(pattern, reading, limit=5).num_rows == 5
    (edges,) = source.edges_
    # Of 500 people the first few are enough, and of their 500 acquaintances too.
    assert sum(edges.walked) < 50


def test_a_query_stops_between_morsels_when_its_time_is_over() -> None:
    budget = Budget(deadline=time.monotonic() + 0.2)
    pattern, reading, _ = _full(TWO_HOPS, 2_000, budget=budget, pause_s=0.05)
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError) as stopped:
        for _ in stream_pattern(pattern, reading):
            pass
    assert time.monotonic() - started < 2
    assert stopped.value.timeout_s == pytest.approx(0.2, abs=0.1)


def test_hops_stop_between_hops_when_the_time_is_over() -> None:
    budget = Budget(deadline=time.monotonic())
    pattern, reading, source = _full("$a: Person  $a knows{1,3} $b", 10, budget=budget)
    with pytest.raises(QueryTimeoutError):
        run_pattern(pattern, reading)
    assert not source.edges_ or not source.edges_[0].walked


def test_another_thread_may_cancel_a_query() -> None:
    cancellation = Cancellation()
    budget = Budget(cancellation=cancellation)
    pattern, reading, _ = _full(TWO_HOPS, 2_000, budget=budget, pause_s=0.02)
    cancelling = threading.Timer(0.1, cancellation.cancel)
    cancelling.start()
    with pytest.raises(QueryCancelledError):
        for _ in stream_pattern(pattern, reading):
            pass
    cancelling.join()
