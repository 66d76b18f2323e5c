"""Documents of a server as the results that a graph in this process returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omnigraph.changes.type_difference import Counts
from omnigraph.client.error_decoding import decode_conflict
from omnigraph.engine.arguments import datetime_of
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff import TypeSummary
from omnigraph.engine.entity_changes import EntityChange
from omnigraph.engine.entity_history import EntityVersion
from omnigraph.engine.feed import Block, Cause, ChangesPage, FeedPage
from omnigraph.engine.retention import Tag
from omnigraph.engine.write_results import (
    LoadResult,
    MergePlan,
    MergeResult,
    MergeSummary,
    MutationResult,
    TableInfo,
)
from omnigraph.execution.optimizer.explain_plan import Explained, ExplainedRow
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.record import MAIN_BRANCH, MergeDecision
from omnigraph.writers.maintain import IndexState, IndexStatus
from omnigraph.writers.merge.property_rules import MixedEntity

JsonObject = Mapping[str, Any]  # Any: a JSON document


def decode_commit(document: JsonObject) -> Commit:
    """A commit; its key is not in a document."""
    parents = (document["parent_commit_id"], document["merged_parent_commit_id"])
    return Commit(
        id=document["graph_commit_id"],
        branch=document["graph_branch"] or MAIN_BRANCH,
        version=document["graph_manifest_version"],
        parents=tuple(each for each in parents if each is not None),
        actor=document["actor_id"],
        message=document.get("message"),
        created_at=datetime_of(document["created_at"]),
        is_maintenance=document.get("maintenance", False),
        preferred=tuple(sorted(document.get("preferred", {}).items())),
        decisions=tuple(map(_decode_decision, document.get("decisions", ()))),
        reverts=document.get("reverts"),
    )


def _decode_decision(document: JsonObject) -> MergeDecision:
    key = TypeKey(TypeKind(document["entity_kind"]), document["type_name"])
    names = ("kind", "take", "states")
    named = str(key), document["entity_id"], document.get("property")
    return MergeDecision(*named, *(document[name] for name in names))


def decode_index(document: JsonObject) -> IndexStatus:
    """What a table has of a declared index."""
    kind, _, name = document["type_key"].partition(":")
    return IndexStatus(
        TypeKey(TypeKind(kind), name),
        document["property"],
        document["covered_rows"],
        document["total_rows"],
        IndexState(document["state"]),
        document["reason"],
    )


def decode_optional_commit(document: JsonObject | None) -> Commit | None:
    """A commit, where there is one."""
    return None if document is None else decode_commit(document)


def decode_summary(document: JsonObject) -> TypeSummary:
    """How many entities of a type changed."""
    names = ("inserted", "updated", "deleted")
    counts = Counts(*(document[name] for name in names))
    return TypeSummary(document["kind"], document["type"]["id"], document["type"]["name"], counts)


def decode_explained(document: JsonObject) -> Explained:
    """How a read is answered."""
    return Explained(tuple(ExplainedRow(**each) for each in document["operators"]))


def decode_version(line: bytes) -> EntityVersion:
    """What a commit made of an entity."""
    document = json.loads(line)
    images = document.get("before"), document.get("after")
    commit, changed = decode_commit(document["commit"]), tuple(document["changed"])
    return EntityVersion(commit, document["op"], *images, changed)


def decode_load(document: JsonObject, *, uri: str) -> LoadResult:
    """What a load did."""
    return LoadResult(
        uri=uri,
        branch=document["branch"],
        mode=document["mode"],
        nodes={each["name"]: each["entities_loaded"] for each in document["nodes"]},
        edges={each["name"]: each["entities_loaded"] for each in document["edges"]},
        commit=decode_commit(document["commit"]),
        rejected=document.get("rejected"),
        is_dry=document.get("dry_run", False),
    )


def decode_mutation(document: JsonObject) -> MutationResult:
    """What a mutation did."""
    return MutationResult(
        branch=document["branch"],
        query_name=document["query_name"],
        affected_nodes=document["affected_nodes"],
        affected_edges=document["affected_edges"],
        actor=document["actor_id"],
        commit=decode_optional_commit(document["commit"]),
        is_dry=document.get("dry_run", False),
    )


def decode_merge(document: JsonObject) -> MergeResult:
    """What became of a merge."""
    return MergeResult(
        outcome=document["outcome"],
        source=document["source"],
        target=document["target"],
        actor=document["actor_id"],
        commit=decode_optional_commit(document.get("commit")),
        done=_decode_merged(document),
        branch_deleted=document.get("branch_deleted"),
        branch_delete_error=document.get("branch_delete_error"),
    )


def decode_plan(document: JsonObject) -> MergePlan:
    """What a merge would do."""
    return MergePlan(
        outcome=document["outcome"],
        source=document["source"],
        target=document["target"],
        base=decode_commit(document["base"]),
        done=_decode_merged(document),
        conflicts=tuple(map(decode_conflict, document["merge_conflicts"])),
        conflict_count=document["conflict_count"],
        ours=document.get("ours_commit_id", ""),
        theirs=document.get("theirs_commit_id", ""),
    )


def decode_tag(document: JsonObject) -> Tag:
    """A name that keeps a commit."""
    return Tag(
        name=document["name"],
        commit_id=document["graph_commit_id"],
        branch=document["graph_branch"] or MAIN_BRANCH,
        version=document["graph_manifest_version"],
        created_at=datetime_of(document["created_at"]),
        actor=document["actor_id"],
    )


def _decode_merged(document: JsonObject) -> MergeSummary:
    return MergeSummary(
        counts={
            TypeKey(TypeKind(each["entity_kind"]), each["type_name"]): Counts(
                each["inserted"], each["updated"], each["deleted"]
            )
            for each in document.get("changes", ())
        },
        schema_steps=tuple(document.get("schema_changes", ())),
        warnings=tuple(document.get("warnings", ())),
        preferred=document.get("preferred", {}),
        mixed=tuple(
            MixedEntity(
                TypeKey(TypeKind(each["entity_kind"]), each["type_name"]),
                each["entity_id"],
                tuple(each["ours"]),
                tuple(each["theirs"]),
            )
            for each in document.get("mixed", ())
        ),
        mixed_count=document.get("mixed_count", 0),
    )


def decode_table(document: JsonObject) -> TableInfo:
    """Where a type lies."""
    return TableInfo(
        kind=document["entity_kind"],
        type_name=document["type_name"],
        path=document["dataset_path"],
        version=f"{document['published_dataset_version']:016x}",
        rows=document["entity_count"],
    )


def decode_changes_page(document: JsonObject) -> ChangesPage:
    """A page of what a commit changed."""
    changes = tuple(map(decode_change, document["changes"]))
    return ChangesPage(_decode_cause(document["cause"]), changes, document.get("next_page_token"))


def decode_feed_page(document: JsonObject) -> FeedPage:
    """A page of a poll; only its last block is known to have the cursor of the page."""
    last = len(document["blocks"]) - 1
    cursor = document.get("cursor")
    blocks = tuple(
        _decode_block(each, cursor if place == last else None)
        for place, each in enumerate(document["blocks"])
    )
    token = document.get("next_page_token")
    return FeedPage(blocks, token, cursor=cursor, caught_up=document.get("caught_up"))


def _decode_block(document: JsonObject, cursor: str | None) -> Block:
    changes = tuple(map(decode_change, document["changes"]))
    return Block(_decode_cause(document["cause"]), changes, cursor)


def _decode_cause(document: JsonObject) -> Cause:
    parents = (document.get("parent_commit_id"), document.get("merged_parent_commit_id"))
    return Cause(
        commit_id=document["graph_commit_id"],
        parents=tuple(each for each in parents if each is not None),
        branch=document["authored_branch"],
        actor=document.get("actor_id"),
        authored_at=document["authored_at"],
    )


def decode_change(document: JsonObject) -> EntityChange:
    """One entity that changed."""
    return EntityChange(
        kind=document["kind"],
        type_id=document["type"]["id"],
        type_name=document["type"]["name"],
        id=document["id"],
        op=document["op"],
        before=document.get("before"),
        after=document.get("after"),
    )
