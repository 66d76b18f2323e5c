"""What the change feed answers: blocks of changes, each with the commit that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.engine.entity_changes import EntityChange
from omnigraph.versioning.commit_clock import time_of
from omnigraph.versioning.record import Record

if TYPE_CHECKING:
    from omnigraph.schema.schema_shape import JsonObject


@dataclass(frozen=True, slots=True)
class Cause:
    """The commit that made changes; `parents` are the ids of the commits it follows.

    `authored_at` counts the microseconds since 1970.
    """

    commit_id: str
    parents: tuple[str, ...]
    branch: str
    actor: str | None
    authored_at: int

    def to_json(self) -> JsonObject:
        """The document of a cause; what does not exist has no member."""
        parent, merged = (*self.parents, None, None)[:2]
        members = {
            "graph_commit_id": self.commit_id,
            "parent_commit_id": parent,
            "merged_parent_commit_id": merged,
            "authored_branch": self.branch,
            "actor_id": self.actor,
            "authored_at": self.authored_at,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Block:
    """What one commit changed, or a part of it if it is larger than a page.

    Nodes come before edges, types in the order of their opaque ids, entities in that of their ids.
    `cursor` is the position after the commit: with it, a feed goes on with the next one. It is None
    where the rest of the commit is on the next page.
    """

    cause: Cause
    changes: tuple[EntityChange, ...]
    cursor: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no more changes of the commit follow."""
        return self.cursor is not None

    def to_json(self) -> JsonObject:
        """The document of a block."""
        return {
            "cause": self.cause.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """A page of what one commit changed; without a token, the last one."""

    cause: Cause
    changes: tuple[EntityChange, ...]
    next_page_token: str | None = None

    def to_json(self) -> JsonObject:
        """The document of `commit changes`: CommitChangesOutput."""
        document: JsonObject = {
            "cause": self.cause.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        return document


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A page of a poll: either a token of the next one, or a cursor and whether it is the end.

    A poll returns the commits that were there when it began; `caught_up` says that these were all.
    """

    blocks: tuple[Block, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> JsonObject:
        """The document of `changes poll`: ChangeFeedOutput."""
        document: JsonObject = {"blocks": [block.to_json() for block in self.blocks]}
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        else:
            document |= {"cursor": self.cursor, "caught_up": self.caught_up}
        return document


def cause_of(record: Record) -> Cause:
    """The commit of a record as the cause of its changes."""
    merged = () if record.merged is None else (record.merged.commit,)
    return Cause(
        commit_id=record.commit,
        parents=(() if record.parent is None else (record.parent,)) + merged,
        branch=record.branch,
        actor=record.signature.actor,
        authored_at=time_of(record),
    )
