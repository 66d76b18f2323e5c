"""Moves filters on one node variable to where that variable is bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.query.logical_plan import Expand, Filter, Operator, ReadPlan, Scan
from omnigraph.query.tree_walk import Chain, map_chains, variables_of
from omnigraph.query.typed_tree import Expr
from omnigraph.schema.catalog import Catalog


def push_filters(plan: ReadPlan, _catalog: Catalog) -> ReadPlan:
    """Make filters on one scanned or reached node conditions of its scan or traversal."""
    return replace(plan, root=map_chains(plan.root, _push_chain))


def _push_chain(chain: Chain) -> Iterator[Operator]:
    conditions: dict[str, list[Expr]] = {}
    kept: list[Operator] = []
    for operator in chain:
        match operator:
            case Filter():
                names = variables_of(operator.condition)
                if len(names) == 1 and (found := conditions.get(min(names))) is not None:
                    found.append(operator.condition)
                    continue
            case Scan(variable=variable) | Expand(target=variable, target_is_bound=False):
                conditions[variable] = list(operator.conditions)
            case _:
                pass
        kept.append(operator)
    for operator in kept:
        match operator:
            case Scan(variable=variable) | Expand(target=variable, target_is_bound=False):
                own = tuple(conditions[variable])
                is_same = len(own) == len(operator.conditions)
                yield operator if is_same else replace(operator, conditions=own)
            case _:
                yield operator
