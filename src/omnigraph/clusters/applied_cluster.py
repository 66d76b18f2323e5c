"""An applied cluster as programs use it: its graphs and their stored queries."""

from __future__ import annotations

import os
from collections.abc import Mapping

from omnigraph.clusters.addresses import Kind, build_address, graph_of, kind_of, name_of
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import build_payload_path
from omnigraph.clusters.cluster_world import Site, open_site
from omnigraph.clusters.desired import digest_bytes
from omnigraph.clusters.query_registry import StoredQuery, compile_stored
from omnigraph.clusters.revision import Revision
from omnigraph.engine.graph import Graph
from omnigraph.errors import ClusterError
from omnigraph.query.query_compiler import parse_file, select_query


def open_cluster(root: str | os.PathLike[str]) -> Cluster:
    """The cluster at a storage root, as it is applied now."""
    return Cluster(open_site(os.fspath(root)))


class Cluster:
    """The newest revision of a cluster when it was opened."""

    def __init__(self, site: Site) -> None:
        self._site = site
        try:
            found = site.ledger.read_newest()
        except ClusterStopped as stopped:
            raise ClusterError(stopped.finding.code, str(stopped.finding)) from stopped
        if found is None:
            raise ClusterError(
                "cluster_state_missing",
                f"nothing was ever applied at {site.root}",
                hint="run `omnigraph cluster import` and `omnigraph cluster apply`",
            )
        self._revision: Revision = found

    @property
    def revision(self) -> int:
        """The number of the revision."""
        return self._revision.number

    def graphs(self) -> Mapping[str, str]:
        """The address of each graph, by id."""
        return {name: self._site.uri_of(folder) for name, folder in self._revision.iter_graphs()}

    def graph(self, graph_id: str, *, actor: str | None = None) -> Graph:
        """One graph, opened; `actor` signs what is committed through it."""
        return self._site.open_graph(self._folder_of(graph_id), actor)

    def queries(self, graph_id: str) -> list[StoredQuery]:
        """The stored queries of a graph, by name, checked against the live schema."""
        with self.graph(graph_id) as graph:
            catalog = graph.branch().snapshot().view.catalog
        found = []
        for name in self._list_query_names(graph_id):
            text = self.query_text(graph_id, name)
            parsed = parse_file(text, name=f"{name}.gq")
            query = select_query(parsed.file, name)
            found.append(compile_stored(query, parsed, catalog, file=f"{name}.gq"))
        return found

    def query_text(self, graph_id: str, name: str) -> str:
        """The text of the file that a stored query was applied from."""
        address = build_address(Kind.QUERY, graph_id, name)
        self._folder_of(graph_id)
        resource = self._revision.resources.get(address)
        if resource is None:
            known = ", ".join(self._list_query_names(graph_id)) or "none"
            raise ClusterError(
                "query_not_applied", f"{address} is not applied", hint=f"applied are: {known}"
            )
        path = build_payload_path(address, Kind.QUERY, resource.digest)
        assert path is not None, "queries have payloads"
        data = self._site.objects.get(path)
        if data is None:
            raise ClusterError("catalog_payload_missing", f"{path} is missing", hint=_HINT)
        if digest_bytes(data) != resource.digest:
            raise ClusterError("catalog_payload_digest_mismatch", f"{path} was altered", hint=_HINT)
        return data.decode()

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


_HINT = "run `omnigraph cluster refresh`, then `omnigraph cluster apply`"
