"""What a caller names to merge or to start a branch from: a branch, a tag, or a commit."""

from __future__ import annotations

from omnigraph import versioning
from omnigraph.engine.session import Session
from omnigraph.errors import BranchNotFoundError, CommitNotFoundError
from omnigraph.ids import decode_ulid_ms


def resolve_source(session: Session, name: str) -> tuple[versioning.Snapshot, bool]:
    """The commit that a text names, and whether it is that of a branch."""
    try:
        return session.read_head(session.resources.branches.resolve(name)), True
    except BranchNotFoundError as missing:
        try:
            return session.resources.history.read_by_name(name), False
        except CommitNotFoundError:
            if decode_ulid_ms(name) is not None:
                raise
            missing.hint = "name a branch, a tag or the id of a commit"
        raise
