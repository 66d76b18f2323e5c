"""Rewrites of the logical plan.

In: a plan and its catalog. Out: a plan that gives the same rows with less work. Guarantee: every
rule is total, keeps the meaning on its own, and does nothing to its own output. One rule is one
file with one function; `RULES` is the order in which they run on a read. A mutation has one rule.
The first rule alone changes what a plan means: it hides what the reader may not see.

    guard_types           conditions on the nodes of guarded types
    fold_constants        evaluates what depends on no row and no parameter
    split_conjunctions    one condition per conjunct
    push_filters          filters to where their variable is bound
    choose_root           starts at a node that a key identifies
    trim_sorts            drops sort keys that cannot change the order
    prune_properties      which properties each scan and traversal must provide
    simplify_statements   folds and splits the conditions of a mutation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.lang.diagnostics import Poll
from omnigraph.query.logical_plan import Plan, ReadPlan
from omnigraph.query.rewrites.choose_root import choose_root
from omnigraph.query.rewrites.fold_constants import fold_constants
from omnigraph.query.rewrites.guard_types import guard_types
from omnigraph.query.rewrites.prune_properties import prune_properties
from omnigraph.query.rewrites.push_filters import push_filters
from omnigraph.query.rewrites.simplify_statements import simplify_statements
from omnigraph.query.rewrites.split_conjunctions import split_conjunctions
from omnigraph.query.rewrites.trim_sorts import trim_sorts
from omnigraph.query.tree_walk import map_stages
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema.catalog import Catalog

__all__ = ["RULES", "Rewriting", "Rule", "rewrite"]

Rule = Callable[[ReadPlan, Catalog], ReadPlan]
Rewriting = Callable[[Plan, Catalog, Poll], Plan]

RULES: tuple[Rule, ...] = (
    guard_types,
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
    return _rewrite_read(plan, catalog, poll)


def _rewrite_read(plan: ReadPlan, catalog: Catalog, poll: Poll) -> ReadPlan:
    """The plan after every rule, as those of its stages are first."""
    guards = plan.guards
    root = map_stages(
        plan.root, lambda each: _rewrite_read(replace(each, guards=guards), catalog, poll)
    )
    plan = plan if root is plan.root else replace(plan, root=root)
    for rule in RULES:
        poll()
        plan = rule(plan, catalog)
    return plan
