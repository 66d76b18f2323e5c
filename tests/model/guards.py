"""Row guards: the graph without what they hide."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from model.expressions import Entity, Params, is_seen
from model.store import Store
from omnigraph.query.typed_tree import TypeGuard

Guards = Sequence[TypeGuard]
# A node by its type and its id.
Node = tuple[str, str]
EdgesAt = dict[tuple[str, Node], list[Entity]]


def hide(graph: Store, is_left: Callable[[Entity], bool]) -> Store:
    """The nodes that are left, and the edges between them."""
    other = graph.copy()
    for name, table in graph.nodes.items():
        other.nodes[name] = {id_: node for id_, node in table.items() if is_left(node)}
    for name, table in graph.edges.items():
        type_ = graph.catalog.edges[name]
        sources, targets = other.nodes[type_.source], other.nodes[type_.target]
        between = (edge for edge in table.values() if edge["@src"] in sources)
        other.edges[name] = {edge["@id"]: edge for edge in between if edge["@dst"] in targets}
    return other


class SeenGraphs:
    """What is left of one graph by guards, computed once."""

    def __init__(self, graph: Store, params: Params) -> None:
        self._graph, self._params = graph, params
        self._known: dict[tuple[TypeGuard, ...], Store] = {(): graph}
        self._edges_at: dict[tuple[TypeGuard, ...], EdgesAt] = {}

    def get(self, guards: Guards) -> Store:
        """The graph that the reader of an operator sees."""
        key = tuple(guards)
        if key not in self._known:
            self._known[key] = hide(self._graph, lambda node: is_seen(node, key, self._params))
        return self._known[key]

    def list_edges(self, guards: Guards, place: tuple[str, Node]) -> list[Entity]:
        """The edges of a type that the reader sees at a node."""
        key = tuple(guards)
        if key not in self._edges_at:
            found = self._edges_at[key] = defaultdict(list)
            for name, table in self.get(guards).edges.items():
                type_ = self._graph.catalog.edges[name]
                for edge in table.values():
                    for end in {(type_.source, edge["@src"]), (type_.target, edge["@dst"])}:
                        found[name, end].append(edge)
        return self._edges_at[key].get(place, [])
