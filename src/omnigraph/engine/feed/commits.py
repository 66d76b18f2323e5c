"""What one commit changed, a page at a time."""

from __future__ import annotations

from omnigraph.engine.entity_change.filters import Filters
from omnigraph.engine.feed.binding import build_commit_binding
from omnigraph.engine.feed.content import build_commit_content, require_commit_states
from omnigraph.engine.feed.packing import Limits, PageBuilder
from omnigraph.engine.feed.pages import ChangesPage, cause_of
from omnigraph.engine.feed.tokens import decode_commit_page, encode_commit_page
from omnigraph.engine.session import Session
from omnigraph.errors import CommitHasNoParentError, CommitNotFoundError
from omnigraph.versioning.record import Record


def read_commit_changes(
    session: Session, commit_id: str, *, page_token: str | None, filters: Filters, limits: Limits
) -> ChangesPage:
    """A page of what a commit changed relative to its first parent."""
    log = session.resources.log
    found = session.resources.history.find(commit_id)
    record = None if found is None else log.read(found[0].id, found[1])
    if found is None or not isinstance(record, Record):
        raise CommitNotFoundError(f"no live branch holds commit '{commit_id}'")
    if record.parent is None:
        raise CommitHasNoParentError(commit_id)
    states = require_commit_states(session, found[0], record)
    binding = build_commit_binding(session, states.after, commit_id, filters)
    after = None if page_token is None else decode_commit_page(page_token, binding)
    wanted = filters.resolve_in_any(states.after, states.before)
    filled = PageBuilder(session, limits).fill(build_commit_content(session, states, wanted), after)
    place = None if filled.rest is None else filled.rest.after
    token = None if place is None else encode_commit_page(binding, place)
    return ChangesPage(cause_of(record), filled.changes, token)
