"""Who gains and who loses what by a change of policies, for the readers of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.clusters.addresses import Kind
from omnigraph.clusters.cluster_findings import ClusterFindings
from omnigraph.clusters.cluster_layout import build_payload_path
from omnigraph.clusters.cluster_plan import Change, Plan
from omnigraph.clusters.cluster_world import Site
from omnigraph.clusters.desired import Desired
from omnigraph.clusters.revision import RevisionContent
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.errors import OmnigraphError
from omnigraph.policy.policy_bundle import BundleKind, parse_bundle


def preview_grants(
    site: Site, desired: Desired, content: RevisionContent, plan: Plan, findings: ClusterFindings
) -> Plan:
    """The plan, with the grants that each change of a policy moves."""
    changes = list(plan.changes)
    for at, each in enumerate(changes):
        if each.kind is Kind.POLICY:
            try:
                changes[at] = replace(each, grants=_compare_grants(site, each, desired, content))
            except (OmnigraphError, UnicodeDecodeError) as error:
                findings.add_warning("grants_preview_unavailable", each.resource, str(error))
    return replace(plan, changes=tuple(changes))


def _compare_grants(
    site: Site, change: Change, desired: Desired, content: RevisionContent
) -> JsonObject:
    """Every act that an actor could not do before and can do after a change, and the reverse.

    Acts are compared place by place: a bundle that is bound to one more graph grants there.
    """
    before, after = frozenset[str](), frozenset[str]()
    if (old := content.resources.get(change.resource)) is not None:
        path = build_payload_path(change.resource, Kind.POLICY, old.digest)
        data = None if path is None else site.objects.get(path)
        if data is not None:
            before = _list_lines(data, old.details)
    if (new := desired.resources.get(change.resource)) is not None and new.data is not None:
        after = _list_lines(new.data, new.details)
    return {"gains": sorted(after - before), "loses": sorted(before - after)}


def _list_lines(data: bytes, details: Mapping[str, Any]) -> frozenset[str]:  # Any: JSON
    # Compiling a bundle takes a library that only plans and servers need.
    from omnigraph.policy.decisions import Policy  # noqa: PLC0415
    from omnigraph.policy.grants import list_grants  # noqa: PLC0415

    targets = details.get("applies_to")
    if not targets:
        return frozenset()
    kind = BundleKind.SERVER if "cluster" in targets else BundleKind.GRAPH
    bundle = parse_bundle(data.decode(), file="bundle", kind=kind)
    granted = list_grants(Policy(bundle))
    return frozenset(
        " ".join(
            (
                each.actor,
                str(each.action),
                *((f"on {each.scope} branches",) if each.scope else ()),
                *((f"for {each.limit}",) if each.limit else ()),
                f"in {target}",
            )
        )
        for each in granted
        for target in targets
    )
