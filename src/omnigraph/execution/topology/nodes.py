"""The nodes of one type, whole in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.execution.expressions import Params
from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.conditions import satisfying
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.query.typed import Expr


@dataclass(frozen=True)
class DenseNodes(DenseEntities):
    """Nodes by number."""

    def where(self, conditions: Sequence[Expr], params: Params) -> Numbers:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        return satisfying(self, conditions, params)
