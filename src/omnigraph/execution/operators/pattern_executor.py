"""Running a chain of operators: from a leaf through steps, a morsel at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    collect_batches,
    count_row_bytes,
    slice_batch,
    without_repetitions,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.expand_operator import (
    CloseEdgesOperator,
    CloseOperator,
    ExpandOperator,
    IntersectOperator,
)
from omnigraph.execution.operators.filter_operator import FilterOperator, PhysicalOperator
from omnigraph.execution.operators.join_keys import Equality, equality_of
from omnigraph.execution.operators.lateral_operator import (
    BoundRowsOperator,
    LateralOperator,
    list_open_ends,
)
from omnigraph.execution.operators.path_operator import PathOperator
from omnigraph.execution.operators.scan_operator import (
    HashJoinOperator,
    LookupOperator,
    ScanOperator,
)
from omnigraph.execution.operators.semi_join_operator import (
    BlockRows,
    BlockRunner,
    CompareBlockOperator,
    SemiJoinOperator,
)
from omnigraph.execution.operators.table_operator import TableFunctionOperator
from omnigraph.execution.operators.value_operators import (
    BlockValueOperator,
    ExtendOperator,
    UnnestOperator,
)
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query import logical_plan as plans
from omnigraph.query.tree_walk import STAGES, bound_variables_of, chain_of, used_variables_of
from omnigraph.query.typed_tree import Expr

# Rows that a step makes at once: with fewer, steps cost more than rows; more leave the caches.
MORSEL_ROWS = 1_000_000

# Of a query that may be stopped, so that it is checked often enough whether it is.
STOPPABLE_ROWS = 2**17

# To find the first rows, morsels start small, and grow by this factor.
_FIRST_MORSEL_ROWS = 1_024
_MORSEL_GROWTH = 4

# From so many rows on it pays to leave out repetitions.
_REPETITIONS_MIN = 1_000


def run_pattern(
    operator: plans.Operator,
    context: ExecutionContext,
    outer: Batch | None = None,
    *,
    limit: int | None = None,
    needed: KeptVariables = None,
) -> Batch:
    """The rows of a chain of operators; with a limit, any so many of them.

    `outer` are the rows around a block, or those of a stage. `needed` names the variables that are
    read afterwards; None keeps all of them.
    """
    batches = stream_pattern(operator, context, outer, limit=limit, needed=needed)
    return collect_batches(batches, context.budget, limit=limit)


def stream_pattern(
    operator: plans.Operator,
    context: ExecutionContext,
    outer: Batch | None = None,
    *,
    limit: int | None = None,
    needed: KeptVariables = None,
) -> Iterator[Batch]:
    """The same rows some at a time, and at least one batch; more may come than a limit says."""
    leaf, *operators = chain_of(operator)
    start = Batch(1)
    if not isinstance(leaf, plans.Unit):
        assert outer is not None, "a block needs the rows around it, and a stage those before"
        start = outer
    ranks = [place for place, each in enumerate(operators) if isinstance(each, plans.Rank)]
    if ranks:
        above = operators[ranks[-1] :]
        start = _rank_rows(above, context, outer, needed)
        operators = above[1:]
    is_first = isinstance(leaf, plans.Unit) and not ranks
    steps = build_operators(operators, _ChainRunner(context), needed=needed, is_first=is_first)
    yield from OperatorPipeline(context, steps, limit).iter_batches(0, start)


def _rank_rows(
    above: Sequence[plans.Operator],
    context: ExecutionContext,
    outer: Batch | None,
    needed: KeptVariables,
) -> Batch:
    """The rows of a rank, which is the first of some operators."""
    rank = above[0]
    assert isinstance(rank, plans.Rank)
    if needed is not None:
        needed = needed.union(*map(used_variables_of, above))
    # Imported when it is needed: most queries do not search.
    from omnigraph.execution import search  # noqa: PLC0415

    rows = run_pattern(rank.input, context, outer, needed=needed)
    return search.rank_rows(rank, rows, context)


@dataclass(frozen=True, slots=True)
class _ChainRunner:
    """Runs the chains of operators inside others."""

    context: ExecutionContext

    def compile_block(
        self, operators: Sequence[plans.Operator], *, needed: frozenset[str], is_set: bool = False
    ) -> BlockRows:
        """The rows of a block's operators; of a set, repetitions may be left out."""
        steps = build_operators(operators, self, needed=needed, is_first=False, is_block=True)
        return partial(
            OperatorPipeline(self.context, steps, is_set=is_set).iter_batches,
            0,
        )

    def run_component(self, operators: Sequence[plans.Operator], needed: KeptVariables) -> Batch:
        """The rows of operators that start with a scan."""
        steps = build_operators(operators, self, needed=needed, is_first=True)
        return collect_batches(
            OperatorPipeline(self.context, steps).iter_batches(0, Batch(1)),
            self.context.budget,
        )


