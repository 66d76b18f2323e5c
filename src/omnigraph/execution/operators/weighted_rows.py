"""Rows of enumerated variables, with the weights of all that hangs from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.operators.batch_operations import concatenate_batches, slice_batch
from omnigraph.execution.operators.checked_ints import CheckedInts, Weights, add_at, choose_at
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.rows.group_aggregates import Groups


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows, each of which stands for as many matches as its weight says."""

    batch: Batch
    weights: Weights = field(default_factory=Weights)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.batch.num_rows

    def take(self, places: RowIndices) -> WeightedRows:
        """Some rows."""
        return WeightedRows(self.batch.take(places), self.weights.take(places))

    def slice_rows(self, first: int, last: int) -> WeightedRows:
        """Rows that follow each other."""
        return WeightedRows(
            slice_batch(self.batch, first, last), self.weights.take(np.arange(first, last))
        )

    def multiply_weights(self, more: Weights) -> WeightedRows:
        """The rows with more that hangs from them, without those that then stand for nothing."""
        weights = self.weights.multiply(more)
        if weights.counts is None:
            return WeightedRows(self.batch, weights)
        kept = np.flatnonzero(weights.counts.values)
        found = WeightedRows(self.batch, weights)
        return found if len(kept) == self.count else found.take(kept)

    def merge_groups(self, groups: Groups) -> WeightedRows:
        """One row for each group, which stands for all that its rows stand for."""
        of_row, count, most = groups.of_row, groups.count, max(self.count, 1)
        return WeightedRows(
            self.batch.take(groups.first_rows),
            self.weights.sum_into(
                lambda amount: add_at(amount, of_row, count, most),
                lambda item, codes: choose_at(item, codes, of_row, count),
                lambda: CheckedInts(np.bincount(of_row, minlength=count), most),
            ),
        )


def number_rows(batch: Batch) -> Batch:
    """The rows of a batch as the rows around a block, each of them by its place."""
    return Batch(batch.num_rows, batch.nodes, batch.edges, np.arange(batch.num_rows))


def concatenate_rows(parts: Sequence[WeightedRows]) -> WeightedRows:
    """All rows of several morsels."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights for part in parts]
    counts = None
    if any(each.counts is not None for each in weights):
        counts = _concatenate_ints(
            part.weights.counts or CheckedInts(np.ones(part.count, np.int64), 1) for part in parts
        )
    return WeightedRows(
        concatenate_batches([part.batch for part in parts]),
        Weights(
            counts,
            {
                item: _concatenate_ints(each.sums[item] for each in weights)
                for item in weights[0].sums
            },
            {
                item: np.concatenate([each.extremes[item] for each in weights])
                for item in weights[0].extremes
            },
        ),
    )


def sum_weights(parts: Sequence[WeightedRows]) -> Weights:
    """What all rows together stand for, as the weights of one row."""
    rows = concatenate_rows([WeightedRows(Batch(part.count), part.weights) for part in parts])
    return rows.merge_groups(Groups(np.zeros(rows.count, np.int64), np.zeros(1, np.int64))).weights


def _concatenate_ints(amounts: Iterable[CheckedInts]) -> CheckedInts:
    known = list(amounts)
    bound = max(each.bound for each in known)
    return CheckedInts(np.concatenate([each.values for each in known]), bound)
