"""Clauses for paths."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast.query_expressions import Variable
from omnigraph.query.ast.table_calls import EdgeSelection

if TYPE_CHECKING:
    from omnigraph.query.ast.query_declarations import HopBounds


class PathSelector(StrEnum):
    """Which of the paths between two nodes are found."""

    SHORTEST = "shortest"
    ALL_SHORTEST = "all shortest"
    ALL = "all"


@tree_node(frozen=True, slots=True)
class PathClause:
    """`path $p = [selector] $source edges [{m,n}] $target`."""

    variable: Variable
    selector: PathSelector | None
    source: Variable
    edges: EdgeSelection
    bounds: HopBounds | None
    target: Variable
    span: Span = field(default=NO_SPAN, compare=False)