class _SplitBatch(NamedTuple):
    """Rows that a step gets in pieces, what is left of the pieces, and what the rows take."""

    number: int
    batch: Batch
    pieces: Iterator[tuple[int, int]]
    nbytes: int


class OperatorPipeline:
    """Rows through steps; a step that would make too many at once gets its rows in pieces."""

    def __init__(
        self,
        context: ExecutionContext,
        steps: Sequence[PhysicalOperator],
        limit: int | None = None,
        *,
        is_set: bool = False,
    ) -> None:
        self._budget = context.budget
        self._steps = steps
        self._is_set = is_set
        self._sizer = _MorselSizer(limit, is_stoppable=context.budget.may_be_stopped)

    def iter_batches(self, first: int, batch: Batch) -> Iterator[Batch]:
        """What rows become by the steps from one on."""
        # Rows that are cut, the innermost last: a stack, as a pattern may have very many steps.
        cut: list[_SplitBatch] = []
        budget = self._budget
        number: int | None = first
        try:
            while number is not None:
                budget.check_interrupts()
                if number == len(self._steps):
                    yield batch
                    number, batch = self._run_next_piece(cut)
                    continue
                step, pieces = self._steps[number], None
                if batch.num_rows > 1:
                    pieces = self._sizer.split_rows(step.estimate_fan_out(batch), batch.num_rows)
                if pieces is None:
                    batch = self._run_operator(number, batch)
                    number += 1
                else:
                    nbytes = batch.num_rows * count_row_bytes(batch)
                    budget.allocate(nbytes)
                    cut.append(_SplitBatch(number, batch, pieces, nbytes))
                    number, batch = self._run_next_piece(cut)
        finally:
            budget.release(sum(each.nbytes for each in cut))

    def _run_next_piece(self, cut: list[_SplitBatch]) -> tuple[int | None, Batch]:
        """The next piece of the innermost rows that have one, after its step."""
        while cut:
            last = cut[-1]
            for start, end in last.pieces:
                piece = self._run_operator(last.number, slice_batch(last.batch, start, end))
                return last.number + 1, piece
            self._budget.release(cut.pop().nbytes)
        return None, Batch(0)

    def _run_operator(self, number: int, batch: Batch) -> Batch:
        return self._without_repetitions(self._steps[number].run(batch))

    def _without_repetitions(self, batch: Batch) -> Batch:
        is_large = batch.num_rows >= _REPETITIONS_MIN
        return without_repetitions(batch) if self._is_set and is_large else batch


class _MorselSizer:
    """How many rows a step may make at once."""

    def __init__(self, limit: int | None, *, is_stoppable: bool) -> None:
        self._is_limited = limit is not None
        self._most = min(STOPPABLE_ROWS, MORSEL_ROWS) if is_stoppable else MORSEL_ROWS
        self._rows = self._most
        if limit is not None:
            self._rows = min(max(_MORSEL_GROWTH * limit, _FIRST_MORSEL_ROWS), self._most)

    def split_rows(self, fan_out: RowIndices | None, rows: int) -> Iterator[tuple[int, int]] | None:
        """Where to cut rows, from each place to the next; None if they need not be cut."""
        if fan_out is None:
            if not self._is_limited or rows <= self._rows:
                return None
            fan_out = np.ones(rows, np.int64)
        ends = np.cumsum(fan_out)
        return None if not rows or ends[-1] <= self._rows else self._cut_rows(ends)

    def _cut_rows(self, ends: RowIndices) -> Iterator[tuple[int, int]]:
        place = made = 0
        while place < len(ends):
            after = int(np.searchsorted(ends, made + self._rows, side="right"))
            after = max(after, place + 1)
            yield place, after
            place, made = after, int(ends[after - 1])
            # Only after a piece went through all steps, so that the first rows come soon.
            self._rows = min(self._rows * _MORSEL_GROWTH, self._most)


