"""Looks at the graphs and payloads of a cluster, for `refresh`, `import` and `status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from omnigraph.clusters.addresses import Kind, build_address, kind_of, name_of
from omnigraph.clusters.cluster_apply import describe_observation, format_now, refresh_composites
from omnigraph.clusters.cluster_findings import ClusterFindings, ClusterStopped
from omnigraph.clusters.cluster_layout import (
    LOCK,
    build_graph_folder,
    build_payload_path,
    build_revision_path,
)
from omnigraph.clusters.cluster_lock import ClusterLock, LockRecord
from omnigraph.clusters.cluster_world import GraphState, Site
from omnigraph.clusters.desired import Desired, digest_bytes
from omnigraph.clusters.revision import AppliedResource, Revision, RevisionContent, life_of
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.errors import OmnigraphError, StorageError

# Lives of one id that an import looks for: a ledger that was lost cannot say which it was.
_LIVES_EXAMINED: Final = 8
_DRIFTED: Final[JsonObject] = {"status": "drifted", "conditions": ["schema_mismatch"]}
# What a look at graphs and payloads finds anew each time.
_OBSERVED: Final = frozenset(
    {
        *("graph_missing", "graph_observation_error", "schema_mismatch"),
        *("payload_missing", "payload_mismatch", "payload_read_error"),
    }
)


def observe_graphs(
    site: Site, content: RevisionContent, findings: ClusterFindings
) -> RevisionContent:
    """What is applied, corrected by what the graphs are now."""
    resources, observations = dict(content.resources), dict(content.observations)
    statuses = {
        address: each
        for address, each in content.statuses.items()
        if not _OBSERVED.intersection(each["conditions"])
    }
    for graph_id in _list_graph_ids(content.resources):
        graph, schema = f"graph.{graph_id}", f"schema.{graph_id}"
        life = life_of(content.resources[graph])
        folder = build_graph_folder(graph_id, life)
        recorded = content.resources[schema].digest if schema in content.resources else None
        try:
            state = site.observe(folder)
        except OmnigraphError as error:
            findings.add_error("graph_observation_error", graph, error.message)
            found = describe_observation(graph_id, folder, None, desired=recorded, now=format_now())
            observations[graph] = found | {"exists": True, "error": error.message}
            failed = {"status": "error", "conditions": ["graph_observation_error"]}
            statuses[graph] = failed | {"message": error.message}
            continue
        observations[graph] = describe_observation(
            graph_id, folder, state, desired=recorded, now=format_now()
        )
        if state is None:
            missing = {"status": "drifted", "conditions": ["graph_missing"]}
            statuses[graph] = statuses[schema] = missing
            resources.pop(graph)
            resources.pop(schema, None)
        elif state.schema_digest != recorded:
            statuses[graph] = statuses[schema] = _DRIFTED
            resources[schema] = AppliedResource(state.schema_digest)
    return replace(content, resources=resources, statuses=statuses, observations=observations)


def import_graphs(site: Site, desired: Desired, findings: ClusterFindings) -> RevisionContent:
    """The graphs of a configuration that are there already; queries and policies are not."""
    resources: dict[str, AppliedResource] = {}
    statuses: dict[str, JsonObject] = {}
    observations: dict[str, JsonObject] = {}
    for graph_id in _list_graph_ids(desired.resources):
        life, state = _find_life(site, graph_id, findings)
        wanted = desired.resources[build_address(Kind.SCHEMA, graph_id)].digest
        observations[f"graph.{graph_id}"] = describe_observation(
            graph_id, build_graph_folder(graph_id, life), state, desired=wanted, now=format_now()
        )
        if state is not None:
            details = {} if life == 1 else {"life": life}
            resources[f"graph.{graph_id}"] = AppliedResource("", details)
            resources[f"schema.{graph_id}"] = AppliedResource(state.schema_digest)
            if state.schema_digest != wanted:
                statuses[f"graph.{graph_id}"] = statuses[f"schema.{graph_id}"] = _DRIFTED
    return RevisionContent(None, refresh_composites(resources), statuses, observations)


def observe_state(site: Site, held: LockRecord | None, revision: Revision | None) -> JsonObject:
    """Where the state is, how far it is, and who holds the lock."""
    lock = None
    with suppress(ClusterStopped, StorageError):
        lock = ClusterLock(site.objects).read()
    number = 0 if revision is None else revision.number
    found: JsonObject = {
        "state_path": build_revision_path(number or 1),
        "lock_path": LOCK,
        "state_found": revision is not None,
        "state_revision": number,
        "resource_count": 0 if revision is None else len(revision.resources),
        "locked": lock is not None,
        "lock_acquired": held is not None,
    }
    if revision is not None:
        found["state_cas"] = revision.cas
        if revision.content.config_digest is not None:
            found["applied_config_digest"] = revision.content.config_digest
    if held is not None:
        found["acquired_lock_id"] = held.lock_id
    if lock is not None:
        found |= {
            "lock_id": lock.lock_id,
            "lock_operation": lock.operation,
            "lock_created_at": lock.created_at,
            "lock_pid": lock.pid,
            "lock_age_seconds": lock.age_seconds,
        }
    return found


def _find_life(
    site: Site, graph_id: str, findings: ClusterFindings
) -> tuple[int, GraphState | None]:
    for life in range(_LIVES_EXAMINED, 0, -1):
        try:
            state = site.observe(build_graph_folder(graph_id, life))
        except OmnigraphError as error:
            findings.add_error("graph_observation_error", f"graph.{graph_id}", error.message)
            return life, None
        if state is not None:
            return life, state
    return 1, None


def iter_payload_problems(site: Site, content: RevisionContent) -> Iterator[tuple[str, str, str]]:
    """Every resource whose payload is missing, altered or unreadable, and why."""
    verdicts: dict[str, tuple[str, str] | None] = {}
    for address, each in sorted(content.resources.items()):
        kind = kind_of(address)
        path = None if kind is None else build_payload_path(address, kind, each.digest)
        # The schema of a graph that was imported has no payload; its graph has the text.
        if path is None or kind is Kind.SCHEMA:
            continue
        if path not in verdicts:
            verdicts[path] = _examine_payload(site, path, each.digest)
        if (verdict := verdicts[path]) is not None:
            yield address, *verdict


def observe_applied(
    site: Site, content: RevisionContent, findings: ClusterFindings
) -> RevisionContent:
    """What is applied, with the last run of each pipeline; bad payloads are reported."""
    for address, problem, message in iter_payload_problems(site, content):
        if problem == "payload_read_error":
            findings.add_error("catalog_payload_read_error", address, message)
        else:
            code = f"catalog_{problem}".replace("mismatch", "digest_mismatch")
            findings.add_warning(code, address, message)
    names = [each for each in content.resources if kind_of(each) is Kind.PIPELINE]
    if not names:
        return content
    # What reads runs is an optional part, and takes long to load.
    from omnigraph.clusters.observed_runs import observe_run  # noqa: PLC0415

    observations, statuses = dict(content.observations), dict(content.statuses)
    for address in names:
        found = observe_run(site, address, content.resources[address], findings)
        observations[address] = found
        if conditions := found["conditions"]:
            status = statuses.get(address, {"status": "applied", "conditions": []})
            both = [*status["conditions"], *conditions]
            statuses[address] = status | {"conditions": both}
    return replace(content, observations=observations, statuses=statuses)


def _examine_payload(site: Site, path: str, digest: str) -> tuple[str, str] | None:
    try:
        data = site.objects.get(path)
    except StorageError as error:
        return "payload_read_error", error.message
    if data is None:
        return "payload_missing", f"{path} is missing: run `cluster refresh`, then apply"
    if digest_bytes(data) != digest:
        return "payload_mismatch", f"{path} is not what its name says: run `cluster refresh`"
    return None


def _list_graph_ids(addresses: Iterable[str]) -> list[str]:
    return sorted(name_of(each) for each in addresses if kind_of(each) is Kind.GRAPH)
