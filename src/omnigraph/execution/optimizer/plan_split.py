"""Where the pattern of a plan ends, and the steps after it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from omnigraph.query import logical_plan as plans
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.tree_walk import expressions_of, variables_of
from omnigraph.query.typed_tree import AggregateValue, Expr, NodeValue, SystemValue

ResultStep: TypeAlias = plans.Aggregate | plans.Sort | plans.Limit | plans.Project


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The pattern of a plan, and the steps that make its rows a result, in their order."""

    pattern: plans.Operator
    steps: tuple[ResultStep, ...]

    @property
    def rows_max(self) -> int | None:
        """How many rows of the pattern are enough, if any so many are."""
        first = self.steps[0]
        return first.count if isinstance(first, plans.Limit) else None

    @property
    def needed(self) -> frozenset[str]:
        """The variables that the steps read."""
        return frozenset().union(
            *map(_collect_variables, chain.from_iterable(map(expressions_of, self.steps)))
        )


def split_plan(root: plans.Operator) -> SplitPlan:
    """The two parts of a plan."""
    steps: list[ResultStep] = []
    while isinstance(root, ResultStep):
        steps.append(root)
        root = root.input
    return SplitPlan(root, tuple(reversed(steps)))


def _collect_variables(expr: Expr) -> frozenset[str]:
    match expr:
        case AggregateValue(AggregateFunction.COUNT, NodeValue() | SystemValue()):
            # Never null: to count them is to count rows.
            return frozenset()
        case _:
            return variables_of(expr)
