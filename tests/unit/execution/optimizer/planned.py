"""Plans of model graphs, run by a planner on any source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from model import ModelGraph, to_json
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.optimizer.plan_split import variable_types_of
from omnigraph.execution.optimizer.read_planner import CachedPlan, Planner
from omnigraph.execution.query_budget import Access, Budget
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.typed_tree import NOW_NAME
from omnigraph.rows.view import View
from unit.execution.model_views import NOW, bound, plan_of

Row = dict[str, Any]


def reading_of(
    view: View,
    plan: ReadPlan,
    params: Mapping[str, Any] | None = None,
    *,
    access: Access = Access.TOPOLOGY,
    sources: SourceCache | None = None,
) -> ExecutionContext:
    """A reading of a view for a plan, from one kind of source."""
    source = (sources or SourceCache()).get_source(view, access)
    known = {**bound(plan, params), NOW_NAME: NOW}
    types = variable_types_of(plan.root)
    return ExecutionContext(view, source, known, Budget(), None, types.nodes, types.edges)


def planned_rows(
    plan: ReadPlan, reading: ExecutionContext, planner: Planner | None = None
) -> list[Row]:
    """The rows that a planner finds, in an order if the plan has none."""
    return in_order((planner or Planner()).run(plan, reading).to_json_rows(), plan)


def model_rows(
    graph: ModelGraph, plan: ReadPlan, params: Mapping[str, Any] | None = None
) -> list[Row]:
    """The rows that the model finds, in the same order."""
    rows = [
        {
            column.name: to_json(row[column.name], column.type, graph.catalog)
            for column in plan.columns
        }
        for row in graph.read(plan, bound(plan, params), now=NOW)
    ]
    return in_order(rows, plan)


def in_order(rows: list[Row], plan: ReadPlan) -> list[Row]:
    """Rows as they are, or sorted if the plan leaves their order open."""
    return rows if plan.is_ordered else sorted(rows, key=row_text)


def row_text(value: Any) -> str:
    """Rows as a text; of two zeros, an aggregate may show either."""
    return json.dumps(value).replace("-0.0", "0.0")


def planned(graph: ModelGraph, view: View, text: str) -> tuple[CachedPlan, list[Row]]:
    """How a read of whole types was planned, and its rows, which are those of the model."""
    plan = plan_of(graph, text)
    planner = Planner()
    reading = reading_of(view, plan)
    rows = planned_rows(plan, reading, planner)
    assert row_text(rows) == row_text(model_rows(graph, plan)), text
    return planner.get_plan(plan, view.catalog), rows
