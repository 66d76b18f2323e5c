"""Running read plans: the plan, its access path, and what a request may use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.embedding.embedder import TimeLimitedEmbedder
from omnigraph.errors import EmbeddingError
from omnigraph.execution.admission import ReadTurns
from omnigraph.execution.execution_context import Embedder, ExecutionContext
from omnigraph.execution.optimizer.access_path import AccessPathChooser
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.optimizer.physical_plan import AnalyzedPlan
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import DEFAULT_OPTIONS, Access, Budget, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.table_source import TableSource
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.execution.sources.type_set_source import TypeSetSource
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.typed_tree import NOW_NAME
from omnigraph.rows.evaluator import Params, RequestParams, evaluate_constant
from omnigraph.rows.text_predicates import require_valid_options
from omnigraph.rows.view import View


class QueryExecutor:
    """What the reads of one graph share; safe to share between threads."""

    def __init__(self, sources: SourceCache, *, embed: Embedder | None = None) -> None:
        self.sources = sources
        self.planner = Planner()
        self._paths = AccessPathChooser(sources)
        self._embed = embed
        self.turns = ReadTurns()

    def run(
        self,
        plan: ReadPlan,
        view: View,
        params: Params,
        *,
        now: int,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Result:
        """The result of a plan, or a page of it; `now` is the millisecond of the request."""
        plan = self.planner.bind_limit(plan, params)
        query = self.planner.get_plan(plan, view.catalog).query
        started = time.monotonic()
        context = self._prepare_context(query, view, {**params, NOW_NAME: now}, options)
        found = self.planner.run(query.plan, context, options.pager)
        source = context.source
        source = source.base if isinstance(source, TypeSetSource) else source
        if options.access is Access.AUTO and not isinstance(source, TopologySource):
            self._paths.warmup.record_read(view, query.types, time.monotonic() - started)
        return found

    def is_search(self, plan: ReadPlan, view: View) -> bool:
        """Whether a plan ranks or matches texts, and may wait for a model that makes vectors."""
        query = self.planner.get_plan(self.planner.bind_limit(plan, None), view.catalog).query
        return query.is_ranked or bool(query.text_matches)

    def explain(
        self,
        plan: ReadPlan,
        view: View,
        params: Params,
        *,
        now: int,
        options: ReadOptions = DEFAULT_OPTIONS,
        analyze: bool = True,
    ) -> Explained:
        """How a plan runs; to analyze it, it is run."""
        plan = self.planner.bind_limit(plan, params)
        query = self.planner.get_plan(plan, view.catalog).query
        params = {**params, NOW_NAME: now}
        context = self._prepare_context(query, view, params, options)
        if isinstance(context.source, TableSource):
            # Look-ups in one type are a scan of it.
            options = replace(options, access=Access.LOOKUPS, budget=context.budget)
            context = self._prepare_context(query, view, params, options)
        return self.planner.explain(plan, context, analyze=analyze, pager=options.pager)

    def _prepare_context(
        self, query: AnalyzedPlan, view: View, params: Params, options: ReadOptions
    ) -> ExecutionContext:
        """What the operators of a read are given, with its source."""
        budget = options.budget or Budget()
        params = RequestParams(params, budget.check_interrupts, budget.require_memory)
        if query.text_matches:
            require_valid_options(query.text_matches, lambda expr: evaluate_constant(expr, params))
        budget.check_interrupts()
        source = self._paths.choose_source(
            query, view, params, access=options.access, budget=budget
        )
        if query.has_type_sets:
            source = TypeSetSource(source, view.catalog)
        embed = None if self._embed is None else TimedEmbedder(self._embed, budget)
        variables = query.variables
        return ExecutionContext(
            view,
            source,
            params,
            budget,
            embed,
            variables.nodes,
            variables.edges,
            variables.nullable,
        )


@dataclass(frozen=True, slots=True)
class TimedEmbedder:
    """An embedder bounded by a query; in all else it is the one that it wraps."""

    inner: Callable[[str, int], Sequence[float]]
    budget: Budget

    def __call__(self, text: str, dimension: int) -> Sequence[float]:
        """The vector of a text; a query whose time is over meanwhile gets none."""
        self.budget.check_interrupts()
        embed, seconds = self.inner, self.budget.time_left
        if seconds is not None and isinstance(embed, TimeLimitedEmbedder):
            embed = embed.with_timeout(seconds)
        try:
            found = embed(text, dimension)
        except EmbeddingError:
            # An embedder that stops because the time of the query is over did not fail.
            self.budget.check_interrupts()
            raise
        self.budget.check_interrupts()
        return found

    def __getattr__(self, name: str) -> Any:  # Any: an attribute of the embedder, such as its model
        return getattr(self.inner, name)
