"""The last run of a pipeline, as `cluster status` shows it; no graph is opened."""

from __future__ import annotations

from datetime import UTC, datetime

from omnigraph.clusters.addresses import name_of
from omnigraph.clusters.cluster_apply import format_now
from omnigraph.clusters.cluster_findings import ClusterFindings
from omnigraph.clusters.cluster_world import Site
from omnigraph.clusters.revision import AppliedResource
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.config.definition import compute_next_slot, format_slot
from omnigraph.pipelines.ledger.run_ledger import Ledger


def observe_run(
    site: Site, address: str, resource: AppliedResource, findings: ClusterFindings
) -> JsonObject:
    """When a pipeline runs next, and what its last run says."""
    schedule, last = resource.details.get("schedule"), None
    try:
        last = next(Ledger(site.objects, name_of(address)).iter_newest_runs(), None)
    except OmnigraphError as error:
        findings.add_warning("pipeline_runs_unreadable", address, error.message)
    document = None if last is None else last.to_json()
    now = datetime.now(UTC)
    return {
        "kind": "pipeline",
        "address": address,
        "observed_at": format_now(),
        "definition_digest": resource.digest,
        "schedule": schedule,
        "next_slot": None if schedule is None else format_slot(compute_next_slot(schedule, now)),
        "last_run": document,
        "conditions": [] if document is None else document["conditions"],
    }
