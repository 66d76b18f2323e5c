"""Running read plans: where to read from, what a read may use, and the plan itself."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from omnigraph.embedding.embedder import TimeLimitedEmbedder
from omnigraph.errors import EmbeddingError
from omnigraph.execution.admission import AdmissionSlot, PlanTiming
from omnigraph.execution.execution_context import Embedder, ExecutionContext
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import DEFAULT_OPTIONS, Access, Budget, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.sources.access_path import (
    LOOKUP_ROWS_MAX,
    WarmupPolicy,
    estimate_rows,
    find_single_scan,
    types_of,
)
from omnigraph.execution.sources.graph_source import Source
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.table_source import NO_SOURCE, run_scan
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.logical_plan import CompareBlock, Exists, Operator, Rank, ReadPlan, Scan
from omnigraph.query.tree_walk import chain_of, expressions_of, iter_subexpressions
from omnigraph.query.typed_tree import NOW_NAME, Expr, TextMatch
from omnigraph.rows.evaluator import Params, RequestParams, evaluate_constant
from omnigraph.rows.text_predicates import require_valid_options
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey

# Of a plan that ran lately, what it reads is known: a few hundred bytes.
PLANS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class _PlanRequirements:
    """What a plan reads, whatever the snapshot."""

    plan: ReadPlan
    scan: Scan | None
    types: frozenset[TypeKey]
    nodes_of: Mapping[str, str]
    edges_of: Mapping[str, tuple[str, ...]]
    text_matches: tuple[TextMatch, ...]
    # None for searches, which may wait for a model that makes vectors.
    timing: PlanTiming | None


class QueryExecutor:
    """What the reads of one graph share; safe to share between threads."""

    def __init__(self, sources: SourceCache, *, embed: Embedder | None = None) -> None:
        self.sources = sources
        self.planner = Planner()
        self._patience = WarmupPolicy(sources)
        self._embed = embed
        self._lock = Lock()
        self._short = Lock()
        # By identity: to compare plans by value takes longer than a small query.
        self._known: OrderedDict[int, _PlanRequirements] = OrderedDict()

    def run(
        self,
        plan: ReadPlan,
        view: View,
        params: Params,
        *,
        now: int,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Result:
        """The result of a plan; `now` is the millisecond of the request."""
        pace = self._get_requirements(plan, view).timing
        if pace is None:
            return self._execute(plan, view, params, now=now, options=options)
        with AdmissionSlot(self._short, pace):
            return self._execute(plan, view, params, now=now, options=options)

    def _execute(
        self, plan: ReadPlan, view: View, params: Params, *, now: int, options: ReadOptions
    ) -> Result:
        started = time.monotonic()
        needs, reading = self._prepare_context(plan, view, {**params, NOW_NAME: now}, options)
        if reading.source is NO_SOURCE:
            assert needs.scan is not None
            found = run_scan(plan, needs.scan, reading)
        else:
            found = self.planner.run(plan, reading)
        if options.access is Access.AUTO and not isinstance(reading.source, TopologySource):
            self._patience.record_read(view, needs.types, time.monotonic() - started)
        return found

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
        _, reading = self._prepare_context(plan, view, {**params, NOW_NAME: now}, options)
        if reading.source is NO_SOURCE:
            # Look-ups in one type are a scan of it.
            source = self.sources.get_source(view, Access.LOOKUPS, budget=reading.budget)
            reading = replace(reading, source=source)
        return self.planner.explain(plan, reading, analyze=analyze)

    def _prepare_context(
        self, plan: ReadPlan, view: View, params: Params, options: ReadOptions
    ) -> tuple[_PlanRequirements, ExecutionContext]:
        """A read with its source; there is none where a table is scanned."""
        budget = options.budget or Budget()
        params = RequestParams(params, budget.check_interrupts)
        needs = self._get_requirements(plan, view)
        if needs.text_matches:
            require_valid_options(needs.text_matches, lambda expr: evaluate_constant(expr, params))
        budget.check_interrupts()

        embed = None if self._embed is None else TimedEmbedder(self._embed, budget)

        def reading(source: Source) -> ExecutionContext:
            return ExecutionContext(
                view, source, params, budget, embed, needs.nodes_of, needs.edges_of
            )

        if options.access is not Access.AUTO:
            return needs, reading(self.sources.get_source(view, options.access, budget=budget))
        unready = self._patience.list_cold_types(view, needs.types)
        if not unready or self._patience.should_load(view, unready):
            return needs, reading(self.sources.get_source(view, Access.TOPOLOGY))
        if needs.scan is not None:
            return needs, reading(NO_SOURCE)
        lookups = reading(self.sources.get_source(view, Access.LOOKUPS, budget=budget))
        if estimate_rows(plan.root, lookups) <= LOOKUP_ROWS_MAX:
            return needs, lookups
        return needs, reading(self.sources.get_source(view, Access.TOPOLOGY))

    def _get_requirements(self, plan: ReadPlan, view: View) -> _PlanRequirements:
        known = self._known.get(id(plan))
        if known is not None and known.plan is plan:
            return known
        about = ExecutionContext(view, NO_SOURCE, {}, Budget()).with_variables(plan.root)
        matches = tuple(
            each for each in _iter_expressions(plan.root) if isinstance(each, TextMatch)
        )
        is_search = bool(matches) or any(isinstance(each, Rank) for each in chain_of(plan.root))
        made = _PlanRequirements(
            plan,
            find_single_scan(plan.root),
            types_of(plan.root),
            about.nodes_of,
            about.edges_of,
            matches,
            None if is_search else PlanTiming(),
        )
        with self._lock:
            self._known[id(plan)] = made
            while len(self._known) > PLANS_MAX:
                self._known.popitem(last=False)
        return made


def _iter_expressions(root: Operator) -> Iterator[Expr]:
    """Every expression of a plan and its blocks, and everything inside."""
    for operator in chain_of(root):
        for expr in expressions_of(operator):
            yield from iter_subexpressions(expr)
        if isinstance(operator, Exists | CompareBlock):
            yield from _iter_expressions(operator.block)


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
            # Whoever gave up because the time of the query was over has no problem of its own.
            self.budget.check_interrupts()
            raise
        self.budget.check_interrupts()
        return found

    def __getattr__(self, name: str) -> Any:  # whatever the wrapped one has, such as its model
        return getattr(self.inner, name)
