"""Shortest paths: walks from a node, a hop at a time, each as a list of edges."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from model.expressions import Entity, Row
from model.store import Store
from omnigraph.errors import ResourceLimitError
from omnigraph.query import logical_plan as plan
from omnigraph.query.ast import PathSelector

# The type and the id of a node.
Node = tuple[str, str]


class Work:
    """How many edges were walked, and how many may be."""

    def __init__(self, limit: int = 100_000_000) -> None:
        self.done, self.limit = 0, limit

    def spend(self) -> None:
        """Count an edge."""
        self.done += 1
        if self.done > self.limit:
            raise ResourceLimitError("path_work_limit", limit=self.limit, actual=self.done)


class Walk(NamedTuple):
    """Nodes and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]


def expand(graph: Store, op: plan.PathExpand, row: Row, work: Work) -> Iterator[Row]:
    """What a row is given: a path, its length, its rank and the node that it leads to."""
    if None in (row[op.source], row.get(op.target, "")):
        return
    find = simple_walks if op.selector is PathSelector.ALL else shortest_walks
    found = find(graph, op, (op.source_type, row[op.source]["@id"]), work)
    for (name, id_), walks in found.items():
        is_wanted = name == op.target_type and (
            not op.target_is_bound or row[op.target]["@id"] == id_
        )
        for rank, walk in enumerate(walks if op.is_all else walks[:1]):
            if is_wanted and op.minimum <= len(walk.edges) <= op.maximum:
                values: Row = {op.length: len(walk.edges), op.rank: rank}
                node = graph.nodes[name][id_]
                yield values | {op.target: node, op.variable: path_of(graph, walk)}


def shortest_walks(
    graph: Store, op: plan.PathExpand, start: Node, work: Work
) -> dict[Node, list[Walk]]:
    """The shortest walks from a node to each node, those to one node by their edges.

    Back to the start there is none, or a loop, as the least number of edges wants it.
    """
    here = Walk((start,), ())
    hops = _hops(graph, op, here, work) if op.maximum else []
    loops = sorted(walk for walk in hops if walk.nodes[-1] == start)
    found = {start: [here] if op.minimum == 0 else loops}
    frontier, length = [here], 0
    while frontier and length < op.maximum:
        length += 1
        reached: dict[Node, list[Walk]] = {}
        for walk in frontier:
            for longer in _hops(graph, op, walk, work):
                if longer.nodes[-1] not in found:
                    reached.setdefault(longer.nodes[-1], []).append(longer)
        found |= {
            node: sorted(walks, key=lambda walk: walk.edges) for node, walks in reached.items()
        }
        frontier = [walk for walks in reached.values() for walk in walks]
    return found


def simple_walks(
    graph: Store, op: plan.PathExpand, start: Node, work: Work
) -> dict[Node, list[Walk]]:
    """The walks from a node that meet none twice, within the bounds; back to it as above."""
    found = {
        start: shortest_walks(graph, replace(op, maximum=min(op.maximum, 1)), start, work)[start]
    }
    frontier = [Walk((start,), ())]
    for length in range(1, op.maximum + 1):
        longer = (each for walk in frontier for each in _hops(graph, op, walk, work))
        frontier = [walk for walk in longer if walk.nodes[-1] not in walk.nodes[:-1]]
        for walk in frontier if length >= op.minimum else ():
            found.setdefault(walk.nodes[-1], []).append(walk)
    return {node: sorted(walks, key=lambda walk: walk.edges) for node, walks in found.items()}


def _hops(graph: Store, op: plan.PathExpand, walk: Walk, work: Work) -> Iterator[Walk]:
    """A walk with each edge at its end."""
    type_name, id_ = walk.nodes[-1]
    for step in op.steps:
        near, far = ("@dst", "@src") if step.is_reversed else ("@src", "@dst")
        for edge in graph.edges[step.edge_type].values():
            is_again = step.is_return and edge["@src"] == edge["@dst"]
            if step.source_type == type_name and edge[near] == id_ and not is_again:
                work.spend()
                node = (step.target_type, edge[far])
                yield Walk((*walk.nodes, node), (*walk.edges, (step.edge_type, edge["@id"])))


def path_of(graph: Store, walk: Walk) -> dict[str, Any]:
    """A walk as the value of a path."""
    nodes: list[Entity] = [graph.nodes[name][id_] for name, id_ in walk.nodes]
    edges: list[Entity] = [graph.edges[name][id_] for name, id_ in walk.edges]
    return {"nodes": nodes, "edges": edges, "length": len(edges)}
