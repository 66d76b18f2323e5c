"""What tokens of a graph, a branch or a commit are bound to."""

from __future__ import annotations

from omnigraph.engine.feed.filters import Filters
from omnigraph.engine.feed.tokens import Binding
from omnigraph.engine.session import Session
from omnigraph.execution.view import View
from omnigraph.versioning.record import GENESIS_SEQ, MAIN, Record, Stream


def branch_binding(session: Session, view: View, stream: Stream, filters: Filters) -> Binding:
    """The binding of a feed: to the branch, and to its life, which ends when it is deleted."""
    return Binding(
        graph=view.accepted.domain,
        genesis=_genesis(session),
        filters=filters.digest,
        branch=stream.branch,
        life=stream.id,
    )


def commit_binding(session: Session, view: View, commit: str, filters: Filters) -> Binding:
    """The binding of the pages of one commit."""
    return Binding(
        graph=view.accepted.domain,
        genesis=_genesis(session),
        filters=filters.digest,
        commit=commit,
    )


def _genesis(session: Session) -> str | None:
    """The first commit of the graph; None once it was cleaned up."""
    entry = session.resources.log.read(MAIN.id, GENESIS_SEQ)
    return entry.commit if isinstance(entry, Record) else None
