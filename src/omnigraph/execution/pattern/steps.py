"""What the operators of a pattern are made into: steps from rows to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern.rows import KeptVariables, filter_rows, prune_variables
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.source import RowIndices
from omnigraph.query.typed import Expr


class PhysicalOperator(Protocol):
    """One operator over some rows; what it gives for a row does not depend on the others."""

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """About how many rows each row becomes; None if nobody knows, or at most about one."""

    def run(self, batch: Batch) -> Batch:
        """The rows that the given ones become."""


@dataclass(frozen=True, slots=True)
class FilterOperator:
    """Keeps the rows that satisfy conditions."""

    context: ExecutionContext
    conditions: Sequence[Expr]
    kept: KeptVariables

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows whose conditions are true."""
        mask = self.context.evaluate_mask(batch, self.conditions)
        return filter_rows(prune_variables(batch, self.kept), mask)
