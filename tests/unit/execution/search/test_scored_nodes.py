"""The smallest scores, and scores in order."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.execution.search.scored_nodes import Scores, select_least, sort_scores


def kinds(count: int, seed: int) -> list[Scores]:
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(count)
    ties = random.integers(-2, 3, count).astype(np.float32)
    with_nan = np.where(random.random(count) < 0.3, np.nan, ties).astype(np.float32)
    infinite = np.where(random.random(count) < 0.3, np.inf, numbers).astype(np.float32)
    return [numbers, numbers.astype(np.float32), ties, with_nan, infinite]


@pytest.mark.parametrize("count", [0, 1, 30, 5_000])
@pytest.mark.parametrize("limit", [None, 0, 1, 7, 5_000])
def test_the_least_are_there_with_their_equals(count: int, limit: int | None) -> None:
    for scores in kinds(count, seed=count):
        found = select_least(scores, limit)
        if limit is None or limit >= count:
            assert found.tolist() == list(range(count))
        elif not limit:
            assert found.tolist() == []
        else:
            last = np.sort(scores)[limit - 1]
            everything = np.isnan(last)
            assert found.tolist() == [
                place for place, score in enumerate(scores) if everything or score <= last
            ]


@pytest.mark.parametrize("count", [0, 1, 2_000])
@pytest.mark.parametrize("spread", [1, 50, 10**8])
def test_equal_scores_are_ordered_by_id(count: int, spread: int) -> None:
    random = np.random.default_rng(count)
    ids = random.permutation(count).astype(np.int64) * spread
    for scores in kinds(count, seed=1):
        if np.isnan(scores).any():
            continue
        for each in (scores, -scores, np.zeros_like(scores), -np.zeros_like(scores)):
            assert sort_scores(each, ids).tolist() == np.lexsort([ids, each]).tolist()


def test_both_zeros_are_equal() -> None:
    scores = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    assert sort_scores(scores, np.array([3, 2, 1, 0])).tolist() == [3, 2, 1, 0]
