"""A stored revision, read strictly: what is not understood in full is refused.

An unknown field is an error: an old program that ignored a new field of a policy would grant too
much. A field of another kind is one too, so that all others may rely on a revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from omnigraph.clusters.addresses import CLUSTER, Kind, is_address, kind_of, name_of
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import (
    build_graph_folder,
    build_revision_path,
    is_graph_folder,
)
from omnigraph.clusters.revision import (
    FORMAT,
    AppliedResource,
    OperationRecord,
    Revision,
    RevisionContent,
    compute_cas,
    life_of,
)
from omnigraph.clusters.stored_documents import (
    JsonObject,
    parse_object,
    require_fields,
    require_number,
    require_object,
    require_objects,
    require_optional_text,
    require_text,
    require_texts,
)
from omnigraph.embedding.embedder import EmbedMode

_RECORDS: Final = (
    *("resource_statuses", "observations", "approval_records", "recovery_records"),
    "tombstones",
)
_FIELDS: Final = frozenset(
    {"format", "revision", "parent_cas", "operation", "applied_revision", "changes", *_RECORDS}
)
_APPLIED_FIELDS: Final = frozenset({"config_digest", "resources"})
_TEXTS: Final = frozenset({"id", "verb", "started_at", "recorded_at"})
_OPTIONAL_TEXTS: Final = frozenset({"actor", "plan_digest"})
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_NO_DETAILS: Final[Mapping[str, Any]] = {}  # Any: values of JSON


def decode_revision(number: int, data: bytes) -> Revision:
    """The revision at a place; anything that is not understood in full is refused."""
    path = build_revision_path(number)
    try:
        document = parse_object(data)
        found = document.get("format")
        if isinstance(found, int) and found > FORMAT:
            raise ClusterStopped(
                "unsupported_state_version", path, f"it has format {found}; known is {FORMAT}"
            )
        require_fields(document, _FIELDS, "the revision")
        if found != FORMAT or document["revision"] != number:
            raise ValueError(f"it says it is revision {document['revision']} of format {found}")
        changes = document["changes"]
        if not isinstance(changes, list):
            raise ValueError("changes is not a list")
        return Revision(
            number,
            require_optional_text(document["parent_cas"], "parent_cas"),
            _decode_operation(require_object(document["operation"], "operation")),
            _decode_content(document),
            tuple(require_object(each, "a change") for each in changes),
            compute_cas(data),
        )
    except ValueError as error:
        raise ClusterStopped("invalid_state_json", path, f"it cannot be read: {error}") from error


def _decode_operation(document: JsonObject) -> OperationRecord:
    require_fields(document, _TEXTS | _OPTIONAL_TEXTS, "operation", optional=_OPTIONAL_TEXTS)
    texts = {name: require_text(document[name], f"operation.{name}") for name in _TEXTS}
    return OperationRecord(
        **texts,
        actor=_find_text(document, "actor"),
        plan_digest=_find_text(document, "plan_digest"),
    )


def _find_text(document: JsonObject, name: str) -> str | None:
    """A text that may be left out, and is never null."""
    return require_text(document[name], name) if name in document else None


def _decode_content(document: JsonObject) -> RevisionContent:
    applied = require_object(document["applied_revision"], "applied_revision")
    require_fields(applied, _APPLIED_FIELDS, "applied_revision", optional=("config_digest",))
    resources = require_objects(applied["resources"], "resources")
    records = {name: require_objects(document[name], name) for name in _RECORDS}
    for address, status in records["resource_statuses"].items():
        require_text(status.get("status"), f"the status of {address}")
        require_texts(status.get("conditions"), f"the conditions of {address}")
    content = RevisionContent(
        _find_text(applied, "config_digest"),
        {address: _decode_resource(address, each) for address, each in resources.items()},
        *(records[name] for name in _RECORDS),
    )
    _check_tombstones(content)
    return content


def _check_tombstones(content: RevisionContent) -> None:
    """Every folder that is named here is removed, so none may be anything but a deleted graph."""
    if not content.tombstones:
        return
    graphs = (address for address in content.resources if kind_of(address) is Kind.GRAPH)
    living = {
        build_graph_folder(name_of(address), life_of(content.resources[address]))
        for address in graphs
    }
    for folder in content.tombstones:
        if not is_graph_folder(folder) or folder in living:
            raise ValueError(f"the tombstone {folder} is not that of a deleted graph")


def _decode_resource(address: str, entry: JsonObject) -> AppliedResource:
    digest = entry.get("digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError(f"{address} has no digest")
    if not is_address(address):
        raise ValueError(f"{address} is not the address of a resource")
    if len(entry) == 1:
        return AppliedResource(digest, _NO_DETAILS)
    details = {name: value for name, value in entry.items() if name != "digest"}
    require_fields(details, _DETAILS, address, optional=_DETAILS)
    for name, value in details.items():
        _DETAILS[name](value, f"{name} of {address}")
    return AppliedResource(digest, details)


def _require_targets(value: object, name: str) -> None:
    for target in require_texts(value, name):
        if target != CLUSTER and not (is_address(target) and kind_of(target) is Kind.GRAPH):
            raise ValueError(f"{name} is not about graphs or the cluster")


def _require_profile(value: object, name: str) -> None:
    profile = require_object(value, name)
    for field, text in profile.items():
        require_text(text, f"{field} of {name}")


def _require_blob_policy(value: object, name: str) -> None:
    policy = require_object(value, name)
    require_fields(policy, ("mode", "bases"), name)
    if policy["mode"] != "allow" or not isinstance(policy["bases"], list):
        raise ValueError(f"{name} is not a list of bases")
    for base in policy["bases"]:
        require_fields(require_object(base, f"a base of {name}"), ("uri", "scope"), name)
        _require_profile(base, f"a base of {name}")


def _require_graphs(value: object, name: str) -> None:
    for target in require_texts(value, name):
        if not is_address(target) or kind_of(target) is not Kind.GRAPH:
            raise ValueError(f"{name} is not about graphs")


def _require_sources(value: object, name: str) -> None:
    for address in require_texts(value, name):
        if not is_address(address) or kind_of(address) is not Kind.SOURCE:
            raise ValueError(f"{name} is not about providers of sources")


def _require_embed_mode(value: object, name: str) -> None:
    if value not in set(EmbedMode):
        raise ValueError(f"{name} is not a mode of embedding")


def _require_true(value: object, name: str) -> None:
    if value is not True:
        raise ValueError(f"{name} is not true")


def _require_graph(value: object, name: str) -> None:
    _require_graphs([value], name)


def _require_queries(value: object, name: str) -> None:
    for address in require_texts(value, name):
        if not is_address(address) or kind_of(address) is not Kind.QUERY:
            raise ValueError(f"{name} is not about stored queries")


# What a revision may hold of a resource besides its digest.
_DETAILS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "applies_to": _require_targets,
    "embed": _require_embed_mode,
    "embedding_provider": require_text,
    "embedding_profile": _require_profile,
    "external_blob_policy": _require_blob_policy,
    "life": require_number,
    "source_profile": require_object,
    "kinds": require_texts,
    "targets": _require_graphs,
    "sources": _require_sources,
    "schedule": require_text,
    "overwrites": _require_true,
    "approval": require_text,
    "graph": _require_graph,
    "queries": _require_queries,
}
