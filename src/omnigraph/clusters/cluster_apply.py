"""Executes a plan, and computes the revision that records what became of it.

Payloads, new graphs and migrations come first and are unreachable until the revision names them;
folders of deleted graphs are removed after it. So a run that ends anywhere is continued by the
next one, and there is nothing to recover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from omnigraph.clusters.addresses import Kind, build_address, graph_of, name_of
from omnigraph.clusters.cluster_findings import ClusterFindings
from omnigraph.clusters.cluster_layout import build_graph_folder, build_payload_path
from omnigraph.clusters.cluster_plan import (
    APPROVAL_REQUIRED,
    NOT_APPLIED,
    Change,
    Disposition,
    Operation,
    Plan,
    choose_lives,
    list_kept_bindings,
    list_waiting,
)
from omnigraph.clusters.cluster_world import GraphRequest, GraphState, SchemaDriftError, World
from omnigraph.clusters.desired import (
    Desired,
    compute_composite,
    group_by_graph,
    index_providers,
)
from omnigraph.clusters.revision import (
    AppliedResource,
    OperationRecord,
    RevisionContent,
    life_of,
)
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.errors import OmnigraphError

CREATE_FAILED: Final = "graph_create_failed"
MIGRATION_FAILED: Final = "schema_apply_failed"
_SKIPPED: Final = {Kind.GRAPH: "graph_create_skipped", Kind.SCHEMA: "schema_apply_skipped"}


@dataclass(frozen=True, slots=True)
class MadeGraph:
    """A graph that an apply created or migrated."""

    folder: str
    life: int
    state: GraphState
    kind: Kind


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of each change, and the graphs that were made."""

    changes: tuple[Change, ...]
    made: Mapping[str, MadeGraph]

    @property
    def is_converged(self) -> bool:
        """Whether nothing is left to do."""
        return not any(each.is_pending for each in self.changes)


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """Who applies what on top of which state."""

    cluster_id: str
    actor: str | None
    desired: Desired
    content: RevisionContent
    base_revision: int


