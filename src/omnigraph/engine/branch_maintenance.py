"""Maintenance of a branch that a caller asks for: indexes, fragments and vectors of texts."""

from __future__ import annotations

from collections.abc import Callable, Collection

from omnigraph.engine import optimize
from omnigraph.engine.graph_session import Session
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.engine.vector_status import EmbedResult, VectorStatus, fill_vectors, read_status
from omnigraph.versioning import Stream


class BranchMaintenance:
    """What others would do in the background, done when it is asked for."""

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

    def embed(
        self,
        *,
        wait: bool = False,
        types: Collection[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> EmbedResult:
        """Make the vectors of all texts that wait for one, in commits of their own.

        A text that changes meanwhile waits again. With `wait`, a provider that is down is waited
        for. Texts that it refuses are counted, and asked for again by the next call. `progress`
        gets the count of vectors that are committed.
        """
        report = progress or (lambda _: None)
        return fill_vectors(self._session, self._stream, waits=wait, types=types, progress=report)

    def embed_status(self) -> VectorStatus:
        """How many `@embed` vectors are ready, pending and failed, by property."""
        return read_status(self._session, self._stream)