class PatternRunner(BlockRunner, Protocol):
    """Runs chains of operators, for the operators that have chains of their own."""

    def run_component(self, operators: Sequence[plans.Operator], needed: KeptVariables) -> Batch:
        """The rows of operators that start with a scan."""


def build_operators(
    operators: Sequence[plans.Operator],
    runner: PatternRunner,
    *,
    needed: KeptVariables,
    is_first: bool,
    is_block: bool = False,
) -> list[PhysicalOperator]:
    """The steps of operators; `is_first` says that nothing is bound before them.

    Those of a block run in the order in which they are written, and so choose their side by row.
    """
    building = _OperatorBuilder(
        runner, needed, [_PendingOperator(each, used_variables_of(each)) for each in operators]
    )
    nullable = runner.context.nullable
    steps: list[PhysicalOperator] = []
    for operator in building.iter_operators():
        runner.context.budget.check_interrupts()
        closing = building.take_closing(operator) if is_block else None
        if ends := list_open_ends(operator, closing) & nullable:
            steps.append(BoundRowsOperator(ends))
        # A scan after what binds values is joined with their rows.
        is_first = is_first and not isinstance(operator, STAGES)
        # What this chain binds, and what a traversal has met, is there.
        nullable -= ends if isinstance(operator, plans.Lateral) else bound_variables_of(operator)
        if closing is not None:
            assert isinstance(operator, plans.Expand)
            steps.append(IntersectOperator(operator, closing, runner.context, building.kept))
        elif not isinstance(operator, plans.Scan):
            steps.append(_build_operator(operator, runner, building.kept))
        elif is_first:
            steps.append(ScanOperator(operator, runner.context, building.kept))
            is_first = False
        else:
            steps.append(building.build_join(operator))
    return steps


def _build_operator(
    operator: plans.Operator, runner: PatternRunner, kept: KeptVariables
) -> PhysicalOperator:
    context = runner.context
    match operator:
        case plans.Expand(target_is_bound=False):
            return ExpandOperator(operator, context, kept)
        case plans.Expand(edge_variable=None):
            return CloseOperator(operator, context, kept)
        case plans.Expand():
            return CloseEdgesOperator(operator, context, kept)
        case plans.Filter(condition=condition):
            return FilterOperator(context, (condition,), kept)
        case plans.Exists():
            return SemiJoinOperator(operator, runner, kept)
        case plans.CompareBlock():
            return CompareBlockOperator(operator, runner, kept)
        case plans.Lateral():
            return LateralOperator(operator, runner, kept)
        case (
            plans.Unnest()
            | plans.Extend()
            | plans.BlockColumn()
            | plans.TableFunction()
            | plans.PathExpand()
        ):
            return _build_value_operator(operator, runner, kept)
        case _:
            raise AssertionError(f"{type(operator).__name__} is not part of a pattern")


def _build_value_operator(
    operator: plans.Unnest
    | plans.Extend
    | plans.BlockColumn
    | plans.TableFunction
    | plans.PathExpand,
    runner: PatternRunner,
    kept: KeptVariables,
) -> PhysicalOperator:
    match operator:
        case plans.Unnest():
            return UnnestOperator(operator, runner.context, kept)
        case plans.Extend():
            return ExtendOperator(operator, runner.context, kept)
        case plans.BlockColumn():
            return BlockValueOperator(operator, runner, kept)
        case plans.TableFunction():
            return TableFunctionOperator(operator, runner.context, kept)
        case plans.PathExpand():
            return PathOperator(operator, runner.context, kept)


