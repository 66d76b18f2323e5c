"""An applied cluster as programs use it: its graphs, their policies and their stored queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph.clusters.addresses import CLUSTER, Kind, build_address, graph_of, kind_of, name_of
from omnigraph.clusters.approvals import read_approvals
from omnigraph.clusters.cluster_config import FILE_NAME, read_root
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import build_payload_path
from omnigraph.clusters.cluster_world import Site, open_site
from omnigraph.clusters.dashboard import Dashboard, decode_dashboard
from omnigraph.clusters.desired import digest_bytes
from omnigraph.clusters.query_registry import StoredQuery, compile_named
from omnigraph.clusters.revision import Revision
from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine.graph import Graph
from omnigraph.engine.write_results import MutationResult
from omnigraph.errors import ClusterError
from omnigraph.execution.result import Result
from omnigraph.policy.policy_bundle import BundleKind, parse_bundle
from omnigraph.query.ast import MutationBody
from omnigraph.query.query_compiler import parse_file, select_query
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.engine.resources import Storage
    from omnigraph.policy.decisions import Policy

_HINT: Final = "run `omnigraph cluster refresh`, then `omnigraph cluster apply`"


def open_cluster(root: str | os.PathLike[str]) -> Cluster:
    """The cluster at a storage root, or of a folder with `cluster.yaml`, as it is applied now."""
    return Cluster(open_site(_find_root(os.fspath(root))))


def _find_root(given: str) -> str:
    """The storage root; of a folder of configuration, only where the root is counts."""
    if "://" in given or not Path(given, FILE_NAME).is_file():
        return given
    found = read_root(given)
    if found.root is None:
        finding = found.findings[0]
        raise ClusterError(finding.code, str(finding))
    return found.root


@dataclass(frozen=True, slots=True)
class InvokedQuery:
    """A stored query that may be invoked; `graph` does what the rules of the query carry."""

    graph: Graph
    name: str
    text: str
    is_mutation: bool


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """The definition of a pipeline as it is applied; `is_approved` if it may overwrite data."""

    address: str
    digest: str
    payload: bytes
    is_approved: bool


class Cluster:
    """One revision of a cluster: the newest when it was opened, unless another one is given."""

    def __init__(self, site: Site, revision: Revision | None = None) -> None:
        self._site = site
        self._policies: dict[tuple[str, str], Policy] = {}
        try:
            found = site.ledger.read_newest() if revision is None else revision
        except ClusterStopped as stopped:
            raise ClusterError(stopped.finding.code, str(stopped.finding)) from stopped
        if found is None:
            raise ClusterError(
                "cluster_state_missing",
                f"nothing was ever applied at {site.root}",
                hint="run `omnigraph cluster import` and `omnigraph cluster apply`",
            )
        self._revision: Revision = found

    def __repr__(self) -> str:
        return f"Cluster({self._site.root!r}, revision={self.revision})"

    @property
    def site(self) -> Site:
        """Where the cluster lives."""
        return self._site

    @property
    def revision(self) -> int:
        """The number of the revision."""
        return self._revision.number

    @property
    def cas(self) -> str:
        """The digest of the revision."""
        return self._revision.cas

    @property
    def root(self) -> str:
        """The address of the storage root."""
        return self._site.root

    def graphs(self) -> Mapping[str, str]:
        """The address of each graph, by id."""
        return {name: self._site.uri_of(folder) for name, folder in self._revision.iter_graphs()}

    def graph(self, graph_id: str, *, actor: str | None = None) -> Graph:
        """One graph, opened; its actor can only do what the policy of the graph allows."""
        folder = self._folder_of(graph_id)
        return self._site.open_graph(folder, actor, gate=self.policy(graph_id))

    def policy(self, graph_id: str) -> Policy | None:
        """The policy that is applied to a graph, compiled; None where no bundle is bound to it."""
        self._folder_of(graph_id)
        names = self._list_bound(build_address(Kind.GRAPH, graph_id))
        return self._compile_policy(names[0], graph_id) if names else None

    def policy_digest(self, graph_id: str) -> str | None:
        """The digest of the bundle that is bound to a graph, as far as the ledger says it."""
        return self._find_bundle_digest(build_address(Kind.GRAPH, graph_id))

    def server_policy_digest(self) -> str | None:
        """The digest of the bundle of the server, as far as the ledger says it."""
        return self._find_bundle_digest(CLUSTER)

    def server_policy(self) -> Policy | None:
        """The policy that decides who may list the graphs; None where no bundle is bound."""
        names = self._list_bound(CLUSTER)
        return self._compile_policy(names[0], "server") if names else None

    def has_policy(self) -> bool:
        """Whether a bundle is bound to anything."""
        return bool(self._read_bindings())

    def embedding_profile(self, graph_id: str) -> Mapping[str, str] | None:
        """The provider of the vectors of a graph, with references in place of secrets."""
        resource = self._revision.resources[build_address(Kind.GRAPH, graph_id)]
        address = resource.details.get("embedding_provider")
        if address is None:
            return None
        provider = self._revision.resources.get(address)
        profile = None if provider is None else provider.details.get("embedding_profile")
        if profile is None:
            message = f"the ledger does not hold {address}, which graph '{graph_id}' uses"
            raise ClusterError("embedding_provider_profile_missing", message, hint=_HINT)
        return dict(profile)

    def embed_mode(self, graph_id: str) -> EmbedMode:
        """When writes to a graph get the vectors of their texts."""
        resource = self._revision.resources[build_address(Kind.GRAPH, graph_id)]
        return EmbedMode(resource.details.get("embed", EmbedMode.NEVER))

    def storage_of(self, graph_id: str) -> Storage:
        """Where a graph is stored."""
        return self._site.open_graph_storage(self._site.uri_of(self._folder_of(graph_id)))

    def stored_texts(self, graph_id: str) -> Mapping[str, str]:
        """The text of each stored query of a graph, as it was applied."""
        self._folder_of(graph_id)
        return {name: self.query_text(graph_id, name) for name in self._list_query_names(graph_id)}

    def dashboards(self, graph_id: str) -> Mapping[str, Dashboard]:
        """The dashboards of a graph, by name, as they were applied."""
        self._folder_of(graph_id)
        graph = build_address(Kind.GRAPH, graph_id)
        names = sorted(
            name_of(address)
            for address, resource in self._revision.resources.items()
            if kind_of(address) is Kind.DASHBOARD and resource.details.get("graph") == graph
        )
        return {name: self._read_dashboard(name) for name in names}

    def _read_dashboard(self, name: str) -> Dashboard:
        address = build_address(Kind.DASHBOARD, name)
        return decode_dashboard(self._read_payload(address, Kind.DASHBOARD), file=address)

    def choose_policy(self, graph_id: str | None = None) -> tuple[str, Policy]:
        """The bundle that is asked about, with its name.

        That of the graph, or else that of the cluster; without a graph, the only one.
        """
        if graph_id is None:
            scope, names = "the cluster", sorted(self._read_bindings())
        else:
            self._folder_of(graph_id)
            scope, own = f"graph '{graph_id}'", self._list_bound(f"{Kind.GRAPH}.{graph_id}")
            names = own or self._list_bound(CLUSTER)
        if len(names) == 1:
            return names[0], self._compile_policy(names[0], graph_id or "graph")
        if names:
            raise ClusterError(
                "policy_ambiguous",
                f"{scope} has several policies: {', '.join(names)}",
                hint="choose the one of a graph with --graph ID",
            )
        raise ClusterError("policy_not_applied", f"no policy is applied to {scope}")

    def queries(self, graph_id: str) -> list[StoredQuery]:
        """The stored queries of a graph, by name, checked against the live schema."""
        with self._site.open_graph(self._folder_of(graph_id)) as graph:
            catalog = graph.branch().snapshot().view.catalog
        texts = self.stored_texts(graph_id)
        return [compile_named(name, text, catalog) for name, text in texts.items()]

    def invoke_query(self, graph: Graph, graph_id: str, name: str) -> InvokedQuery:
        """A stored query, ready to run on the opened graph, if the actor of that may invoke it.

        The policy is asked first, so that a denial does not show whether the query exists.
        """
        own = graph.invoking(name)
        text = self.query_text(graph_id, name)
        declared = select_query(parse_file(text, name=f"{name}.gq").file, name)
        return InvokedQuery(own, name, text, isinstance(declared.body, MutationBody))

    def run_query(
        self,
        graph_id: str,
        name: str,
        *,
        params: Mapping[str, object] | None = None,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> Result | MutationResult:
        """Run a stored query by its name; what its rules carry, the actor needs no right for.

        One that reads answers with its rows, one that writes with what it changed, as `mutate`.
        """
        with self.graph(graph_id, actor=actor) as graph:
            found = self.invoke_query(graph, graph_id, name)
            target = found.graph.branch(branch)
            run = target.mutate if found.is_mutation else target.query
            return run(found.text, name=name, params=params, timeout=timeout)

    def query_text(self, graph_id: str, name: str) -> str:
        """The text of the file that a stored query was applied from."""
        address = build_address(Kind.QUERY, graph_id, name)
        self._folder_of(graph_id)
        if address not in self._revision.resources:
            known = ", ".join(self._list_query_names(graph_id)) or "none"
            raise ClusterError(
                "query_not_applied", f"{address} is not applied", hint=f"applied are: {known}"
            )
        return self._read_payload(address, Kind.QUERY)

    def pipelines(self) -> list[str]:
        """The names of the pipelines that are applied."""
        resources = self._revision.resources
        return sorted(name_of(each) for each in resources if kind_of(each) is Kind.PIPELINE)

    def pipeline_schedules(self) -> Mapping[str, str]:
        """The schedule of each pipeline that has one, by name."""
        resources = self._revision.resources
        found = {name: resources[f"{Kind.PIPELINE}.{name}"].details for name in self.pipelines()}
        return {name: each["schedule"] for name, each in found.items() if "schedule" in each}

    def stored_definition(self, name: str) -> StoredDefinition:
        """The definition of a pipeline, as it is applied."""
        address = build_address(Kind.PIPELINE, name)
        resource = self._revision.resources.get(address)
        if resource is None:
            known = ", ".join(self.pipelines()) or "none"
            raise ClusterError(
                "pipeline_not_applied", f"{address} is not applied", hint=f"applied are: {known}"
            )
        payload = self._read_payload(address, Kind.PIPELINE).encode()
        approval_id = resource.details.get("approval")
        is_approved = approval_id is not None and any(
            (each.approval_id, each.resource, each.bound_after_digest)
            == (approval_id, address, resource.digest)
            for each in read_approvals(self._site.objects)
        )
        return StoredDefinition(address, resource.digest, payload, is_approved)

    def _read_payload(self, address: str, kind: Kind) -> str:
        """The content of an applied resource; anything but the applied bytes is refused."""
        digest = self._revision.resources[address].digest
        path = build_payload_path(address, kind, digest)
        assert path is not None, "queries and policies have payloads"
        data = self._site.objects.get(path)
        if data is None:
            raise ClusterError("catalog_payload_missing", f"{path} is missing", hint=_HINT)
        if digest_bytes(data) != digest:
            raise ClusterError("catalog_payload_digest_mismatch", f"{path} was altered", hint=_HINT)
        return data.decode()

    def _compile_policy(self, name: str, graph_id: str) -> Policy:
        # Compiling a bundle takes a library that only graphs with policies need.
        from omnigraph.policy.decisions import Policy  # noqa: PLC0415

        found = self._policies.get((name, graph_id))
        if found is None:
            is_server = CLUSTER in self._read_bindings()[name]
            text = self._read_payload(build_address(Kind.POLICY, name), Kind.POLICY)
            kind = BundleKind.SERVER if is_server else BundleKind.GRAPH
            found = Policy(parse_bundle(text, file=f"policy.{name}", kind=kind), graph=graph_id)
            self._policies[name, graph_id] = found
        return found

    def _find_bundle_digest(self, target: str) -> str | None:
        names = self._list_bound(target)
        policies = (build_address(Kind.POLICY, name) for name in names)
        return next((self._revision.resources[address].digest for address in policies), None)

    def _list_bound(self, target: str) -> list[str]:
        found = sorted(name for name, bound in self._read_bindings().items() if target in bound)
        if len(found) > 1:
            # Choosing one of them could grant what the other was written to withhold.
            raise ClusterError(
                "duplicate_policy_binding", f"{target} has several policies: {', '.join(found)}"
            )
        return found

    def _read_bindings(self) -> Mapping[str, tuple[str, ...]]:
        """What each bundle applies to; one without bindings might be meant for any graph."""
        bindings: dict[str, tuple[str, ...]] = {}
        for address, resource in self._revision.resources.items():
            if kind_of(address) is Kind.POLICY:
                targets = tuple(resource.details.get("applies_to", ()))
                if not targets:
                    message = f"the ledger does not say what {address} applies to"
                    hint = "run `omnigraph cluster apply`"
                    raise ClusterError("policy_bindings_missing", message, hint=hint)
                bindings[name_of(address)] = targets
        return bindings

    def _folder_of(self, graph_id: str) -> str:
        known = dict(self._revision.iter_graphs())
        if graph_id not in known:
            raise ClusterError(
                "graph_not_applied",
                f"graph '{graph_id}' is not applied",
                hint=f"applied are: {', '.join(known) or 'none'}",
            )
        return known[graph_id]

    def _list_query_names(self, graph_id: str) -> list[str]:
        return sorted(
            name_of(address)
            for address in self._revision.resources
            if kind_of(address) is Kind.QUERY and graph_of(address) == graph_id
        )
