"""Drops sort keys that cannot change the order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.query.logical_plan import Aggregate, Expand, Operator, ReadPlan, Scan, Sort
from omnigraph.query.tree_walk import Chain, iter_subexpressions, map_chains, variables_of
from omnigraph.query.typed_reads import OrderKey
from omnigraph.query.typed_tree import (
    AggregateValue,
    ColumnValue,
    Expr,
    NodeValue,
    PropertyValue,
    SystemName,
    SystemValue,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.type_sets import is_type_set


def trim_sorts(plan: ReadPlan, catalog: Catalog) -> ReadPlan:
    """Drop constant keys and keys that earlier keys determine, and sorts without keys."""

    def trim_chain(chain: Chain) -> Iterator[Operator]:
        for operator in chain:
            if not isinstance(operator, Sort):
                yield operator
            elif keys := tuple(_select_useful(operator.keys, _collect_identities(chain, catalog))):
                yield replace(operator, keys=keys)

    return replace(plan, root=map_chains(plan.root, trim_chain))


# The sets of values that identify a row, by variable.
_Identities = dict[str, list[frozenset[Expr]]]
# A group is what the key columns of an aggregate bind.
_GROUP = "#group"


def _select_useful(keys: Iterable[OrderKey], identities: _Identities) -> Iterator[OrderKey]:
    seen: set[Expr] = set()
    for key in keys:
        value = key.value
        is_column = any(isinstance(part, ColumnValue) for part in iter_subexpressions(value))
        reads = {_GROUP} if is_column else variables_of(value)
        is_determined = all(
            any(identity <= seen for identity in identities.get(name, ())) for name in reads
        )
        if not is_determined and value not in seen:
            yield key
        seen.add(
            SystemValue(value.variable, SystemName.ID) if isinstance(value, NodeValue) else value
        )


def _collect_identities(chain: Chain, catalog: Catalog) -> _Identities:
    identities: _Identities = {}
    for operator in chain:
        match operator:
            case Scan(variable=variable, type_name=type_name):
                identities[variable] = _list_node_identities(variable, type_name, catalog)
            case Expand(target=variable, target_type=type_name, edge_variable=edge):
                identities[variable] = _list_node_identities(variable, type_name, catalog)
                if edge is not None:
                    identities[edge] = [_build_edge_identity(edge, operator)]
            case Aggregate():
                identities[_GROUP] = [
                    frozenset(
                        ColumnValue(column.name, column.type)
                        for column in operator.columns
                        if not isinstance(column.value, AggregateValue)
                    )
                ]
            case _:
                pass
    return identities


def _list_node_identities(variable: str, type_name: str, catalog: Catalog) -> list[frozenset[Expr]]:
    identities: list[frozenset[Expr]] = [frozenset({SystemValue(variable, SystemName.ID)})]
    if is_type_set(type_name):
        fields = (SystemName.TYPE, SystemName.ID)
        return [frozenset(SystemValue(variable, each) for each in fields)]
    node = catalog.nodes[type_name]
    if node.key is not None:
        identities.append(
            frozenset(
                PropertyValue(variable, name, node.properties[name].type) for name in node.key
            )
        )
    return identities


def _build_edge_identity(variable: str, expand: Expand) -> frozenset[Expr]:
    identity = {SystemValue(variable, SystemName.ID)}
    if len({step.edge_type for step in expand.steps}) > 1:
        identity.add(SystemValue(variable, SystemName.TYPE))
    return frozenset(identity)
