"""Checked calls of table functions."""

from __future__ import annotations

from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast import EdgeWay
from omnigraph.query.table_functions import TableFunction
from omnigraph.query.typed_tree import Expr
from omnigraph.schema.property_types import PropertyType


@tree_node(frozen=True, slots=True)
class TableEdges:
    """The edges of a type, and how they are walked."""

    edge_type: str
    way: EdgeWay = EdgeWay.FORWARD


@tree_node(frozen=True, slots=True)
class TableCall:
    """A call: nodes of some types, sorted, the edges between them, and a value for every option.

    The values read no row. `weight` is a property of all edges.
    """

    function: TableFunction
    node_types: tuple[str, ...]
    edges: tuple[TableEdges, ...]
    weight: str | None
    options: tuple[str, ...]
    values: tuple[Expr, ...]


@tree_node(frozen=True, slots=True)
class TableVariable:
    """A variable for a column: a node of one type, or a value of a type."""

    column: int
    name: str
    type: str | PropertyType

    @property
    def is_node(self) -> bool:
        """Whether it is bound to nodes."""
        return isinstance(self.type, str)
