"""Calls of table functions, which `for` goes through."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast.query_expressions import Expr, Variable
from omnigraph.schema.ast import Name


class EdgeWay(StrEnum):
    """How edges are walked: as they are stored, against that, or both ways."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"


@tree_node(frozen=True, slots=True)
class EdgeMember:
    """`edge`, `^edge` or `<edge>`; the text of every edge is `*`."""

    text: str
    way: EdgeWay = EdgeWay.FORWARD
    is_quoted: bool = False
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def is_any(self) -> bool:
        """Whether it stands for every edge."""
        return self.text == "*" and not self.is_quoted


@tree_node(frozen=True, slots=True)
class EdgeSelection:
    """One member or several, `(a | ^b)`; `<a | b>` are members that are walked both ways."""

    members: tuple[EdgeMember, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NodeSelection:
    """`Type`, `(Type | Type)`, or `*` for every type, which has no names."""

    names: tuple[Name, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class TableArgument:
    """`name: value`."""

    name: Name
    value: Expr | NodeSelection | EdgeSelection
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class TableCall:
    """`function(name: value, …)`."""

    function: Name
    arguments: tuple[TableArgument, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class ForTable:
    """`for $a, $s in function(…)`: a row for each row of the table."""

    variables: tuple[Variable, ...]
    call: TableCall
    span: Span = field(default=NO_SPAN, compare=False)
