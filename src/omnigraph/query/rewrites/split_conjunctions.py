"""Turns a conjunction into one condition per conjunct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.query.logical_plan import Expand, Filter, Operator, ReadPlan, Scan
from omnigraph.query.tree_walk import Chain, map_chains
from omnigraph.query.typed_tree import AllOf, Expr
from omnigraph.schema.catalog import Catalog


def split_conjunctions(plan: ReadPlan, _catalog: Catalog) -> ReadPlan:
    """Split filters and conditions: a row passes `a and b` iff it passes both."""
    return replace(plan, root=map_chains(plan.root, _split_chain))


def _split_chain(chain: Chain) -> Iterator[Operator]:
    for operator in chain:
        match operator:
            case Filter(condition=AllOf()):
                for condition in split_conditions([operator.condition]):
                    yield replace(operator, condition=condition)
            case Scan() | Expand() if any(isinstance(each, AllOf) for each in operator.conditions):
                yield replace(operator, conditions=tuple(split_conditions(operator.conditions)))
            case _:
                yield operator


def split_conditions(conditions: Iterable[Expr]) -> Iterator[Expr]:
    """Conditions that all hold iff the given ones do, none of them a conjunction."""
    for condition in conditions:
        if isinstance(condition, AllOf):
            yield from split_conditions(condition.operands)
        else:
            yield condition
