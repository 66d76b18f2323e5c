"""Guards of types: which nodes the reader of a graph may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.lang.tree_nodes import tree_node

if TYPE_CHECKING:
    from omnigraph.query.typed_tree import Expr
    from omnigraph.schema.property_types import PropertyType

# The variable that stands for the node under test in the condition of a guard.
GUARDED: Final = "it"


@tree_node(frozen=True, slots=True)
class TypeGuard:
    """A type of which the reader sees the nodes whose condition, about `GUARDED`, is true."""

    type_name: str
    condition: Expr


@tree_node(frozen=True, slots=True)
class GuardTest:
    """Whether the reader sees a node of one of several types; those without a guard are seen."""

    variable: str
    guards: tuple[TypeGuard, ...]
    type: PropertyType
