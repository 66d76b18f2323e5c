"""The past of a cluster: its revisions, their configuration as files, and what may be removed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from omnigraph.clusters.addresses import Kind, graph_of, kind_of, name_of
from omnigraph.clusters.cluster_config import FILE_NAME
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import RESOURCES, build_payload_path
from omnigraph.clusters.cluster_world import Site, StoredWorld
from omnigraph.clusters.desired import digest_bytes
from omnigraph.clusters.revision import AppliedResource, Revision
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.config.bounded_files import describe_failure

# A payload is written before the revision that names it, so a young one may belong to an apply
# that is still at work.
GRACE_S: Final = 86_400.0
_FOLDERS: Final = {
    Kind.QUERY: "queries",
    Kind.SCHEMA: "schemas",
    Kind.POLICY: "policies",
    Kind.PIPELINE: "pipelines",
    Kind.DASHBOARD: "dashboards",
}
_SUFFIXES: Final = {
    Kind.QUERY: "gq",
    Kind.SCHEMA: "pg",
    Kind.POLICY: "yaml",
    Kind.PIPELINE: "yaml",
    Kind.DASHBOARD: "yaml",
}


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a clean-up found or removed: payloads that no revision names, and what is left in the
    folders of deleted graphs.
    """

    payloads: tuple[str, ...]
    folders: tuple[str, ...]
    is_removed: bool


def list_history(site: Site) -> list[JsonObject]:
    """Every revision, newest first: who made it, when, and what it changed."""
    return [_summarize(site.ledger.read(number)) for number in reversed(site.ledger.list_numbers())]


def _summarize(revision: Revision) -> JsonObject:
    return {
        "revision": revision.number,
        "state_cas": revision.cas,
        **revision.operation.to_json(),
        "changes": list(revision.changes),
    }


def show_revision(site: Site, number: int | None) -> Revision:
    """One revision, the newest if none is named."""
    found = site.ledger.read_newest() if number is None else site.ledger.read(number)
    if found is None:
        raise ClusterStopped("state_missing", "state", "nothing was ever applied here")
    return found


