"""Rows of enumerated variables, with the weights of all that hangs from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.groups import Groups
from omnigraph.execution.pattern.rows import concatenated, sliced
from omnigraph.execution.planner.amounts import Amount, Weights, added_at, chosen_at
from omnigraph.execution.source import Places


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, each of which stands for as many matches as its weight says."""

    batch: Batch
    weights: Weights = field(default_factory=Weights)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.batch.num_rows

    def take(self, places: Places) -> Rows:
        """Some rows."""
        return Rows(self.batch.take(places), self.weights.take(places))

    def sliced(self, first: int, last: int) -> Rows:
        """Rows that follow each other."""
        return Rows(sliced(self.batch, first, last), self.weights.take(np.arange(first, last)))

    def weighted(self, more: Weights) -> Rows:
        """The rows with more that hangs from them, without those that then stand for nothing."""
        weights = self.weights.times(more)
        if weights.counts is None:
            return Rows(self.batch, weights)
        kept = np.flatnonzero(weights.counts.values)
        found = Rows(self.batch, weights)
        return found if len(kept) == self.count else found.take(kept)

    def together(self, groups: Groups) -> Rows:
        """One row for each group, which stands for all that its rows stand for."""
        of_row, count, most = groups.of_row, groups.count, max(self.count, 1)
        return Rows(
            self.batch.take(groups.first_rows),
            self.weights.summed(
                lambda amount: added_at(amount, of_row, count, most),
                lambda item, codes: chosen_at(item, codes, of_row, count),
                lambda: Amount(np.bincount(of_row, minlength=count), most),
            ),
        )


def numbered(batch: Batch) -> Batch:
    """The rows of a batch as the rows around a block, each of them by its place."""
    return Batch(batch.num_rows, batch.nodes, batch.edges, np.arange(batch.num_rows))


def joined(parts: Sequence[Rows]) -> Rows:
    """All rows of several morsels."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights for part in parts]
    counts = None
    if any(each.counts is not None for each in weights):
        counts = _joined(
            part.weights.counts or Amount(np.ones(part.count, np.int64), 1) for part in parts
        )
    return Rows(
        concatenated([part.batch for part in parts]),
        Weights(
            counts,
            {item: _joined(each.sums[item] for each in weights) for item in weights[0].sums},
            {
                item: np.concatenate([each.extremes[item] for each in weights])
                for item in weights[0].extremes
            },
        ),
    )


def total(parts: Sequence[Rows]) -> Weights:
    """What all rows together stand for, as the weights of one row."""
    rows = joined([Rows(Batch(part.count), part.weights) for part in parts])
    return rows.together(Groups(np.zeros(rows.count, np.int64), np.zeros(1, np.int64))).weights


def _joined(amounts: Iterable[Amount]) -> Amount:
    known = list(amounts)
    bound = max(each.bound for each in known)
    return Amount(np.concatenate([each.values for each in known]), bound)
