"""Operators to steps: what each one reads, what may be left out, and what is matched apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern.blocks import BlockRunner, CompareBlockStep, ExistsStep
from omnigraph.execution.pattern.closing import CloseEdgesStep, CloseStep
from omnigraph.execution.pattern.components import FindStep, JoinStep, ScanStep
from omnigraph.execution.pattern.expand import ExpandStep
from omnigraph.execution.pattern.join_keys import Equality, equality_of
from omnigraph.execution.pattern.rows import Kept
from omnigraph.execution.pattern.steps import FilterStep, Step
from omnigraph.query import plan as plans
from omnigraph.query.typed import Expr
from omnigraph.query.walk import bound_variables, used_variables


class Runner(BlockRunner, Protocol):
    """Whoever runs chains of operators, for the steps that have chains of their own."""

    def component(self, operators: Sequence[plans.Operator], needed: Kept) -> Batch:
        """The rows of operators that start with a scan."""


def steps_of(
    operators: Sequence[plans.Operator], runner: Runner, *, needed: Kept, is_first: bool
) -> list[Step]:
    """The steps of operators; `is_first` says that nothing is bound before them."""
    building = _Building(runner, needed, [_Part(each, used_variables(each)) for each in operators])
    steps: list[Step] = []
    for operator in building.operators():
        runner.reading.budget.check()
        if not isinstance(operator, plans.Scan):
            steps.append(_step(operator, runner, building.kept))
        elif is_first:
            steps.append(ScanStep(operator, runner.reading, building.kept))
            is_first = False
        else:
            steps.append(building.joined(operator))
    return steps


def _step(operator: plans.Operator, runner: Runner, kept: Kept) -> Step:
    reading = runner.reading
    match operator:
        case plans.Expand(target_is_bound=False):
            return ExpandStep(operator, reading, kept)
        case plans.Expand(edge_variable=None):
            return CloseStep(operator, reading, kept)
        case plans.Expand():
            return CloseEdgesStep(operator, reading, kept)
        case plans.Filter(condition=condition):
            return FilterStep(reading, (condition,), kept)
        case plans.Exists():
            return ExistsStep(operator, runner, kept)
        case plans.CompareBlock():
            return CompareBlockStep(operator, runner, kept)
        case _:
            raise AssertionError(f"{type(operator).__name__} is no part of a pattern")


@dataclass(frozen=True, slots=True)
class _Part:
    operator: plans.Operator
    used: frozenset[str]


class _Building:
    """The operators that have no step yet, and what they read."""

    def __init__(self, runner: Runner, needed: Kept, parts: Sequence[_Part]) -> None:
        self._runner = runner
        self._needed = needed
        self._parts = parts
        # The places of those that are pending, with what they read.
        self._pending = {place: part.used for place, part in enumerate(parts)}
        self._next = 0
        self._uses = Counter(name for part in parts for name in part.used)

    def operators(self) -> Iterator[plans.Operator]:
        """Each pending operator, which is pending no more."""
        for place, part in enumerate(self._parts):
            if place in self._pending:
                self._drop([place])
                self._next = place + 1
                yield part.operator

    @property
    def kept(self) -> Kept:
        """The variables that pending operators or anything above them read."""
        if self._needed is None:
            return None
        return self._needed.union(self._uses)

    def joined(self, scan: plans.Scan) -> Step:
        """A step to a component that no traversal connects with what is bound already."""
        reading = self._runner.reading
        own = self._take_own(scan)
        variables = frozenset().union(*map(bound_variables, own))
        equalities = self._equalities(scan, variables)
        if len(own) == 1:
            for place, equality in equalities:
                if FindStep.is_for(scan, equality):
                    self._drop([place])
                    return FindStep(scan, reading, equality, self.kept)
        # What the keys read is needed to the moment of the join.
        component = partial(_component, self._runner, own, self.kept)
        self._drop([place for place, equality in equalities if equality.is_exact])
        return JoinStep(
            reading, variables, component, [each for _, each in equalities], kept=self.kept
        )

    def _take_own(self, scan: plans.Scan) -> list[plans.Operator]:
        """The scan and the operators before the next one that only read what they bind."""
        own: list[plans.Operator] = [scan]
        variables = {scan.variable}
        taken: list[int] = []
        for place, part in self._before_next_scan():
            if part.used and part.used <= variables:
                own.append(part.operator)
                variables |= bound_variables(part.operator)
                taken.append(place)
        self._drop(taken)
        return own

    def _equalities(
        self, scan: plans.Scan, variables: frozenset[str]
    ) -> list[tuple[int, Equality]]:
        found: list[tuple[int, Equality]] = []
        for place, part in self._before_next_scan():
            if isinstance(part.operator, plans.Filter):
                equality = equality_of(part.operator.condition, variables, scan.variable)
                if equality is not None:
                    found.append((place, equality))
        return found

    def _before_next_scan(self) -> Iterator[tuple[int, _Part]]:
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


def _component(
    runner: Runner,
    operators: Sequence[plans.Operator],
    needed: Kept,
    conditions: tuple[Expr, ...],
) -> Batch:
    """The rows of a component whose first node satisfies more conditions."""
    scan, *rest = operators
    assert isinstance(scan, plans.Scan)
    if conditions:
        scan = replace(scan, conditions=(*scan.conditions, *conditions))
    return runner.component([scan, *rest], needed)
