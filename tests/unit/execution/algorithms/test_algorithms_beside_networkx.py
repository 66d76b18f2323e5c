"""Each algorithm on random graphs gives what NetworkX gives, or the model of this suite."""

from __future__ import annotations

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pytest

from model import algorithms as model
from omnigraph.execution.algorithms.centrality import compute_betweenness, compute_closeness
from omnigraph.execution.algorithms.connected_components import find_components
from omnigraph.execution.algorithms.core_numbers import compute_cores
from omnigraph.execution.algorithms.distance_blocks import DistanceSearch
from omnigraph.execution.algorithms.edge_graph import EdgeArrays, EdgeGraph
from omnigraph.execution.algorithms.label_propagation import find_communities_by_labels
from omnigraph.execution.algorithms.louvain import find_louvain_communities
from omnigraph.execution.algorithms.neighbour_similarity import SimilarityOptions, find_similar
from omnigraph.execution.algorithms.pagerank import PageRankOptions, compute_pagerank
from omnigraph.execution.algorithms.triangle_counts import count_triangles
from omnigraph.execution.query_budget import Budget

NODES, EDGES = 120, 420


def random_graph(
    seed: int, *, is_weighted: bool = False, is_undirected: bool = False
) -> tuple[EdgeGraph, nx.DiGraph]:
    """Edges that are distinct, as NetworkX sums no parallel ones; some nodes have none."""
    generator = np.random.default_rng(seed)
    pairs = np.unique(generator.integers(0, NODES - 9, (EDGES, 2)), axis=0)
    if is_undirected:
        pairs = np.unique(np.sort(pairs), axis=0)
    pairs = pairs[generator.permutation(len(pairs))]
    weights = generator.integers(1, 9, len(pairs)) / 2 if is_weighted else None
    ends = pairs.astype(np.int32).T
    edges = EdgeArrays(ends[0], ends[1], weights, is_undirected)
    other = nx.Graph() if is_undirected else nx.DiGraph()
    other.add_nodes_from(range(NODES))
    known = np.ones(len(pairs)) if weights is None else weights
    for (start, end), weight in zip(pairs.tolist(), known.tolist(), strict=True):
        other.add_edge(start, end, weight=weight)
    return EdgeGraph(NODES, [edges], Budget()), other


def in_order(found: dict[int, float]) -> list[float]:
    return [found[node] for node in range(NODES)]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_pagerank_is_that_of_networkx(is_weighted: bool) -> None:
    graph, other = random_graph(1, is_weighted=is_weighted)
    sources = np.array([3, 5], np.int32)
    for given in (None, sources):
        found = compute_pagerank(graph, PageRankOptions(0.85, 1e-13, 500, given))
        start = None if given is None else dict.fromkeys(given.tolist(), 1)
        expected = nx.pagerank(other, personalization=start, tol=1e-15, max_iter=1000)
        assert found == pytest.approx(in_order(expected), abs=1e-12)


@pytest.mark.parametrize("is_strong", [False, True])
def test_components_are_those_of_networkx(is_strong: bool) -> None:
    graph, other = random_graph(2)
    find = nx.strongly_connected_components if is_strong else nx.weakly_connected_components
    expected = {node: min(part) for part in find(other) for node in part}
    assert find_components(graph, is_strong=is_strong).tolist() == in_order(expected)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("is_undirected", [False, True])
def test_centralities_are_those_of_networkx(is_weighted: bool, is_undirected: bool) -> None:
    graph, other = random_graph(3, is_weighted=is_weighted, is_undirected=is_undirected)
    weight = "weight" if is_weighted else None
    between = nx.betweenness_centrality(other, weight=weight)
    close = nx.closeness_centrality(other, distance=weight)
    assert compute_betweenness(graph, samples=NODES) == pytest.approx(in_order(between), abs=1e-12)
    assert compute_closeness(graph, samples=NODES) == pytest.approx(in_order(close), abs=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_distances_are_those_of_networkx(is_weighted: bool) -> None:
    graph, other = random_graph(4, is_weighted=is_weighted)
    search = DistanceSearch(graph.build_lengths(), is_weighted, graph.budget)
    (block,) = search.iter_blocks(np.arange(NODES, dtype=np.int32))
    expected = dict(nx.all_pairs_dijkstra_path_length(other, weight="weight"))
    for source in range(NODES):
        lengths = [expected[source].get(node, np.inf) for node in range(NODES)]
        assert block.distances[source].tolist() == lengths


def test_triangles_and_cores_are_those_of_networkx() -> None:
    graph, directed = random_graph(5)
    other = nx.Graph(directed)
    other.remove_edges_from(list(nx.selfloop_edges(other)))
    found = count_triangles(graph)
    assert found.counts.tolist() == in_order(nx.triangles(other))
    assert found.clustering == pytest.approx(in_order(nx.clustering(other)))
    assert compute_cores(graph).tolist() == in_order(nx.core_number(other))


def test_similar_nodes_share_neighbours() -> None:
    graph, other = random_graph(6)
    found = find_similar(graph, SimilarityOptions(is_overlap=False, count=3, score_min=0.1))
    expected = []
    for node in range(NODES):
        own, scored = set(other[node]), []
        for peer in range(NODES):
            common = own & set(other[peer])
            if peer != node and common:
                scored.append((-len(common) / len(own | set(other[peer])), peer))
        best = [each for each in sorted(scored) if -each[0] >= 0.1][:3]
        expected += [(node, peer, -score) for score, peer in best]
    rows = (found.nodes.tolist(), found.others.tolist(), found.scores.tolist())
    assert list(zip(*rows, strict=True)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_communities_are_those_of_one_node_after_the_other(seed: int) -> None:
    graph, other = random_graph(seed, is_weighted=seed % 2 == 1)
    nodes = [("N", f"{node:03}") for node in range(NODES)]
    edges = [(nodes[a], nodes[b], data["weight"], False) for a, b, data in other.edges(data=True)]
    network = model.Network(nodes, edges)
    for method in ("labels", "louvain"):
        options = {"rounds": 20, "resolution": 1.0, "method": method}
        rows = model.communities(network, options)
        expected = [int(name.removeprefix("N/")) for _, name in rows]
        if method == "labels":
            found = find_communities_by_labels(graph, rounds=20)
        else:
            found = find_louvain_communities(graph, rounds=20, resolution=1.0)
            parts = [set(np.flatnonzero(found == each)) for each in np.unique(found)]
            quality = nx.community.modularity(nx.Graph(other.to_undirected()), parts)
            assert quality > 0.3
        assert found.tolist() == expected


def test_the_order_of_edges_changes_no_bit() -> None:
    graph, _ = random_graph(7, is_weighted=True)
    (edges,) = graph.parts
    assert edges.weights is not None
    thirds = edges.weights / 3
    ends = np.concatenate([edges.starts, edges.starts]), np.concatenate([edges.ends, edges.ends])
    doubled = EdgeArrays(*ends, np.concatenate([thirds, thirds * 7]))
    order = np.random.default_rng(8).permutation(len(doubled.starts))
    assert doubled.weights is not None
    shuffled = EdgeArrays(doubled.starts[order], doubled.ends[order], doubled.weights[order])
    found = [
        (
            compute_pagerank(each, PageRankOptions(0.85, 1e-9, 100)).tobytes(),
            compute_betweenness(each, samples=16).tobytes(),
            find_louvain_communities(each, rounds=20, resolution=1.0).tobytes(),
        )
        for each in (EdgeGraph(NODES, [part], Budget()) for part in (doubled, shuffled))
    ]
    assert found[0] == found[1]
