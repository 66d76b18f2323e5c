"""The proposals of a graph: listed, opened, and found by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from omnigraph.engine.graph_session import Session
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.proposals import Proposal, ProposalListing


class GraphProposals:
    """What a graph offers of its proposals."""

    _session: Session

    def proposals(self, *, status: str | None = None) -> list[ProposalListing]:
        """The proposals, the newest first: all of them, or those that are open, merged or closed.

        Without the right to read the graph, those that the actor may take part in are listed.
        """
        from omnigraph.engine.proposals.proposal_listings import list_proposals  # noqa: PLC0415

        return list_proposals(self._session, status)

    def proposal(self, number: int) -> Proposal:
        """A proposal by its number; whether it exists shows when it is used."""
        # Most programs propose nothing, and merge nothing.
        from omnigraph.engine.proposals import Proposal  # noqa: PLC0415

        return Proposal(cast("Graph", self), self._session, number)

    def open_proposal(
        self,
        source: str,
        *,
        title: str,
        target: str = MAIN_BRANCH,
        body: str | None = None,
        key: str | None = None,
    ) -> Proposal:
        """Propose to merge a branch into another one.

        A branch has one open proposal for each target. A call repeated with its `key` returns the
        proposal of the first one.
        """
        from omnigraph.engine.proposals.proposal_listings import open_proposal  # noqa: PLC0415

        number = open_proposal(self._session, (source, target), title=title, body=body, key=key)
        return self.proposal(number)
