"""The desired state: what a configuration declares, as resources with digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.clusters.addresses import PROVIDER_PREFIX, Kind, build_address, name_of


@dataclass(frozen=True, slots=True)
class Resource:
    """One declared resource.

    `details` is what the revision itself holds of it; `data` is its payload; `path` its file.
    """

    address: str
    kind: Kind
    digest: str
    path: str | None = None
    data: bytes | None = field(default=None, repr=False)
    details: Mapping[str, Any] = field(default_factory=dict)  # Any: values of JSON


@dataclass(frozen=True, slots=True)
class Desired:
    """What a folder of configuration declares; `name` is for people."""

    config_dir: str
    root: str
    resources: Mapping[str, Resource]
    config_digest: str
    is_locked: bool = True
    name: str | None = None

    @property
    def dependencies(self) -> list[tuple[str, str]]:
        """Each dependent with what it needs, sorted."""
        ordered = (self.resources[address] for address in sorted(self.resources))
        return list(_iter_dependencies(ordered))


class Digested(Protocol):
    """What a composite is made of: a digest and details."""

    @property
    def digest(self) -> str:
        """The digest of the content."""

    @property
    def details(self) -> Mapping[str, Any]:  # Any: values of JSON
        """What the revision holds."""


def digest_bytes(data: bytes) -> str:
    """The digest of a payload."""
    return hashlib.sha256(data).hexdigest()


def digest_document(document: object) -> str:
    """The digest of a value of JSON, whatever the order of its fields."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return digest_bytes(text.encode())


def compute_composite(
    graph_id: str,
    children: Mapping[str, str],
    details: Mapping[str, Any],  # Any: values of JSON
    providers: Mapping[str, Digested],
) -> str:
    """The digest of a graph: of its schema and queries by address, its provider and blob rules."""
    fields = ["graph", graph_id, "schema", children.get(f"schema.{graph_id}", "")]
    for address in sorted(children, key=name_of):
        if address.startswith("query."):
            fields += ["query", name_of(address), children[address]]
    if (provider := details.get("embedding_provider")) is not None:
        known = providers.get(provider)
        fields += ["embedding_provider", provider, "" if known is None else known.digest]
    if (mode := details.get("embed")) is not None:
        fields += ["embed", mode]
    if (blobs := details.get("external_blob_policy")) is not None:
        text = json.dumps(blobs, ensure_ascii=False, separators=(",", ":"))
        fields += ["external_blob_policy", text]
    return digest_bytes("".join(f"{each}\0" for each in fields).encode())


def group_by_graph(resources: Mapping[str, Digested]) -> dict[str, dict[str, str]]:
    """The digests of the schema and the queries of each graph, by address."""
    found: dict[str, dict[str, str]] = {}
    for address, resource in resources.items():
        if address.startswith(("schema.", "query.")):
            graph_id = address.split(".", 2)[1]
            found.setdefault(graph_id, {})[address] = resource.digest
    return found


def index_providers(resources: Mapping[str, Digested]) -> dict[str, Digested]:
    """The embedding providers by address."""
    return {name: each for name, each in resources.items() if name.startswith(PROVIDER_PREFIX)}


def _iter_dependencies(resources: Iterable[Resource]) -> Iterator[tuple[str, str]]:
    for each in resources:
        match each.kind:
            case Kind.SCHEMA:
                yield each.address, build_address(Kind.GRAPH, name_of(each.address))
            case Kind.QUERY:
                graph_id = each.address.split(".", 2)[1]
                yield each.address, f"graph.{graph_id}"
                yield each.address, f"schema.{graph_id}"
            case Kind.POLICY:
                bound = (name for name in each.details["applies_to"] if name != "cluster")
                yield from ((each.address, graph) for graph in sorted(bound))
            case Kind.GRAPH:
                if (provider := each.details.get("embedding_provider")) is not None:
                    yield each.address, provider
            case Kind.PIPELINE:
                yield from ((each.address, needed) for needed in list_needs(each.details))
            case Kind.DASHBOARD:
                yield each.address, each.details["graph"]
                yield from ((each.address, query) for query in each.details["queries"])
            case Kind.PROVIDER | Kind.SOURCE:
                pass


def list_needs(details: Mapping[str, Any]) -> list[str]:  # Any: values of JSON
    """What a pipeline needs: the graphs it writes to, their schemas, and its sources."""
    graphs: list[str] = details["targets"]
    schemas = [build_address(Kind.SCHEMA, name_of(graph)) for graph in graphs]
    return [*graphs, *details["sources"], *schemas]