def format_now() -> str:
    """The time of now, as stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def execute(plan: Plan, context: ApplyContext, world: World, findings: ClusterFindings) -> Outcomes:
    """Do everything that adds; what fails blocks what needs it, and nothing else."""
    unapproved = [
        each.resource
        for each in plan.changes
        if each.is_gated and not each.is_pending and each.approval_id is None
    ]
    if unapproved:
        findings.add_error(
            "apply_approval_invariant_violation", unapproved[0], "it would be done unapproved"
        )
        return Outcomes(tuple(each.block(APPROVAL_REQUIRED) for each in plan.changes), {})
    for path, data in _collect_payloads(plan, context.desired).items():
        world.put_payload(path, data)
    made: dict[str, MadeGraph] = {}
    failed: dict[str, str] = {}
    for change in _list_graph_work(plan):
        if failed:
            code = _SKIPPED[change.kind]
            failed[change.resource] = code
            findings.add_warning(code, change.resource, "not tried, after another graph failed")
            continue
        try:
            made[name_of(change.resource)] = _do_graph_work(change, context, world, plan)
        except (OmnigraphError, SchemaDriftError) as error:
            code = CREATE_FAILED if change.kind is Kind.GRAPH else MIGRATION_FAILED
            failed[change.resource] = code
            findings.add_error(code, change.resource, f"{error}{_suggest(change, error)}")
    _report_adopted(made, findings)
    return Outcomes(tuple(_block_failed(plan.changes, failed, context.desired)), made)


def _collect_payloads(plan: Plan, desired: Desired) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for change in plan.changes:
        resource = desired.resources.get(change.resource)
        if resource is not None and resource.data is not None and not change.is_pending:
            path = build_payload_path(change.resource, resource.kind, resource.digest)
            if path is not None:
                found[path] = resource.data
    return found


def _list_graph_work(plan: Plan) -> list[Change]:
    """Creations of graphs, then changes of schemas."""
    done = [each for each in plan.changes if each.disposition is Disposition.APPLIED]
    creates = [e for e in done if e.kind is Kind.GRAPH and e.operation is Operation.CREATE]
    updates = [e for e in done if e.kind is Kind.SCHEMA and e.operation is Operation.UPDATE]
    return creates + updates


def _do_graph_work(change: Change, context: ApplyContext, world: World, plan: Plan) -> MadeGraph:
    graph_id = name_of(change.resource)
    schema = context.desired.resources[build_address(Kind.SCHEMA, graph_id)]
    assert schema.data is not None, "a schema that was read has its text"
    if change.kind is Kind.GRAPH:
        life = choose_lives(plan, context.content)[graph_id]
        key = f"cluster:{context.cluster_id}:{graph_id}:{life}"
    else:
        life = life_of(context.content.resources[build_address(Kind.GRAPH, graph_id)])
        # The number keeps a schema that is applied again, after another one, from being found.
        key = f"cluster:{context.cluster_id}:{schema.address}:{schema.digest}"
        key += f":{context.base_revision}"
    folder = build_graph_folder(graph_id, life)
    request = GraphRequest(graph_id, folder, schema.data.decode(), key, context.actor)
    if change.kind is Kind.GRAPH:
        return MadeGraph(folder, life, world.create_graph(request), change.kind)
    return MadeGraph(folder, life, world.migrate(request, expected=change.before), change.kind)


def _suggest(change: Change, error: Exception) -> str:
    if isinstance(error, SchemaDriftError):
        return "; look at what the graph has now with `cluster refresh` and `cluster plan`"
    is_new = change.kind is Kind.GRAPH
    remedy = "; a graph that is there already is taken over by `cluster refresh`"
    return f"{remedy} or `cluster import`" if is_new else ""


def _report_adopted(made: Mapping[str, MadeGraph], findings: ClusterFindings) -> None:
    for graph_id, each in made.items():
        if each.state.is_adopted:
            findings.add_warning(
                "cluster_recovery_rolled_forward",
                build_address(each.kind, graph_id),
                "an earlier apply had made it without recording it; it is recorded now",
            )


def _block_failed(
    changes: Collection[Change], failed: Mapping[str, str], desired: Desired
) -> Iterator[Change]:
    graphs = {graph_of(address) for address in failed}
    for each in changes:
        if each.resource in failed:
            yield each.block(failed[each.resource])
        elif graphs and not each.is_pending and _needs_any(each, graphs, desired):
            yield each.block(NOT_APPLIED)
        else:
            yield each


def _needs_any(change: Change, graphs: Collection[str | None], desired: Desired) -> bool:
    if change.operation is Operation.DELETE:
        return False
    if change.kind in (Kind.SCHEMA, Kind.QUERY):
        return graph_of(change.resource) in graphs
    if change.kind is Kind.DASHBOARD:
        shown = desired.resources[change.resource].details["graph"]
        return any(f"graph.{graph}" == shown for graph in graphs)
    if change.kind is Kind.POLICY:
        bound = desired.resources[change.resource].details["applies_to"]
        return any(f"graph.{graph}" in bound for graph in graphs)
    if change.kind is Kind.PIPELINE:
        targets = desired.resources[change.resource].details["targets"]
        return any(f"graph.{graph}" in targets for graph in graphs)
    return False


def compute_next_content(
    context: ApplyContext, plan: Plan, outcomes: Outcomes, operation: OperationRecord
) -> RevisionContent:
    """What the next revision says: pure, so that a run that changed nothing is seen to."""
    before, now = context.content, operation.recorded_at
    resources = dict(before.resources)
    statuses = {name: each for name, each in before.statuses.items() if name in resources}
    observations = dict(before.observations)
    approvals, tombstones = dict(before.approval_records), dict(before.tombstones)
    recoveries = dict(before.recovery_records)
    for change in outcomes.changes:
        if change.is_pending:
            statuses[change.resource] = _describe_status(change)
            continue
        statuses.pop(change.resource, None)
        if change.is_gated and change.approval_id is not None:
            used = {"consumed_at": now, "consumed_by_operation": operation.id}
            approvals[change.approval_id] = used
        if change.operation is Operation.DELETE:
            removed = resources.pop(change.resource)
            if change.deletes_graph and change.approval_id is not None:
                grave = _bury(change, removed, context.actor, now)
                tombstones[build_graph_folder(name_of(change.resource), life_of(removed))] = grave
                observations[change.resource] = grave
        else:
            resources[change.resource] = _build_applied(change, context, outcomes)
    if waiting := list_waiting(outcomes.changes):
        _keep_bundles(resources, statuses, before.resources, waiting)
    for graph_id, made in outcomes.made.items():
        observations[f"graph.{graph_id}"] = describe_observation(
            graph_id, made.folder, made.state, desired=made.state.schema_digest, now=now
        )
        if made.state.is_adopted:
            recoveries[f"{operation.id}.{graph_id}"] = _describe_recovery(graph_id, made, now)
    config_digest = plan.config_digest if outcomes.is_converged else before.config_digest
    return RevisionContent(
        config_digest,
        refresh_composites(resources),
        statuses,
        observations,
        approvals,
        recoveries,
        tombstones,
    )


def _keep_bundles(
    resources: dict[str, AppliedResource],
    statuses: dict[str, JsonObject],
    before: Mapping[str, AppliedResource],
    waiting: Collection[str],
) -> None:
    """Leave graphs that wait for their deletion bound to the bundles they had."""
    for address, old in before.items():
        if kept := list_kept_bindings(old, waiting):
            new = resources.get(address)
            declared = [] if new is None else new.details["applies_to"]
            bound = {"applies_to": sorted({*declared, *kept})}
            resources[address] = replace(new or old, details=bound)
            statuses[address] = {"status": "blocked", "conditions": [APPROVAL_REQUIRED]}


def _build_applied(change: Change, context: ApplyContext, outcomes: Outcomes) -> AppliedResource:
    resource = context.desired.resources[change.resource]
    details = dict(resource.details)
    if change.kind is Kind.GRAPH:
        old = context.content.resources.get(change.resource)
        made = outcomes.made.get(name_of(change.resource))
        life = made.life if made is not None else 1 if old is None else life_of(old)
        details |= {} if life == 1 else {"life": life}
    if change.overwrites:
        details["approval"] = change.approval_id
    return AppliedResource(resource.digest, details)


def _describe_status(change: Change) -> JsonObject:
    is_failed = change.reason in (CREATE_FAILED, MIGRATION_FAILED)
    status = "error" if is_failed else str(change.disposition)
    status = "blocked" if status == Disposition.DEFERRED else status
    return {"status": status, "conditions": [change.reason] if change.reason else []}


def _bury(change: Change, removed: AppliedResource, actor: str | None, now: str) -> JsonObject:
    return {
        "kind": "tombstone",
        "graph_id": name_of(change.resource),
        "life": life_of(removed),
        "deleted_at": now,
        "approval_id": change.approval_id,
        "actor": actor,
    }


def _describe_recovery(graph_id: str, made: MadeGraph, now: str) -> JsonObject:
    return {
        "kind": "graph_create" if made.kind is Kind.GRAPH else "schema_apply",
        "graph_id": graph_id,
        "outcome": "rolled_forward",
        "recovered_at": now,
        "actor": made.state.actor,
    }


def describe_observation(
    graph_id: str, folder: str, state: GraphState | None, *, desired: str | None, now: str
) -> JsonObject:
    """What was seen of a graph, and when."""
    live = None if state is None else state.schema_digest
    return {
        "kind": "graph",
        "address": f"graph.{graph_id}",
        "graph_uri": folder,
        "observed_at": now,
        "exists": state is not None,
        "graph_manifest_version": None if state is None else state.version,
        "schema_digest": live,
        "desired_schema_digest": desired,
        "schema_matches_desired": live is not None and live == desired,
        "error": None,
    }


def refresh_composites(resources: Mapping[str, AppliedResource]) -> dict[str, AppliedResource]:
    """The resources with the digest of each graph computed from what is applied of it."""
    found = dict(resources)
    children, providers = group_by_graph(found), index_providers(found)
    for address, each in resources.items():
        if address.startswith("graph."):
            graph_id = name_of(address)
            own: Mapping[str, Any] = each.details  # Any: JSON
            digest = compute_composite(graph_id, children.get(graph_id, {}), own, providers)
            found[address] = replace(each, digest=digest)
    return found
