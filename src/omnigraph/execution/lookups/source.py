"""A snapshot by numbers, of which only what a query meets is read."""

from __future__ import annotations

from omnigraph.execution.budget import Budget
from omnigraph.execution.lookups.edges import IndexEdges
from omnigraph.execution.lookups.nodes import IndexNodes
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind


class IndexSource:
    """The source of one query, for one thread at a time: it keeps all it has read.

    The budget of the query holds the memory of it.
    """

    def __init__(self, view: View, budget: Budget | None = None) -> None:
        self.view = view
        self._budget = budget or Budget()
        self._nodes: dict[str, IndexNodes] = {}
        self._edges: dict[str, IndexEdges] = {}

    def get_nodes(self, type_name: str) -> IndexNodes:
        """The nodes of a type."""
        found = self._nodes.get(type_name)
        if found is None:
            found = IndexNodes(self.view, TypeKey(TypeKind.NODE, type_name), self._budget)
            self._nodes[type_name] = found
        return found

    def get_edges(self, type_name: str) -> IndexEdges:
        """The edges of a type."""
        found = self._edges.get(type_name)
        if found is None:
            type_ = self.view.catalog.edges[type_name]
            found = IndexEdges(
                self.view,
                TypeKey(TypeKind.EDGE, type_name),
                self._budget,
                sources=self.get_nodes(type_.source),
                targets=self.get_nodes(type_.target),
            )
            self._edges[type_name] = found
        return found