def checkout(site: Site, revision: Revision, target: Path) -> list[str]:
    """Write the configuration of a revision to an empty folder; returns the files."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ClusterStopped("checkout_not_empty", str(target), "it is not an empty folder")
    files = dict(_iter_files(site, revision))
    document = _build_document(site, revision)
    files[FILE_NAME] = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
    # The configuration comes last: a folder without it is not taken for a whole one.
    for name, data in files.items():
        path = target / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            message = f"it cannot be written: {describe_failure(error)}"
            raise ClusterStopped("checkout_failed", str(path), message) from error
    return list(files)


def _iter_files(site: Site, revision: Revision) -> Iterator[tuple[str, bytes]]:
    for address, each in sorted(revision.resources.items()):
        kind = kind_of(address)
        path = None if kind is None else build_payload_path(address, kind, each.digest)
        if kind is None or path is None:
            continue
        data = site.objects.get(path)
        if data is None or digest_bytes(data) != each.digest:
            message = f"the content of {address} is not kept any more"
            raise ClusterStopped("catalog_payload_missing", path, message)
        yield _name_file(address, kind, each.digest), _write_payload(kind, data)


def _write_payload(kind: Kind, data: bytes) -> bytes:
    """The content of a resource as a file of a configuration."""
    if kind is not Kind.PIPELINE:
        return data
    # What reads definitions is an optional part, and takes long to load.
    from omnigraph.pipelines.config.cluster_definition import strip_providers  # noqa: PLC0415

    return strip_providers(data)


def _name_file(address: str, kind: Kind, digest: str) -> str:
    # Queries of one file stay in one file.
    owner = f"{graph_of(address)}/{digest[:12]}" if kind is Kind.QUERY else name_of(address)
    return f"{_FOLDERS[kind]}/{owner}.{_SUFFIXES[kind]}"


def _build_document(site: Site, revision: Revision) -> dict[str, Any]:  # Any: YAML
    graphs: dict[str, dict[str, Any]] = {}
    policies: dict[str, Any] = {}
    providers: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    pipelines: dict[str, str] = {}
    dashboards: dict[str, str] = {}
    for address, each in sorted(revision.resources.items()):
        kind, name = kind_of(address), name_of(address)
        match kind:
            case Kind.GRAPH:
                graphs[name] = {"schema": f"schemas/{name}.pg"} | _build_details(each.details)
            case Kind.QUERY:
                graph_id = str(graph_of(address))
                if graph_id not in graphs:
                    message = f"the revision has {address} and not its graph: take another one"
                    raise ClusterStopped("graph_not_applied", f"graph.{graph_id}", message)
                graph = graphs[graph_id]
                file = _name_file(address, Kind.QUERY, each.digest)
                graph.setdefault("queries", {})[name] = {"file": file}
            case Kind.POLICY:
                targets = _require_detail(address, each, "applies_to", "policy_bindings_missing")
                bound = [target.removeprefix("graph.") for target in targets]
                policies[name] = {"file": f"policies/{name}.yaml", "applies_to": bound}
            case Kind.PROVIDER:
                code = "embedding_provider_profile_missing"
                providers[name] = dict(_require_detail(address, each, "embedding_profile", code))
            case Kind.SOURCE:
                code = "source_profile_missing"
                sources[name] = dict(_require_detail(address, each, "source_profile", code))
            case Kind.PIPELINE:
                pipelines[name] = _name_file(address, Kind.PIPELINE, each.digest)
            case Kind.DASHBOARD:
                dashboards[name] = _name_file(address, Kind.DASHBOARD, each.digest)
            case _:
                pass
    services = _leave_out_empty({"embedding": providers, "source": sources})
    pages = _leave_out_empty({"dashboards": dashboards})
    optional = {
        "providers": services,
        "policies": policies,
        "pipelines": pipelines,
        "ui": pages,
    }
    document = {"version": 1, "storage": site.root, "graphs": graphs}
    return document | _leave_out_empty(optional)


def _leave_out_empty(sections: Mapping[str, Any]) -> dict[str, Any]:  # Any: YAML
    return {name: section for name, section in sections.items() if section}


def _require_detail(address: str, resource: AppliedResource, name: str, code: str) -> Any:
    """What a configuration must say of a resource, and an old or foreign revision may lack."""
    found = resource.details.get(name)
    if not found:
        message = f"the revision does not say {name} of {address}: apply, then take the new one"
        raise ClusterStopped(code, address, message)
    return found  # Any: JSON


def _build_details(details: Mapping[str, Any]) -> dict[str, Any]:  # Any: YAML
    found: dict[str, Any] = {}
    if (provider := details.get("embedding_provider")) is not None:
        found["embedding_provider"] = provider
    if (mode := details.get("embed")) is not None:
        found["embed"] = mode
    if (blobs := details.get("external_blob_policy")) is not None:
        allow = [{"base": base["uri"], "scope": base["scope"]} for base in blobs["bases"]]
        found["external_blobs"] = {"allow": allow}
    return found


def clean_up(site: Site, *, keep: int | None, grace_s: float, is_dry: bool) -> Leftovers:
    """Remove payloads that none of the newest `keep` revisions names, and deleted graphs."""
    numbers = site.ledger.list_numbers()
    kept = numbers if keep is None else numbers[-keep:]
    named = {path for number in kept for path in _iter_payload_paths(site.ledger.read(number))}
    youngest = time.time() - grace_s
    payloads = tuple(
        entry.path
        for entry in site.objects.list(RESOURCES)
        if entry.path not in named and entry.modified <= youngest
    )
    newest = site.ledger.read_newest()
    world = StoredWorld(site)
    buried = () if newest is None else newest.content.tombstones
    folders = [folder for folder in buried if not world.is_empty(folder)]
    if not is_dry:
        site.objects.delete(payloads)
        folders = [folder for folder in folders if world.remove_folder(folder)]
    return Leftovers(payloads, tuple(folders), not is_dry)


def _iter_payload_paths(revision: Revision) -> Iterator[str]:
    for address, each in revision.resources.items():
        kind = kind_of(address)
        path = None if kind is None else build_payload_path(address, kind, each.digest)
        if path is not None:
            yield path
