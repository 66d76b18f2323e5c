"""What graph algorithms cost beside rustworkx, and beside SciPy on a matrix that is there already.

    python benchmarks/algorithms.py [--nodes 100000] [--edges 1000000]

Ours is a query, from its text to its result, on types in memory. The others get their own graph
before they are timed, and give their own objects.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import rustworkx as rx
from queries_report import Line, Work, faster_by, print_lines, take_turns, time_ms
from scipy import sparse
from scipy.sparse import csgraph

import omnigraph
from omnigraph import Graph

OURS: Final = "omnigraph"
PEER: Final = "rustworkx"
RAW: Final = "scipy, raw"
SIZES: Final = ((20_000, 200_000), (100_000, 1_000_000))
ROUNDS: Final = 3
SEED: Final = 11
_TOLERANCE: Final = 1e-9
_DAMPING: Final = 0.85
_SCHEMA: Final = "node N { slug: String @key }\nedge E: N -> N"
_ID_DIGITS: Final = 7

Ends = npt.NDArray[np.int64]

_CALLS: Final = {
    "pagerank": ("$s", "pagerank(edges: e)"),
    "components": ("$c, $s", "components(edges: e)"),
    "components, strong": ("$c, $s", "components(edges: e, strong: true)"),
    "cores": ("$s", "cores(edges: e)"),
    "distances from one node": ("$o, $s", 'distances(edges: e, sources: ["0000000"])'),
    "degrees": ("$s", "degrees(edges: e)"),
    "triangles": ("$s", "triangles(edges: e)"),
    "communities, labels": ("$s", "communities(edges: e)"),
    "communities, louvain": ("$s", 'communities(edges: e, method: "louvain")'),
    "closeness, 16 samples": ("$s", "closeness(edges: e, samples: 16)"),
    "betweenness, 16 samples": ("$s", "betweenness(edges: e, samples: 16)"),
    "similar": ("$o, $s", "similar(edges: e)"),
}
# Those that take many seconds on the larger graph, where they are left out.
_SLOW: Final = frozenset({"communities, louvain", "similar"})
# Those that must not be slower than the best of the others.
_MUST_WIN: Final = frozenset({"pagerank", "components"})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--edges", type=int)
    given = parser.parse_args()
    sizes = SIZES if given.nodes is None else ((given.nodes, given.edges or 10 * given.nodes),)
    for nodes, edges in sizes:
        title = f"{nodes:,} nodes, {edges:,} edges"
        print_lines(title, (OURS, PEER, RAW), _lines(nodes, edges))


def _lines(nodes: int, edges: int) -> Iterator[Line]:
    starts, ends = _generate(nodes, edges)
    peers, raw = _peers(nodes, starts, ends), _raw(nodes, starts, ends)
    with tempfile.TemporaryDirectory() as folder, _load(Path(folder), nodes, starts, ends) as graph:
        names = [name for name in _CALLS if edges <= SIZES[0][1] or name not in _SLOW]
        for name in names:
            works: dict[str, Work] = {OURS: partial(_query, graph, name)}
            works |= {PEER: peers[name]} if name in peers else {}
            works |= {RAW: raw[name]} if name in raw else {}
            medians = take_turns({engine: [work] for engine, work in works.items()}, rounds=ROUNDS)
            if name in _MUST_WIN:
                others = {engine: ms for engine, ms in medians.items() if engine != RAW}
                line = faster_by(name, others, OURS, budget=1.0)
                yield Line(name, medians, line.measured, line.budget, line.is_met)
            else:
                yield Line(name, medians)
        build_ms = time_ms(lambda: _peer_graph(nodes, starts, ends))
        yield Line("to make the graph of rustworkx", {PEER: build_ms})


def _generate(nodes: int, edges: int) -> tuple[Ends, Ends]:
    """Edges between random nodes, of which the first have many more than the last."""
    generator = np.random.default_rng(SEED)
    starts = (nodes * generator.random(edges) ** 2).astype(np.int64)
    ends = (nodes * generator.random(edges) ** 3).astype(np.int64)
    order = generator.permutation(nodes)
    return order[starts], order[ends]


def _load(folder: Path, nodes: int, starts: Ends, ends: Ends) -> Graph:
    graph = omnigraph.create(f"{folder}/graph.omni", schema=_SCHEMA, durable=False)
    slugs = np.array([f"{each:0{_ID_DIGITS}}" for each in range(nodes)])
    frame = pa.table({"slug": slugs})
    pairs = pa.table({"from": slugs[starts], "to": slugs[ends]})
    graph.branch().load(frame, type="N", mode="append")
    graph.branch().load(pairs, type="E", mode="append")
    return graph


def _query(graph: Graph, name: str) -> object:
    variables, call = _CALLS[name]
    last = variables.rpartition(" ")[2]
    text = (
        f"query q() {{ match {{ for $a, {variables} in {call} }} return {{ max({last}) as m }} }}"
    )
    return graph.branch().query(text).to_arrow()


def _peer_graph(nodes: int, starts: Ends, ends: Ends) -> rx.PyDiGraph:
    graph = rx.PyDiGraph(multigraph=True)
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(list(zip(starts.tolist(), ends.tolist(), [1.0] * len(ends), strict=True)))
    return graph


def _peers(nodes: int, starts: Ends, ends: Ends) -> dict[str, Work]:
    graph = _peer_graph(nodes, starts, ends)
    simple = graph.to_undirected(multigraph=False)
    simple.remove_edges_from([(each, each) for each in range(nodes) if simple.has_edge(each, each)])
    return {
        # Without a function of Python for each edge, which all weigh 1.
        "pagerank": lambda: rx.pagerank(graph, alpha=_DAMPING, tol=_TOLERANCE, max_iter=200),
        "components": lambda: rx.weakly_connected_components(graph),
        "components, strong": lambda: rx.strongly_connected_components(graph),
        "cores": lambda: rx.core_number(simple),
        "distances from one node": lambda: rx.dijkstra_shortest_path_lengths(graph, 0, float),
    }


def _raw(nodes: int, starts: Ends, ends: Ends) -> dict[str, Work]:
    ones = np.ones(len(starts))
    arcs = sparse.csr_array((ones, (starts, ends)), shape=(nodes, nodes))
    connected: Callable[..., object] = csgraph.connected_components
    return {
        "pagerank": partial(_iterate, arcs.T.tocsr(), np.asarray(arcs.sum(axis=1)).reshape(-1)),
        "components": partial(connected, arcs, connection="weak"),
        "components, strong": partial(connected, arcs, connection="strong"),
        "distances from one node": lambda: csgraph.dijkstra(arcs, indices=0, unweighted=True),
    }


def _iterate(incoming: sparse.csr_array, leaving: npt.NDArray[np.float64]) -> object:
    nodes = len(leaving)
    share = np.divide(_DAMPING, leaving, out=np.zeros(nodes), where=leaving > 0)
    score, change = np.full(nodes, 1 / nodes), 1.0
    while change >= _TOLERANCE:
        found = incoming @ (score * share)
        found += (1 - found.sum()) / nodes
        change, score = float(np.abs(found - score).sum()), found
    return score


if __name__ == "__main__":
    main()
