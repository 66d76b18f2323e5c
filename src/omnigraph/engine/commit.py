"""A commit as data."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from omnigraph.changes.type_difference import Counts
from omnigraph.engine.arguments import datetime_of, to_microseconds
from omnigraph.html_views import HtmlDocument
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning import Bulk, Changed, ChangeSet, Maintenance, Spilled
from omnigraph.versioning.commit_clock import time_of
from omnigraph.versioning.record import MAIN_BRANCH, MergeDecision, Record


@dataclass(frozen=True, slots=True)
class Commit(HtmlDocument):
    """One atomic change of a whole graph: who made it, when, where, and on top of what.

    `version` counts the commits of a branch. `parents` are the ids of the commits it follows: none
    for the first one, two for a merge. A maintenance commit changed nothing a reader could see.
    `preferred` says of a merge whose side was taken in conflicts of which kind, and `decisions`
    what became of conflicts that were decided one by one. `key` is the idempotency key of the
    request that made it, `reverts` the id of the commit that it undoes.
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
    decisions: tuple[MergeDecision, ...] = ()
    key: str | None = None
    reverts: str | None = None

    def __repr__(self) -> str:
        by = "" if self.actor is None else f", actor={self.actor!r}"
        said = "" if self.message is None else f", message={reprlib.repr(self.message)}"
        return f"Commit({self.id!r}, {self.branch!r}, version={self.version}{by}{said})"

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
        if self.decisions:
            document["decisions"] = [_describe_decision(each) for each in self.decisions]
        if self.reverts is not None:
            document["reverts"] = self.reverts
        if self.is_maintenance:
            document["maintenance"] = True
        return document


def commit_about(record: Record, type_key: TypeKey, entity_id: str) -> Commit:
    """The commit that a record made, with only the decisions on one entity."""
    named = str(type_key), entity_id
    own = tuple(each for each in record.decisions if (each.type_key, each.entity_id) == named)
    return replace(commit_of(record), decisions=own)


def _describe_decision(decision: MergeDecision) -> JsonObject:
    kind, _, type_name = decision.type_key.partition(":")
    named = {} if decision.property is None else {"property": decision.property}
    return {
        "entity_kind": kind,
        "type_name": type_name,
        "entity_id": decision.entity_id,
        **named,
        "kind": decision.kind,
        "take": decision.take,
        "states": decision.states,
    }


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
        decisions=record.decisions,
        key=record.signature.key,
        reverts=record.signature.reverts,
    )


def counts_of(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many entities of which node and edge types a commit wrote."""
    written: dict[TypeKind, dict[str, int]] = {TypeKind.NODE: {}, TypeKind.EDGE: {}}
    for type_key, counts in changes_of(record).items():
        if count := counts.inserted + counts.updated:
            written[type_key.kind][type_key.name] = count
    return written[TypeKind.NODE], written[TypeKind.EDGE]


def changes_of(record: Record) -> dict[TypeKey, Counts]:
    """How many entities of which types a commit changed; a bulk load does not say what it ended."""
    found: dict[TypeKey, Counts] = {}
    for name, change in sorted(record.changes.items(), key=lambda each: each[0], reverse=True):
        if (counts := _count_changes(change)).total:
            kind, _, type_name = name.partition(":")
            found[TypeKey(TypeKind(kind), type_name)] = counts
    return found


def _count_changes(change: ChangeSet) -> Counts:
    match change:
        case Changed():
            return Counts(len(change.inserted), len(change.updated), len(change.deleted))
        case Spilled():
            return Counts(change.inserted, change.updated, change.deleted)
        case Bulk():
            return Counts(inserted=change.rows)
        case Maintenance():
            return Counts()
        case _:
            assert_never(change)
