"""What the operators of a pattern are made into: steps from rows to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern.rows import Kept, filtered, pruned
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Places
from omnigraph.query.typed import Expr


class Step(Protocol):
    """One operator over some rows; what it gives for a row does not depend on the others."""

    def fan_out(self, batch: Batch) -> Places | None:
        """About how many rows each row becomes; None if nobody knows, or at most about one."""

    def run(self, batch: Batch) -> Batch:
        """The rows that the given ones become."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Keeps the rows that satisfy conditions."""

    reading: Reading
    conditions: Sequence[Expr]
    kept: Kept

    def fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows whose conditions are true."""
        mask = self.reading.mask(batch, self.conditions)
        return filtered(pruned(batch, self.kept), mask)
