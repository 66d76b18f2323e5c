"""Rewrites of the logical plan.

In: a plan and its catalog. Out: a plan that gives the same rows with less work. Guarantee: every
rule is total, keeps the meaning on its own, and is a no-op on its own output. One rule is one file
with one function; `RULES` is the order they run in on a read. A mutation has one rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.diagnostics import Poll
from omnigraph.query.logical_plan import Plan, ReadPlan
from omnigraph.query.rewrites.choose_root import choose_root
from omnigraph.query.rewrites.fold_constants import fold_constants
from omnigraph.query.rewrites.prune_properties import prune_properties
from omnigraph.query.rewrites.push_filters import push_filters
from omnigraph.query.rewrites.simplify_statements import simplify_statements
from omnigraph.query.rewrites.split_conjunctions import split_conjunctions
from omnigraph.query.rewrites.trim_sorts import trim_sorts
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema.catalog import Catalog

__all__ = ["RULES", "Rewriting", "Rule", "rewrite"]

Rule = Callable[[ReadPlan, Catalog], ReadPlan]
Rewriting = Callable[[Plan, Catalog, Poll], Plan]

RULES: tuple[Rule, ...] = (
    fold_constants,
    split_conjunctions,
    push_filters,
    choose_root,
    trim_sorts,
    prune_properties,
)


def rewrite(plan: Plan, catalog: Catalog, poll: Poll = lambda: None) -> Plan:
    """The plan after every rule."""
    if isinstance(plan, Mutation):
        return simplify_statements(plan)
    for rule in RULES:
        poll()
        plan = rule(plan, catalog)
    return plan
