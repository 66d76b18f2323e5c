"""A snapshot as a source: its types by number, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from omnigraph.execution.sources.topology.topology_edges import DenseEdges
from omnigraph.execution.sources.topology.topology_nodes import DenseNodes
from omnigraph.execution.sources.topology.topology_rows import DenseRows
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind

RowsOf: TypeAlias = Callable[[View, TypeKey], DenseRows]


class TopologySource:
    """The types of a snapshot, whole in memory; for one query, so it keeps what it was given."""

    def __init__(self, view: View, rows_of: RowsOf) -> None:
        self.view = view
        self._rows_of = rows_of
        self._nodes: dict[str, DenseNodes] = {}
        self._edges: dict[str, DenseEdges] = {}

    def get_nodes(self, type_name: str) -> DenseNodes:
        """The nodes of a type."""
        found = self._nodes.get(type_name)
        if found is None:
            key = TypeKey(TypeKind.NODE, type_name)
            made = DenseNodes(self._rows_of(self.view, key), self.view.get_shape(key), self.view)
            found = self._nodes.setdefault(type_name, made)
        return found

    def get_edges(self, type_name: str) -> DenseEdges:
        """The edges of a type."""
        found = self._edges.get(type_name)
        if found is None:
            key = TypeKey(TypeKind.EDGE, type_name)
            type_ = self.view.catalog.edges[type_name]
            made = DenseEdges(
                self._rows_of(self.view, key),
                self.view.get_shape(key),
                self.get_nodes(type_.source),
                self.get_nodes(type_.target),
            )
            found = self._edges.setdefault(type_name, made)
        return found
