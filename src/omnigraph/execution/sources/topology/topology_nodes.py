"""The nodes of one type, whole in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.topology_columns import Mask
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.execution.sources.topology.topology_filter import evaluate_mask, find_satisfying
from omnigraph.query.typed_tree import Expr, TextMatch
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View


@dataclass(frozen=True)
class DenseNodes(DenseEntities):
    """Nodes by number, of a snapshot."""

    view: View

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        return find_satisfying(self, conditions, params, narrowed=self._narrow_by_text)

    def evaluate_mask(self, conditions: Sequence[Expr], params: Params) -> Mask:
        """Which numbers have a node that satisfies all conditions."""
        return evaluate_mask(self, conditions, params, narrowed=self._narrow_by_text)

    def _narrow_by_text(
        self, candidates: DenseIds | None, conditions: list[Expr], params: Params
    ) -> tuple[DenseIds | None, list[Expr]]:
        """Candidates that satisfy the text predicates with an index, and the other conditions."""
        if not any(isinstance(each, TextMatch) for each in conditions):
            return candidates, conditions
        # Searches keep what they know beside the pieces of topologies, and so import this package.
        from omnigraph.execution import search  # noqa: PLC0415

        type_name = self.shape.type_key.name
        if candidates is None:
            row_ids, left = search.find_text_candidates(self.view, type_name, conditions, params)
            return None if row_ids is None else np.sort(self.find_by_row_ids(row_ids)), left
        left = []
        for condition in conditions:
            if isinstance(condition, TextMatch):
                asked = search.FieldRef(self.view, type_name, condition.property)
                if search.should_use_index(asked, len(candidates)):
                    row_ids = self.fetch_row_ids(candidates)
                    mask = search.match_texts(asked, condition, params, row_ids=row_ids)
                    candidates = candidates[mask]
                    continue
            left.append(condition)
        return candidates, left
