"""Nodes with scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.sources.graph_source import RowIndices

Scores: TypeAlias = npt.NDArray[Any]  # Any: 32-bit floats, or 64-bit ones of a fusion

# To find the least of many, every so many-th is examined first, if those are many times more.
_SAMPLE_STEP: Final = 16
_SAMPLED_MIN: Final = 8
_PACKED_MAX: Final = 2**32

# How much larger than their number ids may be to be looked up in an array.
_IDS_SPARSE: Final = 64


class ScoredNodes(NamedTuple):
    """Those of some nodes that have a score, as places among them, and their scores."""

    indices: RowIndices
    scores: Scores


def make_empty() -> ScoredNodes:
    """No node has a score."""
    return ScoredNodes(np.empty(0, np.int64), np.empty(0, np.float32))


def select_least(scores: Scores, limit: int | None) -> RowIndices:
    """The places of the smallest scores, with all that equal the last of them."""
    if limit is None or limit >= len(scores):
        return np.arange(len(scores))
    if not limit:
        return np.empty(0, np.int64)
    places = _sample_least(scores, limit)
    among = scores if places is None else scores[places]
    last = np.partition(among, limit - 1)[limit - 1]
    # A NaN is greater than every number, here as in the order of values.
    kept = np.arange(len(among)) if np.isnan(last) else np.flatnonzero(among <= last)
    return kept if places is None else places[kept]


def _sample_least(scores: Scores, limit: int) -> RowIndices | None:
    """Places among which the smallest scores are, found from a sample; None if it does not help."""
    sample = scores[::_SAMPLE_STEP]
    if limit * _SAMPLED_MIN > len(sample):
        return None
    # Of the sample, at least so many are no greater; of all scores, a few times as many.
    reach = np.partition(sample, limit - 1)[limit - 1]
    return None if np.isnan(reach) else np.flatnonzero(scores <= reach)


def sort_scores(scores: Scores, ids: npt.NDArray[np.int64]) -> RowIndices:
    """The places of scores, smallest first, and equal ones by the order of their ids.

    Ids are different numbers that are not negative.
    """
    highest = int(ids.max(initial=0))
    if scores.dtype != np.float32 or highest >= _PACKED_MAX or highest > _IDS_SPARSE * len(ids):
        return np.lexsort([ids, scores])
    # To sort numbers is several times as fast as to sort the places of numbers.
    packed = (_encode_scores(scores) << np.uint64(32)) | ids.astype(np.uint64)
    packed.sort()
    places = np.empty(highest + 1, np.int64)
    places[ids] = np.arange(len(ids))
    return places.take((packed & np.uint64(_PACKED_MAX - 1)).view(np.int64))


def _encode_scores(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Integers of 32 bits in the order of floats that are numbers; both zeros have the same."""
    bits = (scores + np.float32(0)).view(np.uint32)
    flips = np.where(bits >> 31, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
    return (bits ^ flips).astype(np.uint64)


def fuse_ranks(arms: Sequence[RowIndices], *, count: int, k: int) -> ScoredNodes:
    """The scores of those of `count` nodes that an arm ranks; an arm has the best node first."""
    scores = np.zeros(count)
    for arm in arms:
        scores[arm] += 1 / (k + np.arange(1, len(arm) + 1))
    places = np.flatnonzero(scores)
    return ScoredNodes(places, scores[places])
