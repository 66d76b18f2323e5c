"""Maintenance of a branch that a caller asks for: indexes and fragments."""

from __future__ import annotations

from omnigraph.engine import optimize
from omnigraph.engine.graph_session import Session
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.versioning import Stream


class BranchMaintenance:
    """What changes how a branch is stored, and no answer."""

    _session: Session
    _stream: Stream

    def ensure_indices(self) -> IndexBuildResult:
        """Build the indexes that the schema declares and the branch lacks, in one commit.

        No answer depends on them. Those that cannot be built yet are returned as pending.
        """
        return optimize.ensure_indices(self._session, self._stream)

    def optimize(self) -> OptimizeResult:
        """Join small fragments and extend the declared indexes to all rows, in one commit."""
        return optimize.optimize(self._session, self._stream)
