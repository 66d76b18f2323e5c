"""Names the properties that each scan and traversal must provide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.query.logical_plan import (
    Aggregate,
    BlockColumn,
    CompareBlock,
    Exists,
    Expand,
    Lateral,
    Operator,
    Project,
    ReadPlan,
    Scan,
)
from omnigraph.query.tree_walk import (
    bound_variables_of,
    chain_of,
    expressions_of,
    iter_subexpressions,
    link_chain,
)
from omnigraph.query.typed_tree import (
    AggregateValue,
    Bm25Score,
    NearestScore,
    NodeObject,
    NodeValue,
    PropertyValue,
    TextMatch,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import VectorType

# The properties of each variable that operators further up read.
_Reads = defaultdict[str, set[str]]


def prune_properties(plan: ReadPlan, catalog: Catalog) -> ReadPlan:
    """Fill `properties` and `edge_properties` with what the operators above read."""
    return replace(plan, root=_prune(plan.root, defaultdict(set), catalog))


def _prune(root: Operator, reads: _Reads, catalog: Catalog) -> Operator:
    """Prune a chain from the top; `reads` ends up with what its leaf must provide."""
    pruned: list[Operator] = []
    for operator in reversed(chain_of(root)):
        for variable, name in _collect_properties_read(operator, catalog):
            reads[variable].add(name)
        match operator:
            case Exists() | CompareBlock() | Lateral() | BlockColumn():
                block = _prune(operator.block, reads, catalog)
                pruned.append(replace(operator, block=block))
            case Scan() | Expand():
                pruned.append(_provide(operator, reads))
            case _:
                pruned.append(operator)
    return link_chain(reversed(pruned))


def _provide(operator: Scan | Expand, reads: _Reads) -> Operator:
    """Let an operator provide what is read of the variables it binds, and no longer ask for it."""
    provided = {name: tuple(sorted(reads.pop(name, ()))) for name in bound_variables_of(operator)}
    match operator:
        case Scan():
            return replace(operator, properties=provided[operator.variable])
        case Expand():
            return replace(
                operator,
                properties=provided.get(operator.target, ()),
                edge_properties=provided.get(operator.edge_variable or "", ()),
            )
        case _:
            assert_never(operator)


def _collect_properties_read(operator: Operator, catalog: Catalog) -> Iterator[tuple[str, str]]:
    # A scan or traversal evaluates its own conditions before it provides anything.
    if not isinstance(operator, Scan | Expand):
        for expr in expressions_of(operator):
            for part in iter_subexpressions(expr):
                if isinstance(part, PropertyValue | TextMatch | NearestScore | Bm25Score):
                    yield part.variable, part.property
    if isinstance(operator, Aggregate | Project):
        for column in operator.columns:
            shown = column.value
            if isinstance(shown, AggregateValue) and isinstance(shown.type, NodeObject):
                shown = shown.argument
            if isinstance(shown, NodeValue):
                for name in _list_object_properties(shown.type.type_name, catalog):
                    yield shown.variable, name


def _list_object_properties(type_name: str, catalog: Catalog) -> Iterator[str]:
    """The properties of a node that is returned as an object: all but blobs and vectors."""
    for name, each in catalog.nodes[type_name].properties.items():
        if not each.type.is_blob and not isinstance(each.type.value, VectorType):
            yield name
