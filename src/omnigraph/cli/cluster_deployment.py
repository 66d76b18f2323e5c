"""Plans and applies at a server, shown as those of a folder are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.cli.command_errors import fail
from omnigraph.cli.global_options import Scope

if TYPE_CHECKING:
    from omnigraph.clusters.cluster_documents import ClusterDocument
    from omnigraph.clusters.stored_documents import JsonObject


def plan_at_server(scope: Scope, config: str) -> ClusterDocument:
    """The plan of a folder at the server that is addressed."""
    from omnigraph.clusters.cluster_documents import format_plan
    from omnigraph.connection import open_served_cluster

    with open_served_cluster(_find_url(scope)) as cluster:
        found = cluster.plan(_require_folder(config))
    return _build_document(found, *format_plan(found["changes"]) if found["ok"] else ())


def apply_at_server(scope: Scope, config: str, saved: Path | None) -> ClusterDocument:
    """What an apply of a folder did at the server that is addressed."""
    from omnigraph.clusters.cluster_documents import ClusterDocument, format_changes
    from omnigraph.clusters.cluster_findings import ClusterStopped
    from omnigraph.clusters.saved_plan import read_plan_id
    from omnigraph.connection import open_served_cluster

    try:
        plan_id = None if saved is None else read_plan_id(saved)
    except ClusterStopped as stopped:
        return ClusterDocument({}, (stopped.finding,))
    with open_served_cluster(_find_url(scope)) as cluster:
        found = cluster.deploy(_require_folder(config), plan_id=plan_id)
    end = f"revision {found['state_revision']}"
    is_written = found["state_written"]
    lines = (*format_changes(found["changes"]), f"{end}: {'' if is_written else 'not '}written")
    return _build_document(found, *lines)


def _build_document(found: JsonObject, *lines: str) -> ClusterDocument:
    from omnigraph.clusters.cluster_documents import ClusterDocument
    from omnigraph.clusters.cluster_findings import ClusterFinding, Severity

    findings = tuple(
        ClusterFinding(**(each | {"severity": Severity(each["severity"])}))
        for each in found["diagnostics"]
    )
    fields = {name: value for name, value in found.items() if name not in ("ok", "diagnostics")}
    return ClusterDocument(fields, findings, lines)


def _require_folder(config: str) -> Path:
    folder = Path(config)
    if not folder.is_dir():
        fail(f"{config} is not a folder", hint="give the folder that holds cluster.yaml")
    return folder


def _find_url(scope: Scope) -> str:
    from omnigraph.operator_config import ServerAddress
    from omnigraph.operator_config.address_resolver import resolve

    address = resolve(scope.build_flags(), os.environ, scope.config)
    assert isinstance(address, ServerAddress), "only --server leads here"
    return address.base