@dataclass(frozen=True, slots=True)
class _PendingOperator:
    operator: plans.Operator
    used: frozenset[str]


class _OperatorBuilder:
    """The operators that have no step yet, and what they read."""

    def __init__(
        self, runner: PatternRunner, needed: KeptVariables, parts: Sequence[_PendingOperator]
    ) -> None:
        self._runner = runner
        self._needed = needed
        self._parts = parts
        # The places of those that are pending, with what they read.
        self._pending = {place: part.used for place, part in enumerate(parts)}
        self._next = 0
        self._uses = Counter(name for part in parts for name in part.used)

    def iter_operators(self) -> Iterator[plans.Operator]:
        """Each pending operator, which is pending no more."""
        for place, part in enumerate(self._parts):
            if place in self._pending:
                self._drop([place])
                self._next = place + 1
                yield part.operator

    @property
    def kept(self) -> KeptVariables:
        """The variables that pending operators or anything above them read."""
        if self._needed is None:
            return None
        return self._needed.union(self._uses)

    def take_closing(self, operator: plans.Operator) -> plans.Expand | None:
        """The traversal that closes what the last operator opened, if it is the next one."""
        if self._next not in self._pending:
            return None
        closing = self._parts[self._next].operator
        if not isinstance(closing, plans.Expand) or not IntersectOperator.is_for(operator, closing):
            return None
        self._drop([self._next])
        return closing

    def build_join(self, scan: plans.Scan) -> PhysicalOperator:
        """A step to a component that no traversal connects with what is bound already."""
        context = self._runner.context
        own = self._take_own(scan)
        variables = frozenset().union(*map(bound_variables_of, own))
        equalities = self._find_equalities(scan, variables)
        if len(own) == 1:
            for place, equality in equalities:
                if LookupOperator.is_for(scan, equality):
                    self._drop([place])
                    return LookupOperator(scan, context, equality, self.kept)
        # What the keys read is needed to the moment of the join.
        component = partial(_run_component, self._runner, own, self.kept)
        self._drop([place for place, equality in equalities if equality.is_exact])
        return HashJoinOperator(
            context, variables, component, [each for _, each in equalities], kept=self.kept
        )

    def _take_own(self, scan: plans.Scan) -> list[plans.Operator]:
        """The scan and the operators before the next one that only read what they bind."""
        own: list[plans.Operator] = [scan]
        variables = {scan.variable}
        taken: list[int] = []
        for place, part in self._iter_before_next_scan():
            if part.used and part.used <= variables:
                own.append(part.operator)
                variables |= bound_variables_of(part.operator)
                taken.append(place)
        self._drop(taken)
        return own

    def _find_equalities(
        self, scan: plans.Scan, variables: frozenset[str]
    ) -> list[tuple[int, Equality]]:
        found: list[tuple[int, Equality]] = []
        for place, part in self._iter_before_next_scan():
            if isinstance(part.operator, plans.Filter):
                equality = equality_of(part.operator.condition, variables, scan.variable)
                if equality is not None:
                    found.append((place, equality))
        return found

    def _iter_before_next_scan(self) -> Iterator[tuple[int, _PendingOperator]]:
        for place in range(self._next, len(self._parts)):
            part = self._parts[place]
            if isinstance(part.operator, (plans.Scan, *STAGES)):
                break
            if place in self._pending:
                yield place, part

    def _drop(self, places: Sequence[int]) -> None:
        for place in places:
            for name in self._pending.pop(place):
                self._uses[name] -= 1
                if not self._uses[name]:
                    del self._uses[name]


def _run_component(
    runner: PatternRunner,
    operators: Sequence[plans.Operator],
    needed: KeptVariables,
    conditions: tuple[Expr, ...],
) -> Batch:
    """The rows of a component whose first node satisfies more conditions."""
    scan, *rest = operators
    assert isinstance(scan, plans.Scan)
    if conditions:
        scan = replace(scan, conditions=(*scan.conditions, *conditions))
    return runner.run_component([scan, *rest], needed)
