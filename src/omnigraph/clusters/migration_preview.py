"""What the changes of schemas do to the live graphs, for the readers of a plan."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.clusters.addresses import Kind, name_of
from omnigraph.clusters.cluster_findings import ClusterFindings
from omnigraph.clusters.cluster_plan import Change, Operation, Plan
from omnigraph.clusters.cluster_world import Site
from omnigraph.clusters.desired import Desired
from omnigraph.clusters.revision import Revision
from omnigraph.errors import OmnigraphError
from omnigraph.schema.migration import MigrationPlan, describe_step


def preview_migrations(
    site: Site, desired: Desired, revision: Revision, plan: Plan, findings: ClusterFindings
) -> Plan:
    """The plan, with the steps that each change of a schema takes."""
    changes = list(plan.changes)
    for at, change in enumerate(changes):
        if change.kind is Kind.SCHEMA and change.operation is Operation.UPDATE:
            changes[at] = _preview(site, desired, revision, change, findings)
    return replace(plan, changes=tuple(changes))


def _preview(
    site: Site, desired: Desired, revision: Revision, change: Change, findings: ClusterFindings
) -> Change:
    data = desired.resources[change.resource].data
    assert data is not None, "a schema that was read has its text"
    try:
        with site.open_graph(revision.folder_of(name_of(change.resource))) as graph:
            planned = graph.branch().plan_schema(data.decode())
    except OmnigraphError as error:
        findings.add_warning("schema_preview_unavailable", change.resource, error.message)
        return change
    if planned.refusal is not None:
        message = f"an apply would refuse it: {planned.refusal}"
        findings.add_warning("schema_migration_unsupported", change.resource, message)
    return replace(change, migration=_describe(planned))


def _describe(planned: MigrationPlan) -> dict[str, object]:
    """The steps as data, each also in words."""
    steps = [describe_step(step) | {"summary": str(step)} for step in planned.steps]
    return {"supported": planned.supported, "step_count": len(steps), "steps": steps}
