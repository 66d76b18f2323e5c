"""Running a read plan the cheapest way: weighed on whole types, or else matched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np

from omnigraph.errors import ExecutionError
from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern import run_pattern
from omnigraph.execution.pattern.rows import concatenated, row_bytes, sliced
from omnigraph.execution.planner.amounts import AmountTooLarge, CountTooLarge, Weights
from omnigraph.execution.planner.core import Core, Enumeration
from omnigraph.execution.planner.explain import Explained, Explaining, run_operators
from omnigraph.execution.planner.grouping import Grouping
from omnigraph.execution.planner.physical import (
    Logical,
    Ordered,
    Physical,
    is_outdated,
    is_weighable,
    logical,
    physical,
    reordered,
)
from omnigraph.execution.planner.projection import ROWS_MAX
from omnigraph.execution.planner.rows import Rows, joined, total
from omnigraph.execution.planner.statistics import Statistics
from omnigraph.execution.planner.watch import NOBODY, Watch
from omnigraph.execution.planner.weights import Weighing
from omnigraph.execution.reading import Reading
from omnigraph.execution.result import Result
from omnigraph.execution.tail import Grouped, finish_rows
from omnigraph.execution.topology import TopologySource
from omnigraph.query.plan import Filter, Limit, ReadPlan, Sort

# A plan holds a few kilobytes.
PLANS_MAX: Final = 1_000
# A start with this many times more nodes than expected makes another order worth trying.
SKEW: Final = 16
_STARTS_FEW: Final = 64


@dataclass(slots=True)
class Planned:
    """A plan with what was chosen for it; a later choice takes the place of an earlier one."""

    query: Logical
    is_weighable: bool
    physical: Physical | None = None
    ordered: Ordered | None = None


class Planner:
    """The plans that ran lately, with their orders; safe to share between threads."""

    def __init__(self, plans_max: int = PLANS_MAX) -> None:
        self._plans_max = plans_max
        self._lock = Lock()
        # By identity: to compare plans by value takes longer than a small query.
        self._known: OrderedDict[int, Planned] = OrderedDict()

    def planned(self, plan: ReadPlan, reading: Reading) -> Planned:
        """A plan as it runs; looked at once, and kept."""
        known = self._known.get(id(plan))
        if known is not None and known.query.plan is plan:
            return known
        query = logical(plan, reading.view.catalog)
        made = Planned(query, is_weighable(query))
        with self._lock:
            self._known[id(plan)] = made
            while len(self._known) > self._plans_max:
                self._known.popitem(last=False)
        return made

    def run(self, plan: ReadPlan, reading: Reading) -> Result:
        """The result of a plan."""
        planned = self.planned(plan, reading)
        query = planned.query
        rows = self.rows(planned, reading)
        shown = query.projection
        if (
            shown is not None
            and isinstance(rows, Batch)
            and rows.num_rows <= ROWS_MAX
            and isinstance(reading.source, TopologySource)
        ):
            return Result(plan.columns, shown.table(rows, reading))
        return finish_rows(plan, rows, query.steps, reading)

    def rows(self, planned: Planned, reading: Reading) -> Batch | Grouped:
        """What the steps after the pattern start from; groups, if they are found without rows."""
        rows = self._weighed(planned, reading)
        if isinstance(rows, Grouped):
            return rows
        if rows is None:
            pattern = self._ordered(planned, reading).pattern
            query = planned.query
            rows = run_pattern(pattern, reading, limit=query.rows_max, needed=query.needed)
        return _ranked(planned.query, rows, reading)

    def _weighed(
        self, planned: Planned, reading: Reading, watch: Watch = NOBODY
    ) -> Batch | Grouped | None:
        """The rows or groups, if they can be found on whole types."""
        if not self._is_weighed(planned, reading):
            return None
        try:
            return _Weighed(planned, reading, watch).rows()
        except CountTooLarge as failure:
            raise ExecutionError(
                "the number of matches is beyond 64 bits", hint="match fewer variables"
            ) from failure
        except AmountTooLarge:
            # Enumerated, the same values are added up exactly.
            return None

    def _is_weighed(self, planned: Planned, reading: Reading) -> bool:
        is_whole = isinstance(reading.source, TopologySource)
        return planned.is_weighable and is_whole and _passes_guards(planned.query, reading)

    def _ordered(self, planned: Planned, reading: Reading) -> Ordered:
        if planned.ordered is None:
            planned.ordered = reordered(planned.query, Statistics(reading))
        return planned.ordered

    def explain(self, plan: ReadPlan, reading: Reading, *, analyze: bool = True) -> Explained:
        """How a plan runs; to analyze it, it is run."""
        planned = self.planned(plan, reading)
        query, watch = planned.query, Watch()
        explaining = Explaining(reading, watch if analyze else None)
        rows = self._weighed(planned, reading, watch) if analyze else None
        is_weighed = rows is not None if analyze else self._is_weighed(planned, reading)
        if is_weighed:
            known = _Weighed(planned, reading).physical
            found = list(explaining.weighed(known))
        else:
            ordered = self._ordered(planned, reading)
            rows = run_operators(ordered.pattern, reading, watch) if analyze else None
            found = list(explaining.matched(ordered.pattern, ordered.choices))
        if isinstance(rows, Batch) and query.rank is not None:
            watch.start()
            rows = _ranked(query, rows, reading)
            watch.note(id(query.rank), rows.num_rows)
        if rows is not None:
            watch.start()
            finish_rows(plan, rows, query.steps, reading, note=watch.note_step)
        above = query.steps if query.rank is None else (query.rank, *query.steps)
        return Explained(tuple(reversed([*found, *explaining.rest(above)])))


def _passes_guards(query: Logical, reading: Reading) -> bool:
    if not query.graph.guards:
        return True
    unit = Batch(1, outer=np.zeros(1, np.int64))
    conditions = [test.condition for test in query.graph.guards if isinstance(test, Filter)]
    is_simple = len(conditions) == len(query.graph.guards)
    return is_simple and bool(reading.mask(unit, conditions).all())


def _ranked(query: Logical, batch: Batch, reading: Reading) -> Batch:
    if query.rank is None:
        return batch
    # A query without a search never needs what searches are made of.
    from omnigraph.execution.search import rank  # noqa: PLC0415

    return rank(query.rank, batch, reading, limit=_best(query))


def _best(query: Logical) -> int | None:
    """How many of the best entities are enough; None if all of them are needed."""
    match query.steps:
        case (Sort(keys=(first, *_)), Limit(count=count), *_):
            return count if query.rank is not None and first.value == query.rank.score else None
        case _:
            return None


class _Weighed:
    """One run on whole types."""

    def __init__(self, planned: Planned, reading: Reading, watch: Watch = NOBODY) -> None:
        assert isinstance(reading.source, TopologySource)
        self._planned = planned
        self._query = planned.query
        self._reading = reading
        self._watch = watch
        self._weighing = Weighing(reading, reading.source, planned.query.block_trees)
        statistics = Statistics(reading)
        known = planned.physical
        if known is None or is_outdated(known, statistics):
            known = planned.physical = physical(planned.query, statistics)
        self.physical = known

    def rows(self) -> Batch | Grouped:
        main, *others = self.physical.cores
        enumeration = self._enumeration(main)
        found = enumeration.rows()
        for core in others:
            found = _multiplied(found, total(list(self._enumeration(core).rows())))
        wanted = self._query.aggregation
        rows = self._repeated(found) if wanted is None else self._grouped(found)
        if enumeration.starts > SKEW * max(self.physical.choices[0].starts, _STARTS_FEW):
            # These parameters find far more than those that the order was chosen for.
            self._planned.physical = None
        return rows

    def _enumeration(self, core: Core) -> Enumeration:
        return Enumeration(core, self._weighing, self._reading, self._watch)

    # ---- rows ----

    def _repeated(self, found: Iterator[Rows]) -> Batch:
        """Every row as often as it is there."""
        limit = self._query.rows_max
        budget = self._reading.budget
        batches: list[Batch] = []
        count = 0
        for rows in found:
            batch = rows.batch
            if rows.weights.counts is not None:
                counts = rows.weights.counts.values
                budget.require(int(counts.sum(dtype=np.float64)) * max(row_bytes(batch), 1))
                batch = batch.take(np.repeat(np.arange(batch.num_rows), counts))
            budget.hold(batch.num_rows * row_bytes(batch))
            batches.append(batch)
            count += batch.num_rows
            if limit is not None and count >= limit:
                break
        batch = concatenated(batches)
        return batch if limit is None or count <= limit else sliced(batch, 0, limit)

    # ---- groups ----

    def _grouped(self, found: Iterator[Rows]) -> Grouped:
        wanted = self._query.aggregation
        assert wanted is not None
        later = self.physical.deferred
        grouping = Grouping(wanted, later.variables, self._reading)
        parts = [next(found)]
        for rows in found:
            if len(parts) == 1:
                parts[0] = grouping.compressed(parts[0])
            parts.append(grouping.compressed(rows))
        is_unique = self.physical.choices[0].is_told_by(wanted.identified)
        groups = grouping.grouped(joined(parts), is_unique=is_unique)
        nodes = dict(groups.firsts.nodes)
        for link in later.links:
            adjacency = self._weighing.adjacency(link.step)
            nodes[link.target] = adjacency.only_ends(nodes[link.source])
        return Grouped(groups.columns, Batch(groups.num_rows, nodes), groups.aggregates)


def _multiplied(found: Iterator[Rows], factor: Weights) -> Iterator[Rows]:
    """Rows with a component that no traversal connects with them."""
    for rows in found:
        yield rows.weighted(factor.take(np.zeros(rows.count, np.int64)))
