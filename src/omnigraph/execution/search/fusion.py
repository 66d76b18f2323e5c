"""Reciprocal rank fusion: nodes by their ranks in two orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.execution.search.scored import ScoredNodes
from omnigraph.execution.source import RowIndices


def fuse_ranks(arms: Sequence[RowIndices], *, count: int, k: int) -> ScoredNodes:
    """The scores of those of `count` nodes that an arm ranks; an arm has the best node first."""
    scores = np.zeros(count)
    for arm in arms:
        scores[arm] += 1 / (k + np.arange(1, len(arm) + 1))
    places = np.flatnonzero(scores)
    return ScoredNodes(places, scores[places])
