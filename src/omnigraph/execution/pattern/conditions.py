"""Conditions on one node variable, tested at the nodes that rows reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.numbers import find_distinct
from omnigraph.execution.reading import ExecutionContext, Mask
from omnigraph.execution.source import DenseIds
from omnigraph.query.typed import Expr

# From so large a part of a type on, testing all of it once is cheaper than what is met.
_WHOLE_TYPE_FACTOR = 2


class NodeFilter:
    """Tests nodes one by one while there are few of them, and then the whole type at once."""

    def __init__(
        self, reading: ExecutionContext, variable: str, conditions: Sequence[Expr]
    ) -> None:
        self._reading = reading
        self._variable = variable
        self._conditions = tuple(conditions)
        self._nodes = reading.source.get_nodes(reading.nodes_of[variable])
        self._tested = 0
        self._is_kept: Mask | None = None

    def evaluate_mask(self, numbers: DenseIds) -> Mask:
        """Which of the nodes satisfy all conditions."""
        if self._is_kept is None:
            nodes, places = find_distinct(numbers)
            self._tested += len(nodes)
            if _WHOLE_TYPE_FACTOR * self._tested <= self._nodes.count or self._tested <= 1:
                batch = Batch(len(nodes), {self._variable: nodes})
                return self._reading.evaluate_mask(batch, self._conditions).take(places)
            self._is_kept = self._evaluate_type_mask()
        return self._get_mask(numbers, self._is_kept)

    def _evaluate_type_mask(self) -> Mask:
        kept = self._nodes.filter_nodes(self._conditions, self._reading.params)
        is_kept = np.zeros(int(kept.max(initial=-1)) + 2, np.bool_)
        is_kept[kept] = True
        return is_kept

    def _get_mask(self, numbers: DenseIds, is_kept: Mask) -> Mask:
        # Nodes with greater numbers than all that satisfy the conditions share the last place.
        return is_kept.take(np.minimum(numbers, len(is_kept) - 1))
