"""What one commit changed, a page at a time."""

from __future__ import annotations

from omnigraph.engine.entity_change.filters import Filters
from omnigraph.engine.feed.binding import commit_binding
from omnigraph.engine.feed.content import commit_content, told_states
from omnigraph.engine.feed.packing import Limits, Page
from omnigraph.engine.feed.pages import ChangesPage, cause_of
from omnigraph.engine.feed.tokens import commit_page, read_commit_page
from omnigraph.engine.session import Session
from omnigraph.errors import CommitHasNoParent, CommitNotFound
from omnigraph.versioning.record import Record


def commit_changes(
    session: Session, commit_id: str, *, page_token: str | None, filters: Filters, limits: Limits
) -> ChangesPage:
    """A page of what a commit changed relative to its first parent."""
    log = session.resources.log
    found = session.resources.history.find(commit_id)
    record = None if found is None else log.read(found[0].id, found[1])
    if found is None or not isinstance(record, Record):
        raise CommitNotFound(f"no live branch holds commit '{commit_id}'")
    if record.parent is None:
        raise CommitHasNoParent(commit_id)
    states = told_states(session, found[0], record)
    binding = commit_binding(session, states.after, commit_id, filters)
    after = None if page_token is None else read_commit_page(page_token, binding)
    wanted = filters.at(states.after, states.before)
    filled = Page(session, limits).fill(commit_content(session, states, wanted), after)
    place = None if filled.rest is None else filled.rest.after
    token = None if place is None else commit_page(binding, place)
    return ChangesPage(cause_of(record), filled.changes, token)
