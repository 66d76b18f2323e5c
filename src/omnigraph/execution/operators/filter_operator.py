"""What the operators of a pattern are made into: steps from rows to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    filter_rows,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.sorted_arrays import find_distinct
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.row_filter import Mask

# From so large a part of a type on, testing all of it once is cheaper than what is met.
_WHOLE_TYPE_FACTOR = 2


class PhysicalOperator(Protocol):
    """One operator over some rows; what it gives for a row does not depend on the others."""

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """About how many rows each row becomes; None if unknown, or at most about one."""

    def run(self, batch: Batch) -> Batch:
        """The rows that the given ones become."""


@dataclass(frozen=True, slots=True)
class FilterOperator:
    """Keeps the rows that satisfy conditions."""

    context: ExecutionContext
    conditions: Sequence[Expr]
    kept: KeptVariables

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows whose conditions are true."""
        mask = self.context.evaluate_mask(batch, self.conditions)
        return filter_rows(prune_variables(batch, self.kept), mask)


class NodeFilter:
    """Tests nodes one by one while there are few of them, and then the whole type at once."""

    def __init__(
        self, context: ExecutionContext, variable: str, conditions: Sequence[Expr]
    ) -> None:
        self._context = context
        self._variable = variable
        self._conditions = tuple(conditions)
        self._nodes = context.source.get_nodes(context.nodes_of[variable])
        self._tested = 0
        self._is_kept: Mask | None = None

    def evaluate_mask(self, numbers: DenseIds) -> Mask:
        """Which of the nodes satisfy all conditions."""
        if self._is_kept is None:
            nodes, places = find_distinct(numbers)
            self._tested += len(nodes)
            if _WHOLE_TYPE_FACTOR * self._tested <= self._nodes.count or self._tested <= 1:
                batch = Batch(len(nodes), {self._variable: nodes})
                return self._context.evaluate_mask(batch, self._conditions).take(places)
            self._is_kept = self._evaluate_type_mask()
        return self._get_mask(numbers, self._is_kept)

    def _evaluate_type_mask(self) -> Mask:
        kept = self._nodes.filter_nodes(self._conditions, self._context.params)
        is_kept = np.zeros(int(kept.max(initial=-1)) + 2, np.bool_)
        is_kept[kept] = True
        return is_kept

    def _get_mask(self, numbers: DenseIds, is_kept: Mask) -> Mask:
        # Nodes with greater numbers than all that satisfy the conditions share the last place.
        return is_kept.take(np.minimum(numbers, len(is_kept) - 1))
