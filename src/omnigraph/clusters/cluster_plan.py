"""The difference between a configuration and a revision, as data, and what may be done about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from omnigraph.clusters.addresses import Kind, build_address, graph_of, kind_of, name_of
from omnigraph.clusters.desired import Desired, Resource, digest_document, list_needs
from omnigraph.clusters.revision import AppliedResource, RevisionContent, choose_life
from omnigraph.clusters.stored_documents import JsonObject

APPROVAL_REQUIRED: Final = "approval_required"
NOT_APPLIED: Final = "dependency_not_applied"
DELETES_DATA: Final = "deletes a graph and everything in it"
OVERWRITES_DATA: Final = "replaces all entities of the types that it loads"
# What an apply adds: which life of its id a graph is, and who allowed a pipeline to overwrite.
_OF_APPLIES: Final = frozenset({"life", "approval"})


class Operation(StrEnum):
    """What happens to a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Disposition(StrEnum):
    """What an apply does with a change."""

    APPLIED = "applied"
    DERIVED = "derived"
    DEFERRED = "deferred"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Change:
    """What changes about one resource."""

    resource: str
    kind: Kind
    operation: Operation
    before: str | None
    after: str | None
    disposition: Disposition = Disposition.APPLIED
    reason: str | None = None
    metadata_change: str | None = None
    migration: JsonObject | None = None
    downstream: tuple[str, ...] = ()
    approval_id: str | None = None
    # Which actors gain and lose what: for policies.
    grants: JsonObject | None = None
    # What a pipeline reads and writes, and when.
    pipeline: JsonObject | None = None

    @property
    def is_gated(self) -> bool:
        """Whether it needs an approval of its own."""
        return self.approval_reason is not None

    @property
    def approval_reason(self) -> str | None:
        """What it does that needs an approval of its own."""
        if self.deletes_graph:
            return DELETES_DATA
        return OVERWRITES_DATA if self.overwrites else None

    @property
    def overwrites(self) -> bool:
        """Whether the runs of the pipeline replace what is in their targets."""
        return self.pipeline is not None and bool(self.pipeline.get("overwrites"))

    @property
    def deletes_graph(self) -> bool:
        """Whether a graph and its data end."""
        return self.kind is Kind.GRAPH and self.operation is Operation.DELETE

    @property
    def is_pending(self) -> bool:
        """Whether something is left to do after the apply."""
        return self.disposition in (Disposition.BLOCKED, Disposition.DEFERRED)

    def block(self, reason: str) -> Change:
        """The same change, which is not made for a reason."""
        return replace(self, disposition=Disposition.BLOCKED, reason=reason)

    def to_json(self) -> JsonObject:
        """The document of a change; what does not apply is left out."""
        optional = {
            "before_digest": self.before,
            "after_digest": self.after,
            "reason": self.reason,
            "binding_change": True if self.metadata_change == "policy_bindings" else None,
            "metadata_change": self.metadata_change,
            "migration": self.migration,
            "grants": self.grants,
            "pipeline": self.pipeline,
        }
        return {
            "resource": self.resource,
            "operation": str(self.operation),
            **{name: value for name, value in optional.items() if value is not None},
            "disposition": str(self.disposition),
            "reversibility": self._describe_reversibility(),
            "effect": self._describe_effect(),
            "downstream": list(self.downstream),
            "approval": self._describe_approval(),
        }

    def summarize(self) -> JsonObject:
        """What a revision keeps of a change; digests follow from the revisions themselves."""
        reason = {} if self.reason is None else {"reason": self.reason}
        return {
            "resource": self.resource,
            "operation": str(self.operation),
            "disposition": str(self.disposition),
            **reason,
        }

    def _describe_reversibility(self) -> str:
        if self.is_gated:
            return "irreversible_data_loss"
        if self.kind is Kind.SCHEMA and self.operation is Operation.UPDATE:
            return "recoverable"
        is_narrower = self.kind is Kind.QUERY and self.operation is Operation.DELETE
        return "compatibility_narrowing" if is_narrower else "reversible"

    def _describe_effect(self) -> str:
        if self.disposition is Disposition.DERIVED or self.kind in (Kind.PROVIDER, Kind.SOURCE):
            return "config_only"
        if self.kind is Kind.PIPELINE:
            return "data_plane_schedule"
        is_text = self.kind in (Kind.QUERY, Kind.POLICY, Kind.DASHBOARD)
        return "catalog" if is_text else "graph_definition"

    def _describe_approval(self) -> str:
        if not self.is_gated:
            return "none"
        return "human_required" if self.approval_id is None else "already_satisfied"


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes from a revision to a configuration, sorted by resource."""

    base_revision: int
    base_cas: str | None
    config_digest: str
    changes: tuple[Change, ...]

    @property
    def digest(self) -> str:
        """What an apply records of its plan, and what a saved plan is compared by."""
        return digest_document(self.to_json())

    @property
    def is_converged(self) -> bool:
        """Whether nothing is left to do once it is applied."""
        return not any(each.is_pending for each in self.changes)

    def to_json(self) -> JsonObject:
        """What a plan is bound to, without its id."""
        return {
            "base_state_revision": self.base_revision,
            "base_state_cas": self.base_cas,
            "config_digest": self.config_digest,
            "changes": [
                [each.resource, str(each.operation), each.before, each.after]
                for each in self.changes
            ],
        }

    def list_blast_radius(self) -> list[JsonObject]:
        """What each change reaches beyond itself."""
        return [
            {"resource": each.resource, "affected": list(each.downstream)}
            for each in self.changes
            if each.downstream
        ]

    def list_approvals(self) -> list[JsonObject]:
        """Which approvals it needs."""
        return [
            {
                "resource": each.resource,
                "reason": each.approval_reason,
                "satisfied": each.approval_id is not None,
            }
            for each in self.changes
            if each.is_gated
        ]


def diff(
    desired: Desired,
    content: RevisionContent,
    *,
    base_revision: int,
    base_cas: str | None,
    approved: Mapping[str, str],
) -> Plan:
    """Every change from a revision to a configuration, and what an apply does with each.

    `approved` is the id of a valid approval for each gated resource that has one.
    """
    changes = sorted(_iter_changes(desired, content), key=lambda each: each.resource)
    if changes:
        reached = _index_dependents([*desired.dependencies, *_list_applied_dependencies(content)])
        changes = [
            replace(
                each,
                downstream=tuple(sorted(_collect_reached(each.resource, reached))),
                approval_id=approved.get(each.resource) if each.is_gated else None,
            )
            for each in changes
        ]
    decided = _await_deletions([*_decide(changes, desired)], desired, content)
    return Plan(base_revision, base_cas, desired.config_digest, tuple(decided))


def list_waiting(changes: Iterable[Change]) -> frozenset[str]:
    """The graphs that are to be deleted, and stay until that is approved."""
    return frozenset(each.resource for each in changes if each.deletes_graph and each.is_pending)


def list_kept_bindings(old: AppliedResource, waiting: Collection[str]) -> list[str]:
    """The graphs that a bundle stays bound to: without one, what waits would be open."""
    bound: list[str] = old.details.get("applies_to", [])
    return [graph for graph in bound if graph in waiting]


def _await_deletions(
    changes: list[Change], desired: Desired, content: RevisionContent
) -> Iterator[Change]:
    """The changes, of which those of a bundle wait that only take it off graphs which wait."""
    waiting = list_waiting(changes)
    for each in changes:
        old, new = content.resources.get(each.resource), desired.resources.get(each.resource)
        if old is not None and (kept := list_kept_bindings(old, waiting)):
            declared = [] if new is None else new.details["applies_to"]
            is_same = new is None or new.digest == old.digest
            if is_same and set(old.details["applies_to"]) == {*declared, *kept}:
                yield each.block(APPROVAL_REQUIRED)
                continue
        yield each


def _iter_changes(desired: Desired, content: RevisionContent) -> Iterator[Change]:
    applied = content.resources
    for address, resource in desired.resources.items():
        old = applied.get(address)
        if old is None:
            yield Change(
                address,
                resource.kind,
                Operation.CREATE,
                None,
                resource.digest,
                pipeline=_describe_pipeline(resource),
            )
        elif old.digest != resource.digest or _is_different(old, resource):
            yield Change(
                address,
                resource.kind,
                Operation.UPDATE,
                old.digest,
                resource.digest,
                metadata_change=_name_metadata_change(old, resource),
                pipeline=_describe_pipeline(resource),
            )
    for address in applied.keys() - desired.resources.keys():
        kind = kind_of(address)
        assert kind is not None, f"a revision names {address}"
        yield Change(address, kind, Operation.DELETE, applied[address].digest, None)


def _is_different(old: AppliedResource, new: Resource) -> bool:
    if not old.details and not new.details:
        return False
    declared = {name: value for name, value in old.details.items() if name not in _OF_APPLIES}
    return declared != new.details


def _describe_pipeline(resource: Resource) -> JsonObject | None:
    return dict(resource.details) if resource.kind is Kind.PIPELINE else None


def _name_metadata_change(old: AppliedResource, new: Resource) -> str | None:
    if new.kind is Kind.POLICY and _is_different(old, new):
        return "policy_bindings"
    return "embedding_profile" if new.kind is Kind.PROVIDER and _is_different(old, new) else None


def _decide(changes: Collection[Change], desired: Desired) -> Iterator[Change]:
    """The disposition of each change: what destroys data waits for an approval."""
    by_address = {each.resource: each for each in changes}
    unapproved = {
        name_of(each.resource)
        for each in changes
        if each.deletes_graph and each.approval_id is None
    }
    orphans = {
        name_of(each.resource)
        for each in changes
        if each.kind is Kind.SCHEMA
        and each.operation is Operation.CREATE
        and _find_operation(by_address, each) is not Operation.CREATE
    }
    for each in changes:
        if each.overwrites and each.approval_id is None:
            yield each.block(APPROVAL_REQUIRED)
        elif each.kind is Kind.PIPELINE and _list_targets(each, desired) & orphans:
            yield each.block(NOT_APPLIED)
        else:
            yield _decide_one(each, by_address, unapproved=unapproved, orphans=orphans)


def _list_targets(change: Change, desired: Desired) -> set[str]:
    """The graphs that a pipeline writes to once a change is made."""
    resource = desired.resources.get(change.resource)
    return set() if resource is None else set(map(name_of, resource.details["targets"]))


def _decide_one(
    change: Change,
    by_address: Mapping[str, Change],
    *,
    unapproved: Collection[str],
    orphans: Collection[str],
) -> Change:
    graph_id = graph_of(change.resource)
    if change.operation is Operation.DELETE:
        if graph_id in unapproved and _find_operation(by_address, change) is Operation.DELETE:
            return change.block(APPROVAL_REQUIRED)
        if change.kind is Kind.SCHEMA and _find_operation(by_address, change) is None:
            return replace(
                change, disposition=Disposition.DEFERRED, reason="apply_unsupported_kind"
            )
        return change
    if change.kind is Kind.GRAPH and change.operation is Operation.UPDATE:
        waits = graph_id in orphans
        return replace(change, disposition=Disposition.DEFERRED if waits else Disposition.DERIVED)
    if graph_id in orphans:
        reason = "cluster_recovery_pending" if change.kind is Kind.SCHEMA else NOT_APPLIED
        return change.block(reason)
    return change


def _find_operation(by_address: Mapping[str, Change], change: Change) -> Operation | None:
    """What happens to the graph that a change is about."""
    graph_id = graph_of(change.resource)
    graph = by_address.get(build_address(Kind.GRAPH, graph_id)) if graph_id else None
    return None if graph is None else graph.operation


def choose_lives(plan: Plan, content: RevisionContent) -> dict[str, int]:
    """The life of every graph that a plan creates."""
    return {
        name_of(each.resource): choose_life(content, name_of(each.resource))
        for each in plan.changes
        if each.kind is Kind.GRAPH and each.operation is Operation.CREATE
    }


def _list_applied_dependencies(content: RevisionContent) -> list[tuple[str, str]]:
    """What depended on what a plan deletes."""
    found: list[tuple[str, str]] = []
    for address, each in content.resources.items():
        graph_id = graph_of(address)
        if graph_id is not None and not address.startswith("graph."):
            found.append((address, f"graph.{graph_id}"))
        bound: list[Any] = each.details.get("applies_to", [])  # Any: JSON
        found += [(address, graph) for graph in bound if graph != "cluster"]
        if kind_of(address) is Kind.DASHBOARD:
            found.append((address, each.details["graph"]))
            found += [(address, query) for query in each.details["queries"]]
        if kind_of(address) is Kind.PIPELINE:
            found += [(address, needed) for needed in list_needs(each.details)]
    return found


def _index_dependents(dependencies: Collection[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for dependent, needed in dependencies:
        found[needed].add(dependent)
    return found


def _collect_reached(address: str, dependents: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [address]
    while waiting:
        for each in dependents.get(waiting.pop(), ()):
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return reached - {address}
