"""Where a read gets its nodes and edges from: memory, look-ups through indexes, or one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.optimizer.graph_statistics import Statistics
from omnigraph.execution.optimizer.join_order import choose_join_order
from omnigraph.execution.optimizer.physical_plan import AnalyzedPlan, analyze_plan
from omnigraph.execution.optimizer.plan_split import iter_operators
from omnigraph.execution.query_budget import Access, Budget
from omnigraph.execution.sources.graph_source import Source
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.table_source import TableSource
from omnigraph.query.limit_binding import NO_LIMIT, bind_limit
from omnigraph.query.logical_plan import Expand, Limit, Operator, PathExpand, Scan, StageRows, Unit
from omnigraph.query.tree_walk import chain_of, link_chain
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey

# A read that touches so few rows is over before a large type is in memory.
LOOKUP_ROWS_MAX: Final = 10_000

# So many hops reach most of a graph.
_HOPS_ESTIMATED: Final = 10

# To load a type takes about so long for each row: 2.4 million edges took a second.
LOAD_ROW_SECONDS: Final = 4e-7


class WarmupPolicy:
    """When to load types: as soon as reads without them took as long as loading them would."""

    def __init__(self, sources: SourceCache) -> None:
        self._sources = sources
        # By the path of a table: a type that was worth it stays so in later versions.
        self._spent: dict[str, float] = defaultdict(float)

    def list_cold_types(self, view: View, types: Iterable[TypeKey]) -> list[TypeKey]:
        """The types that are neither small nor in memory."""
        return [each for each in types if not self._sources.is_type_ready(view, each)]

    def should_load(self, view: View, unready: Iterable[TypeKey]) -> bool:
        """Whether it is time to load types."""
        pins = [view.snapshot.pins[str(each)] for each in unready]
        spent = max((self._spent[pin.path] for pin in pins), default=0.0)
        return spent >= sum(pin.rows for pin in pins) * LOAD_ROW_SECONDS

    def record_read(self, view: View, types: Iterable[TypeKey], seconds: float) -> None:
        """Remember how long a read took that did without these types in memory."""
        for each in types:
            # Two threads may lose a sum to each other: it only takes a little longer then.
            self._spent[view.snapshot.pins[str(each)].path] += seconds


class AccessPathChooser:
    """Chooses the source of each read of one graph; safe to share between threads."""

    def __init__(self, sources: SourceCache) -> None:
        self._sources = sources
        self.warmup = WarmupPolicy(sources)

    def choose_source(
        self, query: AnalyzedPlan, view: View, params: Params, *, access: Access, budget: Budget
    ) -> Source:
        """The source that suits a plan, or the one that a request asks for."""
        if access is not Access.AUTO:
            return self._sources.get_source(view, access, budget=budget)
        unready = self.warmup.list_cold_types(view, query.types)
        if not unready or query.has_tables or self.warmup.should_load(view, unready):
            return self._sources.get_topology(view)
        if query.scan is not None:
            return TableSource(view, query.scan, budget, rows_max=query.rows_max)
        lookups = self._sources.get_source(view, Access.LOOKUPS, budget=budget)
        if estimate_rows(query, ExecutionContext(view, lookups, params, budget)) <= LOOKUP_ROWS_MAX:
            return lookups
        return self._sources.get_topology(view)


def estimate_rows(query: AnalyzedPlan, context: ExecutionContext) -> float:
    """How many rows a plan touches, by the statistics of its source."""
    graph, statistics = query.graph, Statistics(context)
    if query.stage is not None:
        return _estimate_staged_rows(query, query.stage, context)
    touched = 0.0
    for component in query.components:
        choice = choose_join_order(graph, statistics, needed=(), among=component, is_hanging=False)
        touched += max(choice.rows)
    # What is scanned in lateral blocks, or after them, is not part of a component.
    later = [each for one in query.laterals for each in iter_operators(_with_leaf(one))]
    types = (each.type_name for each in later if isinstance(each, Scan))
    # What a path passes is not known: it may be every edge.
    walked = {
        name for each in later if isinstance(each, PathExpand) for name in each.type.edge_types
    }
    edges = sum(context.source.get_edges(name).count for name in walked)
    return touched + edges + sum(map(statistics.count_nodes, types))


def _with_leaf(operator: Operator) -> Operator:
    """An operator without those below it."""
    return link_chain((Unit(), operator))


def _estimate_staged_rows(
    query: AnalyzedPlan, stage: StageRows, context: ExecutionContext
) -> float:
    """Those of all stages, and what the rows of the last one are extended to."""
    touched = rows = 0.0
    for each in stage.plans:
        plan = each if each.open_limit is None else bind_limit(each, NO_LIMIT)
        before = analyze_plan(plan, context.view.catalog)
        found = estimate_rows(before, context)
        limits = [step.end for step in before.steps if isinstance(step, Limit)]
        touched += found
        rows += min([found, *(end for end in limits if end is not None)])
    most = rows
    for operator in chain_of(query.pattern)[1:]:
        match operator:
            case Expand(target_is_bound=False):
                rows *= _estimate_fan_out(operator, context)
            case Scan(type_name=name):
                rows *= context.source.get_nodes(name).count
            case _:
                pass
        most = max(most, rows)
    return touched + most


def _estimate_fan_out(expand: Expand, context: ExecutionContext) -> float:
    """How many nodes a traversal leads to from one, on average."""
    nodes = max(context.source.get_nodes(expand.source_type).count, 1)
    edges = sum(context.source.get_edges(step.edge_type).count for step in expand.steps)
    hops = min(expand.maximum, _HOPS_ESTIMATED)
    return sum((edges / nodes) ** hop for hop in range(1, hops + 1))
