"""A plan that `plan --out` wrote, compared with the plan of now."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_plan import Plan
from omnigraph.clusters.desired import Desired
from omnigraph.clusters.stored_documents import JsonObject, parse_object
from omnigraph.config.bounded_files import describe_failure, read_file

# A plan lists every resource of a cluster, of which there may be tens of thousands.
_PLAN_BYTES_MAX: Final = 256 << 20


def require_unmoved(path: Path, plan: Plan, desired: Desired) -> None:
    """Refuse a saved plan if the state or a file moved since."""
    saved = _load_saved_plan(path)
    if saved.get("base_state_cas") != plan.base_cas:
        raise ClusterStopped(
            "state_cas_mismatch", "state", "the state moved since the plan was saved: plan again"
        )
    digests = {address: each.digest for address, each in desired.resources.items()}
    if saved.get("resource_digests") != digests or saved.get("plan_id") != plan.digest:
        raise ClusterStopped(
            "resource_content_changed", "config", "files changed since the plan was saved"
        )


def read_plan_id(path: Path) -> str:
    """The id of a saved plan, which a server compares with that of its own plan."""
    found = _load_saved_plan(path).get("plan_id")
    if isinstance(found, str):
        return found
    raise ClusterStopped("invalid_saved_plan", str(path), "this is not a plan that was saved")


def _load_saved_plan(path: Path) -> JsonObject:
    try:
        return parse_object(read_file(path, bytes_max=_PLAN_BYTES_MAX))
    except (OSError, ValueError) as error:
        message = f"this is not a plan that was saved: {describe_failure(error)}"
        raise ClusterStopped("invalid_saved_plan", str(path), message) from error
