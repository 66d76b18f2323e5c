"""Running a read plan the cheapest way: factorized on whole types, or else enumerated."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.errors import ExecutionError
from omnigraph.execution.batch import (
    Batch,
    concatenate_batches,
    count_row_bytes,
    multiply_weights,
    slice_batch,
    sum_weights,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.checked_ints import CountOverflowError, IntOverflowError, Weights
from omnigraph.execution.operators.enumerate_operator import EnumerationPlan, Enumerator
from omnigraph.execution.operators.factorize_operator import Factorizer
from omnigraph.execution.operators.group_operator import GroupAggregator, GroupedRows
from omnigraph.execution.operators.page_operator import Pager
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.operators.profiler import NULL_PROFILER, Profiler
from omnigraph.execution.operators.result_executor import finish_rows, run_steps
from omnigraph.execution.operators.stage_operator import (
    CarriedRows,
    carry_rows,
    combine_rows,
    start_rows,
)
from omnigraph.execution.optimizer.explain_plan import (
    Explained,
    ExplainedRow,
    PlanExplainer,
    run_operators,
)
from omnigraph.execution.optimizer.graph_statistics import Statistics
from omnigraph.execution.optimizer.physical_plan import (
    AnalyzedPlan,
    OrderedPattern,
    PhysicalPlan,
    analyze_plan,
    build_physical_plan,
    is_factorizable,
    is_outdated,
    reorder_pattern,
)
from omnigraph.execution.result import Result
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.lru_cache import LruCache
from omnigraph.query.limit_binding import NO_LIMIT, LimitBinding, bind_limit, read_limit
from omnigraph.query.logical_plan import Filter, Limit, ReadPlan, Sort, StageRows
from omnigraph.query.query_explain import format_expression
from omnigraph.rows.evaluator import Params
from omnigraph.schema.catalog import Catalog

# A plan holds a few kilobytes.
PLANS_MAX: Final = 1_000
# A start with this many times more nodes than expected makes another order worth trying.
SKEW: Final = 16
_STARTS_FEW: Final = 64
# Rows are repeated by their positions, which are 64-bit integers.
_POSITION_BYTES: Final = 8


@dataclass(slots=True)
class CachedPlan:
    """A plan with what was chosen for it; a later choice takes the place of an earlier one."""

    query: AnalyzedPlan
    is_factorizable: bool
    physical: PhysicalPlan | None = None
    ordered_pattern: OrderedPattern | None = None


class Planner:
    """The plans that ran lately, with their orders; safe to share between threads."""

    def __init__(self, plans_max: int = PLANS_MAX) -> None:
        # By identity: to compare plans by value takes longer than a small query.
        self._known = LruCache[int, CachedPlan](plans_max)
        self._bound = LruCache[tuple[int, LimitBinding], tuple[ReadPlan, ReadPlan]](plans_max)

    def get_plan(self, plan: ReadPlan, catalog: Catalog) -> CachedPlan:
        """A plan as it runs; analyzed once, and cached."""
        known = self._known.peek(id(plan))
        if known is not None and known.query.plan is plan:
            return known
        query = analyze_plan(plan, catalog)
        return self._known.put(id(plan), CachedPlan(query, is_factorizable(query)))

    def bind_limit(self, plan: ReadPlan, params: Params | None) -> ReadPlan:
        """A plan with the number of rows of a request, or without any limit.

        It is the same one every time, as its analysis is cached by identity.
        """
        if plan.open_limit is None:
            return plan
        binding = NO_LIMIT if params is None else read_limit(plan.open_limit, params)
        key = (id(plan), binding)
        known = self._bound.get(key)
        if known is None or known[0] is not plan:
            known = self._bound.put(key, (plan, bind_limit(plan, binding)))
        return known[1]

    def run(self, plan: ReadPlan, context: ExecutionContext, pager: Pager | None = None) -> Result:
        """The result of a plan, or the page of it that starts where the pager says."""
        planned = self.get_plan(plan, context.view.catalog)
        query = planned.query
        start, context = self._run_stage(query.stage, context)
        rows = self.compute_rows(planned, context, start)
        table = finish_rows(rows, query.steps, query.projection, context, pager=pager)
        return Result(plan.columns, table)

    def _run_stage(
        self, stage: StageRows | None, context: ExecutionContext
    ) -> tuple[Batch | None, ExecutionContext]:
        """The rows that a plan starts from, and where their values are read."""
        if stage is None:
            return None, context
        parts: list[CarriedRows] = []
        for each in stage.plans:
            plan = self.bind_limit(each, context.params)
            planned = self.get_plan(plan, context.view.catalog)
            query = planned.query
            start, inner = self._run_stage(query.stage, context)
            rows = run_steps(self.compute_rows(planned, inner, start), query.steps, inner)
            parts.append(carry_rows(rows, query.columns, stage, inner))
        return start_rows(combine_rows(parts, stage.operators, context), stage, context)

    def compute_rows(
        self, planned: CachedPlan, context: ExecutionContext, start: Batch | None = None
    ) -> Batch | GroupedRows:
        """What the steps after the pattern start from; groups, if they are found without rows."""
        rows = self._run_factorized(planned, context)
        if isinstance(rows, GroupedRows):
            return rows
        if rows is None:
            pattern = self._get_ordered_pattern(planned, context).pattern
            query = planned.query
            rows = run_pattern(pattern, context, start, limit=query.rows_max, needed=query.needed)
        return _rank_rows(planned.query, rows, context)

    def _run_factorized(
        self, planned: CachedPlan, context: ExecutionContext, watch: Profiler = NULL_PROFILER
    ) -> Batch | GroupedRows | None:
        """The rows or groups, if they can be found on whole types."""
        if not self._is_factorized(planned, context):
            return None
        try:
            return _FactorizedRun(planned, context, watch).compute_rows()
        except CountOverflowError as failure:
            raise ExecutionError(
                "the number of matches is beyond 64 bits", hint="match fewer variables"
            ) from failure
        except IntOverflowError:
            # Enumerated, the same values are added up exactly.
            return None

    def _is_factorized(self, planned: CachedPlan, context: ExecutionContext) -> bool:
        is_whole = isinstance(context.source, TopologySource)
        return planned.is_factorizable and is_whole and _are_guards_true(planned.query, context)

    def _get_ordered_pattern(
        self, planned: CachedPlan, context: ExecutionContext
    ) -> OrderedPattern:
        if planned.ordered_pattern is None:
            planned.ordered_pattern = reorder_pattern(planned.query, Statistics(context))
        return planned.ordered_pattern

    def explain(
        self,
        plan: ReadPlan,
        context: ExecutionContext,
        *,
        analyze: bool = True,
        pager: Pager | None = None,
    ) -> Explained:
        """How a plan runs; to analyze it, it is run."""
        run = self._explain_rows(plan, context, analyze=analyze)
        if run.rows is not None:
            run.watch.start()
            steps, projection = run.query.steps, run.query.projection
            finish_rows(run.rows, steps, projection, run.context, note=run.note, pager=pager)
        return Explained(
            (*reversed([*run.found, *run.explain_steps()]), *_explain_guards(run.query))
        )

    def _explain_stage(
        self, stage: StageRows, context: ExecutionContext, *, analyze: bool
    ) -> tuple[list[ExplainedRow], Batch | None, ExecutionContext]:
        """How the rows that a plan starts from are found, in the order in which they are."""
        found: list[ExplainedRow] = []
        parts: list[CarriedRows] = []
        for each in stage.plans:
            run = self._explain_rows(
                self.bind_limit(each, context.params), context, analyze=analyze
            )
            if run.rows is not None:
                run.watch.start()
                rows = run_steps(run.rows, run.query.steps, run.context, note=run.note)
                parts.append(carry_rows(rows, run.query.columns, stage, run.context))
                run.note(run.query.steps[-1], rows.num_rows)
            found += [*run.found, *run.explain_steps()]
        if not parts:
            return found, None, context
        return found, *start_rows(combine_rows(parts, stage.operators, context), stage, context)

    def _explain_rows(
        self, plan: ReadPlan, context: ExecutionContext, *, analyze: bool
    ) -> _ExplainedRun:
        """How the rows of a pattern are found, after those that it starts from."""
        planned = self.get_plan(plan, context.view.catalog)
        query, watch = planned.query, Profiler()
        found: list[ExplainedRow] = []
        start = None
        if query.stage is not None:
            found, start, context = self._explain_stage(query.stage, context, analyze=analyze)
        explaining = PlanExplainer(context, watch if analyze else None)
        rows = self._run_factorized(planned, context, watch) if analyze else None
        is_weighed = rows is not None if analyze else self._is_factorized(planned, context)
        if is_weighed:
            known = _FactorizedRun(planned, context).physical
            found += explaining.explain_factorized(known)
        else:
            ordered = self._get_ordered_pattern(planned, context)
            if analyze:
                rows = run_operators(ordered.pattern, context, watch, start)
            found += explaining.explain_matched(ordered.pattern, ordered.join_orders)
        if isinstance(rows, Batch) and query.rank is not None:
            watch.start()
            rows = _rank_rows(query, rows, context)
            watch.record(id(query.rank), rows.num_rows)
        return _ExplainedRun(query, context, explaining, watch, found, rows)


@dataclass(frozen=True, slots=True)
class _ExplainedRun:
    """How the pattern of a plan ran, and its rows if it did."""

    query: AnalyzedPlan
    context: ExecutionContext
    explaining: PlanExplainer
    watch: Profiler
    found: list[ExplainedRow]
    rows: Batch | GroupedRows | None

    def note(self, step: Hashable, rows: int) -> None:
        """Record a step after the pattern."""
        self.watch.record_step(step, rows)

    def explain_steps(self) -> Iterator[ExplainedRow]:
        """The operators after the pattern, of which the times are known by now."""
        rank = () if self.query.rank is None else (self.query.rank,)
        return self.explaining.explain_rest((*rank, *self.query.steps))


def _explain_guards(query: AnalyzedPlan) -> Iterator[ExplainedRow]:
    """What the policy hides of the types that are read."""
    read = {key.name for key in query.types}
    for each in query.plan.guards:
        if each.type_name in read:
            yield ExplainedRow("Policy", f"{each.type_name}: {format_expression(each.condition)}")


def _are_guards_true(query: AnalyzedPlan, context: ExecutionContext) -> bool:
    if not query.graph.guards:
        return True
    unit = Batch(1, outer=np.zeros(1, np.int64))
    conditions = [test.condition for test in query.graph.guards if isinstance(test, Filter)]
    is_simple = len(conditions) == len(query.graph.guards)
    return is_simple and bool(context.evaluate_mask(unit, conditions).all())


def _rank_rows(query: AnalyzedPlan, batch: Batch, context: ExecutionContext) -> Batch:
    if query.rank is None:
        return batch
    # A query without a search never needs what searches are made of.
    from omnigraph.execution.search import rank_rows  # noqa: PLC0415

    return rank_rows(query.rank, batch, context, limit=_find_rank_limit(query))


def _find_rank_limit(query: AnalyzedPlan) -> int | None:
    """How many of the best entities are enough; None if all of them are needed."""
    match query.steps:
        case (Sort(keys=(first, *_)), Limit(end=end), *_) if not query.plan.has_total:
            return end if query.rank is not None and first.value == query.rank.score else None
        case _:
            return None


class _FactorizedRun:
    """One run on whole types."""

    def __init__(
        self, planned: CachedPlan, context: ExecutionContext, watch: Profiler = NULL_PROFILER
    ) -> None:
        assert isinstance(context.source, TopologySource)
        self._planned = planned
        self._query = planned.query
        self._context = context
        self._watch = watch
        self._weighing = Factorizer(context, context.source, planned.query.block_trees)
        statistics = Statistics(context)
        known = planned.physical
        if known is None or is_outdated(known, statistics):
            known = planned.physical = build_physical_plan(planned.query, statistics)
        self.physical = known

    def compute_rows(self) -> Batch | GroupedRows:
        main, *others = self.physical.enumerations
        enumeration = self._make_enumerator(main)
        found = enumeration.iter_rows()
        for core in others:
            found = _multiply_rows(
                found, sum_weights(list(self._make_enumerator(core).iter_rows()))
            )
        wanted = self._query.aggregation
        rows = self._repeat_rows(found) if wanted is None else self._group_rows(found)
        if enumeration.starts > SKEW * max(self.physical.join_orders[0].starts, _STARTS_FEW):
            # These parameters find far more than those that the order was chosen for.
            self._planned.physical = None
        return rows

    def _make_enumerator(self, core: EnumerationPlan) -> Enumerator:
        return Enumerator(core, self._weighing, self._context, self._watch)

    # ---- rows ----

    def _repeat_rows(self, found: Iterator[Batch]) -> Batch:
        """Every row as often as it is there."""
        limit = self._query.rows_max
        budget = self._context.budget
        batches: list[Batch] = []
        count = 0
        for rows in found:
            batch = Batch(rows.num_rows, rows.nodes, rows.edges)
            if rows.weights is not None and rows.weights.counts is not None:
                counts = rows.weights.counts.values
                repeated = int(counts.sum(dtype=np.float64))
                budget.require_memory(repeated * (count_row_bytes(batch) + _POSITION_BYTES))
                batch = batch.take(np.repeat(np.arange(batch.num_rows), counts))
            budget.allocate(batch.num_rows * count_row_bytes(batch))
            batches.append(batch)
            count += batch.num_rows
            if limit is not None and count >= limit:
                break
        batch = concatenate_batches(batches)
        return batch if limit is None or count <= limit else slice_batch(batch, 0, limit)

    # ---- groups ----

    def _group_rows(self, found: Iterator[Batch]) -> GroupedRows:
        wanted = self._query.aggregation
        assert wanted is not None
        later = self.physical.deferred
        grouping = GroupAggregator(wanted, later.variables, self._context)
        parts = [next(found)]
        for rows in found:
            if len(parts) == 1:
                parts[0] = grouping.compress(parts[0])
            parts.append(grouping.compress(rows))
        is_unique = self.physical.join_orders[0].is_identified_by(wanted.identified)
        groups = grouping.group_rows(concatenate_batches(parts), is_unique=is_unique)
        nodes = dict(groups.first_rows.nodes)
        for link in later.links:
            adjacency = self._weighing.get_adjacency(link.step)
            nodes[link.target] = adjacency.get_only_neighbours(nodes[link.source])
        return GroupedRows(groups.columns, Batch(groups.num_rows, nodes), groups.aggregates)


def _multiply_rows(found: Iterator[Batch], factor: Weights) -> Iterator[Batch]:
    """Rows with a component that no traversal connects with them."""
    for rows in found:
        yield multiply_weights(rows, factor.take(np.zeros(rows.num_rows, np.int64)))
