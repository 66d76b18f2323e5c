"""A revision: everything that is applied to a cluster, and how it came to be.

Each one is whole, so the newest is enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from omnigraph.clusters.addresses import Kind, kind_of, name_of
from omnigraph.clusters.cluster_layout import build_graph_folder
from omnigraph.clusters.stored_documents import JsonObject

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class AppliedResource:
    """The digest of a resource that is applied, and what else of it the revision holds."""

    digest: str
    details: Mapping[str, Any] = field(default_factory=dict)  # Any: values of JSON


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """The verb that made a revision."""

    id: str
    verb: str
    actor: str | None
    started_at: str
    recorded_at: str
    plan_digest: str | None = None

    def to_json(self) -> JsonObject:
        """The operation as a document; what is unknown is left out."""
        values = dict(sorted(asdict(self).items()))
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RevisionContent:
    """What a revision says of the cluster, without how it came to be; equal if nothing changed."""

    config_digest: str | None = None
    resources: Mapping[str, AppliedResource] = field(default_factory=dict)
    # Only of what is not as it was applied: most resources of a large cluster are.
    statuses: Mapping[str, JsonObject] = field(default_factory=dict)
    observations: Mapping[str, JsonObject] = field(default_factory=dict)
    approval_records: Mapping[str, JsonObject] = field(default_factory=dict)
    recovery_records: Mapping[str, JsonObject] = field(default_factory=dict)
    # By the folder of the deleted graph: no later graph uses that folder.
    tombstones: Mapping[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revision:
    """A stored revision, with the digest of its bytes."""

    number: int
    parent_cas: str | None
    operation: OperationRecord
    content: RevisionContent
    changes: tuple[JsonObject, ...] = ()
    cas: str = ""

    @property
    def resources(self) -> Mapping[str, AppliedResource]:
        """What is applied, by address."""
        return self.content.resources

    def iter_graphs(self) -> Iterator[tuple[str, str]]:
        """The id and the folder of every graph, by id."""
        for address in sorted(self.resources):
            if kind_of(address) is Kind.GRAPH:
                yield name_of(address), self.folder_of(name_of(address))

    def folder_of(self, graph_id: str) -> str:
        """The folder of an applied graph."""
        return build_graph_folder(graph_id, life_of(self.resources[f"graph.{graph_id}"]))


def life_of(resource: AppliedResource) -> int:
    """Which life of its id a graph is."""
    return int(resource.details.get("life", 1))


def choose_life(content: RevisionContent, graph_id: str) -> int:
    """The first life of an id whose folder no deletion may still be emptying."""
    life = 1
    while build_graph_folder(graph_id, life) in content.tombstones:
        life += 1
    return life


def compute_cas(data: bytes) -> str:
    """The digest that stands for a revision."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def encode_revision(revision: Revision) -> bytes:
    """The bytes of a revision: compact JSON and a line feed."""
    content = revision.content
    applied: JsonObject = {
        "resources": {
            address: {"digest": each.digest, **each.details}
            for address, each in sorted(content.resources.items())
        }
    }
    if content.config_digest is not None:
        applied["config_digest"] = content.config_digest
    document = {
        "format": FORMAT,
        "revision": revision.number,
        "parent_cas": revision.parent_cas,
        "operation": revision.operation.to_json(),
        "applied_revision": applied,
        "resource_statuses": dict(sorted(content.statuses.items())),
        "observations": dict(sorted(content.observations.items())),
        "approval_records": dict(sorted(content.approval_records.items())),
        "recovery_records": dict(sorted(content.recovery_records.items())),
        "tombstones": dict(sorted(content.tombstones.items())),
        "changes": list(revision.changes),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
