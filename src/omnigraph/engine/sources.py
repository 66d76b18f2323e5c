"""What a caller names to merge or to start a branch from: a branch, a tag, or a commit."""

from __future__ import annotations

from omnigraph import versioning
from omnigraph.engine.session import Session
from omnigraph.errors import BranchNotFound, CommitNotFound
from omnigraph.ids import ulid_milliseconds


def source_named(session: Session, name: str) -> tuple[versioning.Snapshot, bool]:
    """The commit that a text names, and whether it is that of a branch."""
    try:
        return session.head(session.resources.branches.resolve(name)), True
    except BranchNotFound as missing:
        try:
            return session.resources.history.by_name(name), False
        except CommitNotFound:
            if ulid_milliseconds(name) is not None:
                raise
            missing.hint = "name a branch, a tag or the id of a commit"
        raise
