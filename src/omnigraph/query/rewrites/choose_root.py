"""Starts matching at a node that its key picks out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile

from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import (
    LEAVES,
    CompareBlock,
    Exists,
    Expand,
    Filter,
    Operator,
    ReadPlan,
    Scan,
)
from omnigraph.query.pattern_assembly import PatternNode, PatternParts, Test, assemble_pattern
from omnigraph.query.tree_walk import Chain, chain_of, map_chains, variables_of
from omnigraph.query.typed_tree import Compare, Expr, PropertyValue, SystemName, SystemValue
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.type_sets import is_type_set


def choose_root(plan: ReadPlan, catalog: Catalog) -> ReadPlan:
    """Order each group of connected variables from a node whose key or id is given, if any."""

    def order_chain(chain: Chain) -> Iterable[Operator]:
        leaf, *rest = chain
        assert isinstance(leaf, LEAVES)
        matching = list(takewhile(lambda each: isinstance(each, Scan | Expand | Test), rest))
        parts = _reorder_parts(matching, catalog)
        if parts is None:
            return chain
        # Everything else (rank, sort, limit, columns) stands above the pattern.
        return (*chain_of(assemble_pattern(leaf, parts)), *rest[len(matching) :])

    return replace(plan, root=map_chains(plan.root, order_chain))


def _reorder_parts(matching: Iterable[Operator], catalog: Catalog) -> PatternParts | None:
    """The parts of a pattern with better roots first, or None if its roots are right already."""
    scanned: list[PatternNode] = []
    reached: list[PatternNode] = []
    traversals: list[Expand] = []
    tests: list[Test] = []
    for operator in matching:
        match operator:
            case Scan(variable=variable, type_name=type_name, conditions=conditions):
                scanned.append(PatternNode(variable, type_name, conditions))
            case Expand(target=variable, target_type=type_name, conditions=conditions):
                traversals.append(operator)
                if not operator.target_is_bound:
                    reached.append(PatternNode(variable, type_name, conditions))
            case Filter() | Exists() | CompareBlock():
                tests.append(operator)
            case _:
                pass
    given = [node for node in (*scanned, *reached) if _has_fixed_key(node, catalog)]
    if {node.variable for node in given} <= {node.variable for node in scanned}:
        return None
    return PatternParts((*given, *scanned, *reached), tuple(traversals), tuple(tests))


def _has_fixed_key(node: PatternNode, catalog: Catalog) -> bool:
    """Whether the conditions fix the id, or every property of the key, to one value."""
    equal = [_find_fixed_value(condition) for condition in node.conditions]
    if SystemValue(node.variable, SystemName.ID) in equal:
        return True
    if is_type_set(node.type_name):
        return False
    key = catalog.nodes[node.type_name].key
    fixed = {value.property for value in equal if isinstance(value, PropertyValue)}
    return key is not None and fixed.issuperset(key)


def _find_fixed_value(condition: Expr) -> Expr | None:
    match condition:
        case Compare(CompareOp.EQ, PropertyValue() | SystemValue() as value, other):
            return None if variables_of(other) else value
        case Compare(CompareOp.EQ, other, PropertyValue() | SystemValue() as value):
            return None if variables_of(other) else value
        case _:
            return None
