"""Which nodes the reader of a plan sees, where an operator meets them on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.filter_operator import NodeFilter
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.type_set_source import TypeNumbering, numbering_of
from omnigraph.query.typed_tree import GUARDED, TypeGuard
from omnigraph.rows.row_filter import Mask
from omnigraph.schema.type_sets import list_member_types


class NodeGuard:
    """Tests the nodes of a type, or of a set of types, by the guards of those types."""

    def __init__(self, numbering: TypeNumbering, filters: Sequence[tuple[str, NodeFilter]]) -> None:
        self._numbering = numbering
        self._filters = filters

    def evaluate_mask(self, numbers: DenseIds) -> Mask:
        """Which of the nodes are seen."""
        seen = np.ones(len(numbers), np.bool_)
        if not len(numbers):
            return seen
        for type_name, test in self._filters:
            places, own = self._numbering.select(type_name, numbers)
            seen[slice(None) if places is None else places] = test.evaluate_mask(own)
        return seen


def build_node_guard(
    context: ExecutionContext, type_name: str, guards: Sequence[TypeGuard]
) -> NodeGuard | None:
    """The test of the nodes of a type or a set; None if all of them are seen."""
    types = list_member_types(type_name)
    own = [each for each in guards if each.type_name in types]
    if not own:
        return None
    filters = []
    for each in own:
        # The variable of a condition is none of the plan.
        inside = replace(
            context, nodes_of={GUARDED: each.type_name}, edges_of={}, nullable=frozenset()
        )
        filters.append((each.type_name, NodeFilter(inside, GUARDED, [each.condition])))
    return NodeGuard(numbering_of(type_name), filters)
