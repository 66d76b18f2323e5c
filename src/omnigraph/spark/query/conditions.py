"""Which conditions whoever reads a table can test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from omnigraph.query import plan as plans
from omnigraph.query.typed import Expr
from omnigraph.query.walk import variables_of


def split_conditions(
    conditions: Iterable[Expr], name: str
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The conditions about a variable alone, and those that read others."""
    own: list[Expr] = []
    others: list[Expr] = []
    for each in conditions:
        (own if variables_of(each) <= {name} else others).append(each)
    return tuple(own), tuple(others)


def split_edge_conditions(
    operators: Sequence[plans.Operator],
) -> tuple[list[plans.Operator], dict[str, list[Expr]]]:
    """The operators without the filters on edges alone, and those filters."""
    edges = {
        each.edge_variable
        for each in operators
        if isinstance(each, plans.Expand) and each.edge_variable is not None
    }
    kept: list[plans.Operator] = []
    conditions: dict[str, list[Expr]] = defaultdict(list)
    for operator in operators:
        if isinstance(operator, plans.Filter):
            names = variables_of(operator.condition)
            if len(names) == 1 and names <= edges:
                conditions[min(names)].append(operator.condition)
                continue
        kept.append(operator)
    return kept, conditions
