"""Approvals: who allowed which change. None is rewritten; revisions record which were used."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Final

from omnigraph.clusters.cluster_findings import ClusterFindings, ClusterStopped
from omnigraph.clusters.cluster_layout import APPROVALS, build_approval_path, parse_approval_path
from omnigraph.clusters.cluster_plan import Change, Plan
from omnigraph.clusters.stored_documents import (
    JsonObject,
    parse_object,
    require_fields,
    require_number,
    require_optional_text,
    require_text,
)
from omnigraph.errors import StorageError
from omnigraph.ids import generate_ulid
from omnigraph.storage import Objects

VERSION: Final = 1
_TEXTS: Final = frozenset(
    {
        *("approval_id", "resource", "operation", "reason", "bound_config_digest"),
        *("approved_by", "created_at"),
    }
)
_OPTIONAL_TEXTS: Final = frozenset({"bound_before_digest", "bound_after_digest"})


@dataclass(frozen=True, slots=True)
class Approval:
    """Consent to one change, bound to the digests of the moment it was given."""

    schema_version: int
    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str

    def to_json(self) -> JsonObject:
        """The stored document."""
        return asdict(self)


def make_approval(change: Change, config_digest: str, actor: str, *, now: str) -> Approval:
    """Consent of an actor to one change of the plan of now."""
    assert change.approval_reason is not None, "only a gated change is approved"
    return Approval(
        VERSION,
        generate_ulid(),
        change.resource,
        str(change.operation),
        change.approval_reason,
        config_digest,
        change.before,
        change.after,
        actor,
        now,
    )


def put_approval(objects: Objects, approval: Approval) -> None:
    """Store an approval; its id is fresh, so nothing can be there."""
    path = build_approval_path(approval.approval_id)
    data = json.dumps(approval.to_json(), indent=2).encode() + b"\n"
    try:
        objects.put_new(path, data)
    except StorageError as error:
        if objects.get(path) != data:
            raise ClusterStopped("approval_write_error", path, error.message) from error


def read_approvals(objects: Objects) -> list[Approval]:
    """Every approval, in the order of their ids."""
    found = []
    for entry in objects.list(APPROVALS):
        if parse_approval_path(entry.path) is not None:
            data = objects.get(entry.path)
            if data is not None:
                found.append(_decode_approval(entry.path, data))
    return found


def _decode_approval(path: str, data: bytes) -> Approval:
    try:
        document = parse_object(data)
        version = require_number(document.pop("schema_version", None), "schema_version")
        if version != VERSION:
            raise ClusterStopped("unsupported_approval_version", path, f"version {version}")
        require_fields(document, _TEXTS | _OPTIONAL_TEXTS, "the approval", optional=_OPTIONAL_TEXTS)
        for name in _TEXTS:
            require_text(document[name], name)
        for name in _OPTIONAL_TEXTS:
            document[name] = require_optional_text(document.get(name), name)
        return Approval(VERSION, **document)
    except ValueError as error:
        raise ClusterStopped("invalid_approval_artifact", path, str(error)) from error


def select_valid(
    approvals: Iterable[Approval], used: Collection[str], plan: Plan, findings: ClusterFindings
) -> dict[str, str]:
    """The id of a valid approval for each gated change that has one; stale ones are reported."""
    gated = {each.resource: each for each in plan.changes if each.is_gated}
    valid: dict[str, str] = {}
    stale: dict[str, str] = {}
    for each in approvals:
        change = gated.get(each.resource)
        if change is None or each.approval_id in used:
            continue
        bound = each.bound_config_digest, each.bound_before_digest, each.bound_after_digest
        is_bound = bound == (plan.config_digest, change.before, change.after)
        if is_bound and each.operation == change.operation:
            valid[each.resource] = each.approval_id
        else:
            stale[each.resource] = each.approval_id
    for resource, approval_id in stale.items():
        if resource not in valid:
            message = f"approval {approval_id} is for another configuration: approve it again"
            findings.add_warning("approval_stale", resource, message)
    return valid
