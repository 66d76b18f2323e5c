"""What tokens of a graph, a branch or a commit are bound to."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.engine.entity_change.filters import BoundFilters, Filters
from omnigraph.engine.feed.tokens import OTHER_FILTERS, Binding
from omnigraph.engine.session import Session
from omnigraph.errors import ChangeCursorRejectedError
from omnigraph.execution.view import View
from omnigraph.versioning.record import GENESIS_SEQ, MAIN, Record, Stream


def build_branch_binding(
    session: Session, view: View, stream: Stream, wanted: BoundFilters | None
) -> Binding:
    """The binding of a feed: to the branch, and to its life, which ends when it is deleted.

    Filters bind by the types that their names mean, so that a cursor outlives a renaming.
    """
    return Binding(
        graph=view.accepted.domain,
        genesis=_find_genesis(session),
        filters=None if wanted is None else wanted.digest,
        branch=stream.branch,
        life=stream.id,
    )


def build_commit_binding(session: Session, view: View, commit: str, filters: Filters) -> Binding:
    """The binding of the pages of one commit."""
    return Binding(
        graph=view.accepted.domain,
        genesis=_find_genesis(session),
        filters=filters.digest,
        commit=commit,
    )


def resolve_filters(
    filters: Filters, view: View, then: Callable[[], View], made_with: str | None
) -> BoundFilters:
    """What the names of filters mean: now or, if that made no such token, in a former view."""
    if filters.are_known_at(view):
        now = filters.resolve_in_first(view)
        if made_with in (None, now.digest):
            return now
    former = then()
    for views in ((view, former), (former, view)):
        wanted = filters.resolve_in_first(*views)
        if made_with in (None, wanted.digest):
            return wanted
    raise ChangeCursorRejectedError(OTHER_FILTERS)


def _find_genesis(session: Session) -> str | None:
    """The first commit of the graph; None once it was cleaned up."""
    entry = session.resources.log.read(MAIN.id, GENESIS_SEQ)
    return entry.commit if isinstance(entry, Record) else None
