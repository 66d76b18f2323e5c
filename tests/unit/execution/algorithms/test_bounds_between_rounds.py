"""Every algorithm asks between its rounds whether the query may go on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from omnigraph.errors import QueryTimeoutError, ResourceLimitError
from omnigraph.execution.algorithms.centrality import compute_betweenness, compute_closeness
from omnigraph.execution.algorithms.core_numbers import compute_cores
from omnigraph.execution.algorithms.distance_blocks import DistanceSearch
from omnigraph.execution.algorithms.edge_graph import EdgeArrays, EdgeGraph
from omnigraph.execution.algorithms.label_propagation import find_communities_by_labels
from omnigraph.execution.algorithms.louvain import find_louvain_communities
from omnigraph.execution.algorithms.pagerank import PageRankOptions, compute_pagerank
from omnigraph.execution.query_budget import Budget

# A path, on which everything takes many rounds.
NODES = 400
CHECKS = 30


class ShortBudget(Budget):
    """A budget whose time is over after so many checks."""

    checks = 0

    def check_interrupts(self) -> None:
        """Stop at the last of the checks."""
        self.checks += 1
        if self.checks > CHECKS:
            raise QueryTimeoutError(0)


def path_of(budget: Budget) -> EdgeGraph:
    starts = np.arange(NODES - 1, dtype=np.int32)
    return EdgeGraph(NODES, [EdgeArrays(starts, starts + 1, np.full(NODES - 1, 2.0))], budget)


def find_distances(graph: EdgeGraph) -> object:
    search = DistanceSearch(graph.build_lengths(), True, graph.budget)
    return list(search.iter_blocks(np.zeros(1, np.int32)))


ALGORITHMS: dict[str, Callable[[EdgeGraph], object]] = {
    "pagerank": lambda graph: compute_pagerank(graph, PageRankOptions(1.0, 0.0, 1_000)),
    "labels": lambda graph: find_communities_by_labels(graph, rounds=1_000),
    "louvain": lambda graph: find_louvain_communities(graph, rounds=1_000, resolution=1.0),
    "cores": compute_cores,
    "distances": find_distances,
    "closeness": lambda graph: compute_closeness(graph, samples=4),
    "betweenness": lambda graph: compute_betweenness(graph, samples=4),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_ends_when_its_time_is_over(name: str) -> None:
    with pytest.raises(QueryTimeoutError):
        ALGORITHMS[name](path_of(ShortBudget()))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_asks_for_memory_first(name: str) -> None:
    with pytest.raises(ResourceLimitError):
        ALGORITHMS[name](path_of(Budget(memory_bytes=4_000)))
