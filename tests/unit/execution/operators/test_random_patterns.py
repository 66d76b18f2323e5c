"""Random patterns on random graphs: the rows of the model, whatever the source."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from model import ModelGraph
from model.reading import Reader
from omnigraph.execution import execution_context, sorted_arrays
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators import expand_operator, pattern_executor, scan_operator
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.optimizer.plan_split import variable_types_of
from omnigraph.execution.query_budget import Access, Budget
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query.logical_plan import Operator, ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.tree_walk import bound_variables_of, chain_of
from omnigraph.query.typed_tree import NOW_NAME
from unit.execution.model_views import view_of
from unit.execution.operators.model_source import (
    NOW,
    in_order,
    model_rows,
    pattern_of,
    reading_of,
    shown,
)
from unit.execution.operators.pattern_writer import PatternWriter
from unit.query.random_queries import CATALOG, VALUES, WORK_MAX, random_graph


@pytest.mark.parametrize("seed", range(400))
def test_random_patterns_give_the_rows_of_the_model(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    _vary_bounds(random, monkeypatch)
    graph, plan = _graph_and_plan(random)
    reading_ = reading_of(graph, plan.root, VALUES, is_counted=random.random() < 0.5)
    _assert_agrees(random, graph, plan.root, reading_)


@pytest.mark.parametrize("access", [Access.TOPOLOGY, Access.LOOKUPS])
@pytest.mark.parametrize("seed", range(1_000, 1_040))
def test_random_patterns_give_the_rows_of_the_model_on_tables(
    seed: int, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    _vary_bounds(random, monkeypatch)
    graph, plan = _graph_and_plan(random)
    view = view_of(graph)
    source = SourceCache().get_source(view, access)
    values, types = {**VALUES, NOW_NAME: NOW}, variable_types_of(plan.root)
    reading = ExecutionContext(view, source, values, Budget(), None, types.nodes, types.edges)
    _assert_agrees(random, graph, plan.root, reading)


def _graph_and_plan(random: Random) -> tuple[ModelGraph, ReadPlan]:
    graph, text = random_graph(random), PatternWriter(random).query()
    compiled = compile_query(text, CATALOG)
    plan = random.choice([compiled.plan, lower_query(compiled.checked)])
    assert isinstance(plan, ReadPlan)
    return graph, plan


def _vary_bounds(random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even small graphs meet what large ones do."""
    is_tiny = random.random() < 0.5
    monkeypatch.setattr(pattern_executor, "MORSEL_ROWS", random.choice([1, 2, 7, 1_000_000]))
    monkeypatch.setattr(pattern_executor, "_REPETITIONS_MIN", random.choice([1, 1_000]))
    monkeypatch.setattr(execution_context, "_DISTINCT_MIN", 1 if is_tiny else 4_096)
    monkeypatch.setattr(sorted_arrays, "_MARKED_MIN", 1 if is_tiny else 20_000)
    monkeypatch.setattr(expand_operator, "_STARTS_MAX", random.choice([1, 1_024]))
    monkeypatch.setattr(expand_operator, "_SIDES_MIN", random.choice([0, 1_024]))
    monkeypatch.setattr(scan_operator, "_NARROWED_ROWS_MAX", random.choice([0, 2, 64]))


def _assert_agrees(
    random: Random, graph: ModelGraph, root: Operator, reading_: ExecutionContext
) -> None:
    pattern = pattern_of(root)
    names = sorted(frozenset().union(*map(bound_variables_of, chain_of(pattern))))
    needed = random.choice([None, frozenset(names), frozenset(random.sample(names, k=1))])
    reader = Reader(graph, reading_.params, None, WORK_MAX)
    expected = in_order(model_rows(iter(reader.rows(pattern, {})), needed))
    batch = run_pattern(pattern, reading_, needed=needed)
    assert set(batch.nodes) | set(batch.edges) == (set(names) if needed is None else needed)
    assert in_order(shown(reading_, batch)) == expected
    limit = random.randrange(len(expected) + 2)
    first = in_order(shown(reading_, run_pattern(pattern, reading_, limit=limit, needed=needed)))
    assert len(first) == min(limit, len(expected))
    assert not Counter(first) - Counter(expected)
