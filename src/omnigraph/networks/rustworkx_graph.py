"""A snapshot as a graph of rustworkx, whose nodes and edges are dictionaries."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from omnigraph.errors import LibraryMissingError
from omnigraph.networks.numbered_graph import list_attributes, number_graph
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey


def to_rustworkx(
    view: View, types: Collection[TypeKey], *, has_vectors: bool = False
) -> Any:  # rustworkx is optional
    """A `PyDiGraph` of the nodes and edges of some types, numbered type by type."""
    try:
        # Only who asks for it needs it.
        import rustworkx  # noqa: PLC0415
    except ImportError as failure:
        raise LibraryMissingError("rustworkx") from failure
    found = number_graph(view, types, has_vectors=has_vectors)
    graph = rustworkx.PyDiGraph(multigraph=True)
    for nodes in found.nodes:
        graph.add_nodes_from(list_attributes(nodes.rows, nodes.type_name))
    for edges in found.edges:
        ends = edges.sources.tolist(), edges.targets.tolist()
        payloads = list_attributes(edges.rows, edges.type_name)
        graph.add_edges_from(list(zip(*ends, payloads, strict=True)))
    return graph
