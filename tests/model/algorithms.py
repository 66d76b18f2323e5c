"""Table functions over dictionaries: every definition as it is worded, whatever it costs."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, inf, isfinite
from typing import Any

from model.expressions import At, Entity, Params
from model.store import Store
from omnigraph.errors import ExecutionError, NegativeWeightError, ParameterError
from omnigraph.query.ast import EdgeWay
from omnigraph.query.table_functions import TABLE_SIGNATURES, TableFunction
from omnigraph.query.typed_table_calls import TableCall, TableEdges

Node = tuple[str, str]
Arcs = dict[Node, dict[Node, float]]
_LENGTHS = {TableFunction.DISTANCES, TableFunction.CLOSENESS, TableFunction.BETWEENNESS}


@dataclass
class Network:
    """Nodes by type and id in order, and edges with weights: two ends, and whether both ways."""

    nodes: list[Node]
    edges: list[tuple[Node, Node, float, bool]] = field(default_factory=list)
    is_weighted: bool = False

    def arcs(self) -> Arcs:
        """The weight of the edges from each node to each other one."""
        found: Arcs = {node: {} for node in self.nodes}
        for start, end, weight, is_both in self.edges:
            found[start][end] = found[start].get(end, 0) + weight
            if is_both and start != end:
                found[end][start] = found[end].get(start, 0) + weight
        return found

    def lengths(self) -> Arcs:
        """The length of the shortest edge from each node to each other one."""
        found: Arcs = {node: {} for node in self.nodes}
        for start, end, weight, is_both in self.edges:
            for first, second in ((start, end), (end, start))[: 1 + is_both]:
                found[first][second] = min(found[first].get(second, inf), weight)
        return found

    def undirected(self) -> Arcs:
        """The weight of the edges between two nodes, at both of them."""
        return Network(self.nodes, [(*each[:3], True) for each in self.edges]).arcs()

    def simple(self) -> dict[Node, set[Node]]:
        """The other nodes next to each."""
        return {node: ends.keys() - {node} for node, ends in self.undirected().items()}


def table(call: TableCall, graph: Store, params: Params) -> list[tuple[Any, ...]]:
    """The rows of a call; a node is its entity."""
    options = {}
    for name, expr in zip(call.options, call.values, strict=True):
        option = TABLE_SIGNATURES[call.function].find_option(name)
        options[name] = At({}, params)(expr)
        if option is None or option.find_problem(options[name]) is not None:
            raise ParameterError(f"{name}: {option and option.find_problem(options[name])}")
    network = _network(call, graph)
    if options.get("sources") is not None:
        options["sources"] = _sources(call, network, options["sources"])
    rows = _FUNCTIONS[call.function](network, options)

    def shown(value: Any) -> Any:
        return graph.nodes[value[0]][value[1]] if isinstance(value, tuple) else value

    return [tuple(map(shown, row)) for row in rows]


def _network(call: TableCall, graph: Store) -> Network:
    nodes = [(name, id_) for name in call.node_types for id_ in graph.nodes[name]]
    found = Network(sorted(nodes), is_weighted=call.weight is not None)
    for selected in call.edges:
        type_ = graph.catalog.edges[selected.edge_type]
        for edge in graph.edges[selected.edge_type].values():
            weight = _weight(call, selected, edge)
            if weight is None:
                continue
            ends = (type_.source, edge["@src"]), (type_.target, edge["@dst"])
            first, second = reversed(ends) if selected.way is EdgeWay.BACKWARD else ends
            found.edges.append((first, second, weight, selected.way is EdgeWay.BOTH))
    return found


def _weight(call: TableCall, selected: TableEdges, edge: Entity) -> float | None:
    if call.weight is None:
        return 1.0
    weight = edge[call.weight]
    if weight is None:
        return None if call.function in _LENGTHS else 1.0
    if not (weight >= 0 and isfinite(weight)):
        name = call.weight
        raise NegativeWeightError(selected.edge_type, edge["@id"], property_name=name, value=weight)
    return float(weight)


def _sources(call: TableCall, network: Network, ids: tuple[str, ...]) -> list[Node]:
    found = set()
    for id_ in ids:
        is_plain = len(call.node_types) == 1
        node = (call.node_types[0], id_) if is_plain else (*id_.split("/", 1), "")[:2]
        if node not in network.nodes:
            raise ExecutionError(f"sources: there is no node '{id_}'")
        found.add(node)
    return sorted(found)


def _name(node: Node) -> str:
    return "/".join(node)


Rows = Iterator[tuple[Any, ...]]


def _pagerank(network: Network, options: dict[str, Any]) -> Rows:
    arcs, damping = network.arcs(), options["damping"]
    sources = network.nodes if options["sources"] is None else options["sources"]
    restart = {node: (node in sources) / len(sources) for node in network.nodes}
    score = restart
    for _ in range(options["rounds"]):
        found = dict.fromkeys(network.nodes, 0.0)
        lost = 1 - damping
        for node, ends in arcs.items():
            leaving = sum(ends.values())
            if leaving:
                for end, weight in ends.items():
                    found[end] += damping * score[node] * weight / leaving
            else:
                lost += damping * score[node]
        found = {node: each + lost * restart[node] for node, each in found.items()}
        change = sum(abs(found[node] - score[node]) for node in found)
        score = found
        if change < options["tolerance"]:
            break
    whole = sum(score.values())
    yield from ((node, each / whole) for node, each in score.items())


def _reached(start: Node, ends: dict[Node, Any]) -> set[Node]:
    found, waiting = {start}, [start]
    while waiting:
        new = set(ends[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _components(network: Network, options: dict[str, Any]) -> Rows:
    arcs = network.arcs() if options["strong"] else network.undirected()
    reached = {node: _reached(node, arcs) for node in network.nodes}
    for node in network.nodes:
        own = [other for other in reached[node] if node in reached[other]]
        yield node, _name(min(own)), len(own)


def communities(network: Network, options: dict[str, Any]) -> Rows:
    find = _louvain if options["method"] == "louvain" else _labels
    labels = find(network, options)
    groups = defaultdict(list)
    for node in network.nodes:
        groups[labels[node]].append(node)
    yield from ((node, _name(min(groups[labels[node]]))) for node in network.nodes)


def _labels(network: Network, options: dict[str, Any]) -> dict[Node, Node]:
    edges = network.undirected()
    labels = {node: node for node in network.nodes}
    for _ in range(options["rounds"]):
        chosen = {}
        for node in network.nodes:
            votes = defaultdict(float, {labels[node]: 1.0})
            for other, weight in edges[node].items():
                votes[labels[other]] += weight
            chosen[node] = min(votes, key=lambda label: (-votes[label], label))
        if chosen == labels:
            break
        labels = chosen
    return labels


def _louvain(network: Network, options: dict[str, Any]) -> dict[Node, Node]:
    edges, labels = network.undirected(), {node: node for node in network.nodes}
    while True:
        found = _one_level(edges, options)
        # A community has the place of its label among labels: the next level goes by that order.
        labels = {node: found[label] for node, label in labels.items()}
        if len(set(found.values())) == len(found):
            return labels
        merged: Arcs = {label: {} for label in sorted(set(found.values()))}
        for node, ends in edges.items():
            row = merged[found[node]]
            for other, weight in ends.items():
                row[found[other]] = row.get(found[other], 0) + weight
        edges = merged


def _one_level(edges: Arcs, options: dict[str, Any]) -> dict[Node, Node]:
    """Nodes one by one, each to the community that gains most, until none moves."""
    labels = {node: node for node in edges}
    weights = {node: sum(ends.values()) for node, ends in edges.items()}
    totals, whole = dict(weights), sum(weights.values())
    for _ in range(options["rounds"] if whole else 0):
        is_moved = False
        for node in sorted(edges):
            totals[labels[node]] -= weights[node]
            shared = defaultdict(float, {labels[node]: 0.0})
            for other, weight in edges[node].items():
                if other != node:
                    shared[labels[other]] += weight
            gains = {
                label: each - options["resolution"] * weights[node] * totals[label] / whole
                for label, each in shared.items()
            }
            gains[labels[node]] += 1e-12 * weights[node]
            best = min(gains, key=lambda label: (-gains[label], label))
            is_moved |= best != labels[node]
            labels[node] = best
            totals[best] += weights[node]
        if not is_moved:
            break
    return labels


def _degrees(network: Network, _options: dict[str, Any]) -> Rows:
    arcs, edges = network.arcs(), network.undirected()
    for node in network.nodes:
        into = sum(node in ends for ends in arcs.values())
        yield node, len(arcs[node]), into, float(sum(edges[node].values()))


def _distances(network: Network, source: Node) -> dict[Node, float]:
    """The shortest ways from a node, by Bellman and Ford."""
    found, arcs = {source: 0.0}, network.lengths()
    for _ in network.nodes:
        for start, ends in arcs.items():
            for end, weight in ends.items():
                length = found.get(start, inf) + (weight if network.is_weighted else 1)
                if length < found.get(end, inf):
                    found[end] = length
    return found


def _sample(network: Network, options: dict[str, Any]) -> list[Node]:
    return network.nodes[:: max(ceil(len(network.nodes) / options["samples"]), 1)]


def _closeness(network: Network, options: dict[str, Any]) -> Rows:
    sources = _sample(network, options)
    found = {source: _distances(network, source) for source in sources}
    for node in network.nodes:
        others = [source for source in sources if source != node]
        lengths = [found[source][node] for source in others if node in found[source]]
        is_far = sum(lengths) > 0
        yield node, len(lengths) / len(others) * len(lengths) / sum(lengths) if is_far else 0.0


def _betweenness(network: Network, options: dict[str, Any]) -> Rows:
    arcs, size = network.lengths(), len(network.nodes)
    if network.is_weighted and any(0 in ends.values() for ends in arcs.values()):
        raise ExecutionError("betweenness needs weights above zero")
    scores, sources = dict.fromkeys(network.nodes, 0.0), _sample(network, options)
    lengths = {node: _distances(network, node) for node in network.nodes}

    def is_last(start: Node, before: Node, end: Node) -> bool:
        """Whether a shortest way ends with this edge."""
        step = arcs[before].get(end, inf) if network.is_weighted else end in arcs[before] or inf
        return lengths[start].get(before, inf) + step == lengths[start][end]

    def ways(start: Node, end: Node) -> int:
        """How many shortest ways there are."""
        before = [node for node in network.nodes if start != end and is_last(start, node, end)]
        return sum(ways(start, node) for node in before) if start != end else 1

    for source in sources:
        for end in lengths[source].keys() - {source}:
            for node in lengths[source].keys() - {source, end}:
                whole = lengths[source][node] + lengths[node].get(end, inf)
                if whole == lengths[source][end]:
                    shares = ways(source, node) * ways(node, end) / ways(source, end)
                    scores[node] += shares
    pairs = (size - 1) * (size - 2) * len(sources) / size if size > 2 else 1
    yield from ((node, score / pairs) for node, score in scores.items())


def _triangles(network: Network, _options: dict[str, Any]) -> Rows:
    simple = network.simple()
    for node in network.nodes:
        pairs = list(combinations(simple[node], 2))
        found = sum(second in simple[first] for first, second in pairs)
        yield node, found, found / len(pairs) if pairs else 0.0


def _cores(network: Network, _options: dict[str, Any]) -> Rows:
    left, level = network.simple(), 0
    cores: dict[Node, int] = {}
    while left:
        low = [node for node, ends in left.items() if len(ends & left.keys()) <= level]
        cores |= dict.fromkeys(low, level)
        for node in low:
            del left[node]
        level += not low
    yield from ((node, cores[node]) for node in network.nodes)


def _all_distances(network: Network, options: dict[str, Any]) -> Rows:
    most = inf if options["max"] is None else options["max"]
    for source in options["sources"]:
        for node, length in _distances(network, source).items():
            if length <= most:
                yield node, source, length if network.is_weighted else int(length)


def _similar(network: Network, options: dict[str, Any]) -> Rows:
    ends = {node: set(found) for node, found in network.arcs().items()}
    for node in network.nodes:
        scored = []
        for other in network.nodes:
            common = len(ends[node] & ends[other])
            if other != node and common:
                least = min(len(ends[node]), len(ends[other]))
                whole = least if options["metric"] == "overlap" else len(ends[node] | ends[other])
                scored.append((-common / whole, other))
        best = [each for each in sorted(scored) if -each[0] >= options["min"]]
        yield from ((node, other, -score) for score, other in best[: options["k"]])


_FUNCTIONS: dict[TableFunction, Callable[[Network, dict[str, Any]], Rows]] = {
    TableFunction.PAGERANK: _pagerank,
    TableFunction.COMPONENTS: _components,
    TableFunction.COMMUNITIES: communities,
    TableFunction.DEGREES: _degrees,
    TableFunction.BETWEENNESS: _betweenness,
    TableFunction.CLOSENESS: _closeness,
    TableFunction.TRIANGLES: _triangles,
    TableFunction.CORES: _cores,
    TableFunction.DISTANCES: _all_distances,
    TableFunction.SIMILAR: _similar,
}
