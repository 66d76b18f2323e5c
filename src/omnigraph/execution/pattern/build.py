"""Operators to steps: what each one reads, what may be left out, and what is matched apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern.blocks import BlockRunner, CompareBlockOperator, SemiJoinOperator
from omnigraph.execution.pattern.closing import CloseEdgesOperator, CloseOperator
from omnigraph.execution.pattern.components import HashJoinOperator, LookupOperator, ScanOperator
from omnigraph.execution.pattern.expand import ExpandOperator
from omnigraph.execution.pattern.join_keys import Equality, equality_of
from omnigraph.execution.pattern.rows import KeptVariables
from omnigraph.execution.pattern.steps import FilterOperator, PhysicalOperator
from omnigraph.query import plan as plans
from omnigraph.query.typed import Expr
from omnigraph.query.walk import bound_variables_of, used_variables_of


class PatternRunner(BlockRunner, Protocol):
    """Whoever runs chains of operators, for the steps that have chains of their own."""

    def run_component(self, operators: Sequence[plans.Operator], needed: KeptVariables) -> Batch:
        """The rows of operators that start with a scan."""


def build_operators(
    operators: Sequence[plans.Operator],
    runner: PatternRunner,
    *,
    needed: KeptVariables,
    is_first: bool,
) -> list[PhysicalOperator]:
    """The steps of operators; `is_first` says that nothing is bound before them."""
    building = _OperatorBuilder(
        runner, needed, [_PendingOperator(each, used_variables_of(each)) for each in operators]
    )
    steps: list[PhysicalOperator] = []
    for operator in building.iter_operators():
        runner.context.budget.check_interrupts()
        if not isinstance(operator, plans.Scan):
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
    reading = runner.context
    match operator:
        case plans.Expand(target_is_bound=False):
            return ExpandOperator(operator, reading, kept)
        case plans.Expand(edge_variable=None):
            return CloseOperator(operator, reading, kept)
        case plans.Expand():
            return CloseEdgesOperator(operator, reading, kept)
        case plans.Filter(condition=condition):
            return FilterOperator(reading, (condition,), kept)
        case plans.Exists():
            return SemiJoinOperator(operator, runner, kept)
        case plans.CompareBlock():
            return CompareBlockOperator(operator, runner, kept)
        case _:
            raise AssertionError(f"{type(operator).__name__} is no part of a pattern")


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

    def build_join(self, scan: plans.Scan) -> PhysicalOperator:
        """A step to a component that no traversal connects with what is bound already."""
        reading = self._runner.context
        own = self._take_own(scan)
        variables = frozenset().union(*map(bound_variables_of, own))
        equalities = self._find_equalities(scan, variables)
        if len(own) == 1:
            for place, equality in equalities:
                if LookupOperator.is_for(scan, equality):
                    self._drop([place])
                    return LookupOperator(scan, reading, equality, self.kept)
        # What the keys read is needed to the moment of the join.
        component = partial(_run_component, self._runner, own, self.kept)
        self._drop([place for place, equality in equalities if equality.is_exact])
        return HashJoinOperator(
            reading, variables, component, [each for _, each in equalities], kept=self.kept
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
            if isinstance(part.operator, plans.Scan):
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
