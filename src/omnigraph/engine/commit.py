"""A commit as data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from omnigraph.engine.arguments import datetime_of, to_microseconds
from omnigraph.schema.shape import JsonObject
from omnigraph.versioning.record import MAIN_BRANCH, Record
from omnigraph.versioning.stamps import time_of


@dataclass(frozen=True, slots=True)
class Commit:
    """One atomic change of a whole graph: who made it, when, where, and on top of what.

    `version` counts the commits of a branch. `parents` are the ids of the commits it follows: none
    for the first one, two for a merge. A maintenance commit changed nothing a reader could see.
    `preferred` says of a merge whose side was taken in conflicts of which kind. `key` is the
    idempotency key of the request that made it, `reverts` the id of the commit that it undoes.
    """

    id: str
    branch: str
    version: int
    parents: tuple[str, ...]
    actor: str | None
    message: str | None
    created_at: datetime
    is_maintenance: bool = False
    preferred: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    reverts: str | None = None

    def to_json(self) -> JsonObject:
        """The document that commands and servers answer for a commit."""
        parent, merged = (*self.parents, None, None)[:2]
        document: JsonObject = {
            "graph_commit_id": self.id,
            "graph_branch": None if self.branch == MAIN_BRANCH else self.branch,
            "graph_manifest_version": self.version,
            "parent_commit_id": parent,
            "merged_parent_commit_id": merged,
            "actor_id": self.actor,
            "created_at": to_microseconds(self.created_at),
        }
        if self.message is not None:
            document["message"] = self.message
        if self.preferred:
            document["preferred"] = dict(self.preferred)
        if self.reverts is not None:
            document["reverts"] = self.reverts
        return document


def commit_of(record: Record) -> Commit:
    """The commit that a record made."""
    merged = () if record.merged is None else (record.merged.commit,)
    return Commit(
        id=record.commit,
        branch=record.branch,
        version=record.seq,
        parents=(() if record.parent is None else (record.parent,)) + merged,
        actor=record.signature.actor,
        message=record.signature.message,
        created_at=datetime_of(time_of(record)),
        is_maintenance=record.is_maintenance,
        preferred=tuple(sorted(record.preferred.items())),
        key=record.signature.key,
        reverts=record.signature.reverts,
    )
