"""Nodes of the trees that compilers build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# A text of many statements becomes many thousands of nodes, and Python takes five times as long
# to build one that is frozen. That none is ever changed is checked with the types.
if TYPE_CHECKING:
    from dataclasses import dataclass as tree_node
else:
    from dataclasses import dataclass

    def tree_node(**_frozen_and_slots: bool) -> Any:
        """A dataclass that is frozen for the type checker only."""
        return dataclass(slots=True, unsafe_hash=True)


__all__ = ["tree_node"]
