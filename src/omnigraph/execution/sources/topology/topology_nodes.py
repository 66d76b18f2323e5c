"""The nodes of one type, whole in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.execution.sources.topology.topology_filter import (
    AllEntities,
    SomeEntities,
    find_by_id,
    find_by_postings,
)
from omnigraph.query.typed_tree import Expr, TextMatch
from omnigraph.rows.evaluator import Params, evaluate_constant
from omnigraph.rows.pushdown import iter_conjuncts
from omnigraph.rows.row_filter import Mask, compute_mask
from omnigraph.rows.text_predicates import require_valid_options
from omnigraph.rows.view import View


@dataclass(frozen=True)
class DenseNodes(DenseEntities):
    """Nodes by number, of a snapshot."""

    view: View

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        if not conditions:
            return self.list_all()
        candidates, left = self._narrow_by_index(conditions, params)
        if candidates is None:
            return np.flatnonzero(self._scan_mask(left, params)).astype(np.int32)
        return candidates[self.evaluate_mask_at(left, params, candidates)] if left else candidates

    def evaluate_mask(self, conditions: Sequence[Expr], params: Params) -> Mask:
        """Which numbers have a node that satisfies all conditions."""
        # To compare all codes with one takes no longer than to mark those that have it.
        candidates, left = self._narrow_by_index(conditions, params, is_posted=len(conditions) > 1)
        if candidates is None:
            return self._scan_mask(left, params)
        found = np.zeros(self.size, np.bool_)
        found[
            candidates[self.evaluate_mask_at(left, params, candidates)] if left else candidates
        ] = True
        return found

    def evaluate_mask_at(self, conditions: Sequence[Expr], params: Params, at: DenseIds) -> Mask:
        """Which of some nodes satisfy all conditions."""
        return compute_mask(conditions, SomeEntities(self, at), params)

    def search_texts(self, match: TextMatch, params: Params, at: DenseIds) -> pa.Array | None:
        """Where some nodes satisfy a text predicate; None if their texts are faster."""
        # Searches keep what they know beside the pieces of topologies, and so import this package.
        from omnigraph.execution import search  # noqa: PLC0415

        asked = search.FieldRef(self.view, self.shape.type_key.name, match.property)
        return search.search_nodes(asked, match, params, self, at)

    def _scan_mask(self, conditions: Sequence[Expr], params: Params) -> Mask:
        return compute_mask(conditions, AllEntities(self), params, among=self.is_alive)

    def _narrow_by_index(
        self, conditions: Sequence[Expr], params: Params, *, is_posted: bool = True
    ) -> tuple[DenseIds | None, list[Expr]]:
        """The candidates that an index gives, or None without one, and the other conditions."""
        require_valid_options(conditions, lambda expr: evaluate_constant(expr, params))
        left = list(iter_conjuncts(conditions))
        candidates = find_by_id(self, left, params)
        if candidates is None and is_posted:
            candidates = find_by_postings(self, left, params)
        if candidates is not None or not any(isinstance(each, TextMatch) for each in left):
            return candidates, left
        from omnigraph.execution import search  # noqa: PLC0415 — as above

        type_name = self.shape.type_key.name
        row_ids, left = search.find_text_candidates(self.view, type_name, left, params)
        return None if row_ids is None else np.sort(self.find_by_row_ids(row_ids)), left
