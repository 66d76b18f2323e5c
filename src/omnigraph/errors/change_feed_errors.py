"""Errors of change feeds: a rejected token, collected history, a schema change between."""

from __future__ import annotations

from typing import Final

from omnigraph.errors.base_error import OmnigraphError

_RESTART_HINT: Final = (
    "start again: from a new baseline, or with the start 'beginning' or 'after:COMMIT' and the last"
    " commit that you have"
)


class ChangeCursorRejectedError(OmnigraphError):
    """A cursor or page token that does not belong here; `reason` says why."""

    code = "change_cursor_rejected"

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"change cursor rejected: {reason}", hint=hint or _RESTART_HINT)
        self.reason = reason


class CommitHasNoParentError(OmnigraphError):
    """The first commit of a graph: there is nothing to compare it with."""

    code = "commit_has_no_parent"

    def __init__(self, commit: str) -> None:
        super().__init__(
            f"commit '{commit}' is the first one: it has no parent to compare it with",
            hint="export the graph as of this commit",
        )
        self.commit = commit


class ChangeSchemaBoundaryError(OmnigraphError):
    """A commit whose entities cannot be compared, because the schema changed with it."""

    code = "change_schema_boundary"

    def __init__(self, commit: str, type_name: str, reason: str) -> None:
        super().__init__(
            f"commit '{commit}' changed the schema: type '{type_name}' {reason}",
            hint="take a new baseline, or go on after this commit",
        )
        self.commit = commit
        self.type_name = type_name


class ChangeFeedGapError(OmnigraphError):
    """History that was cleaned up before it was read."""

    code = "change_feed_gap"

    def __init__(self, first_unreadable_commit: str, *, cursor: str | None = None) -> None:
        super().__init__(
            f"the changes of commit '{first_unreadable_commit}' are gone: history was cleaned up",
            hint="take a new baseline and follow from its cursor",
        )
        self.first_unreadable_commit = first_unreadable_commit
        self.cursor = cursor


class EntityNotFoundError(OmnigraphError):
    """No entity of that type and id is in the graph."""

    code = "entity_not_found"

    def __init__(self, type_name: str, entity_id: str, *, hint: str | None = None) -> None:
        super().__init__(f"there is no {type_name} '{entity_id}'", hint=hint)
        self.type_name = type_name
        self.entity_id = entity_id
