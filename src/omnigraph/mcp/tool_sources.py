"""The graph, the queries and the policy that a command names, followed while it serves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from omnigraph.clusters.applied_cluster import Cluster, open_cluster
from omnigraph.clusters.query_registry import compile_file, list_query_files
from omnigraph.engine import Graph, open_graph
from omnigraph.engine.gate import Gate
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.read_only_gate import ReadOnlyGate
from omnigraph.mcp.tool_scope import ToolScope
from omnigraph.mcp.toolbox import GraphToolbox
from omnigraph.operations.graph_reads import ReadBounds
from omnigraph.operations.stored_queries import QueryCatalogue, StoredText
from omnigraph.schema.catalog import Catalog

# What a command serves.
ToolSource: TypeAlias = "FileSource | ClusterSource"
# What the tools depend on: files or a revision, and a schema.
_Version = tuple[object, ...]


@contextmanager
def open_source(
    address: str,
    *,
    actor: str | None,
    cluster_graph: tuple[str, str] | None,
    queries: tuple[Path, ...],
    exposure: Exposure,
    timeout_s: float,
) -> Iterator[ToolSource]:
    """The tools of a graph; of one of a cluster, by the root of that and its id."""
    bounds = ReadBounds(timeout_s=timeout_s)
    is_plain = cluster_graph is None
    gate = ReadOnlyGate() if is_plain and exposure.is_read_only else None
    with open_graph(address, actor=actor, policy=gate) as graph:
        source: ToolSource = (
            FileSource(graph, queries, exposure, bounds)
            if cluster_graph is None
            else ClusterSource(*cluster_graph, graph, exposure, bounds)
        )
        if exposure.hidden:
            _require_known(exposure.hidden, source.read().scope.catalogue)
        yield source


def _require_known(hidden: frozenset[str], catalogue: QueryCatalogue) -> None:
    """Refuse names of no query: what was to be hidden under the right one would be offered."""
    for name in sorted(hidden - catalogue.queries.keys()):
        known = sorted(catalogue.queries)
        hint = suggest_similar(name, known) or f"there are: {', '.join(known) or 'none'}"
        raise InvalidArgumentError("hide", f"no stored query is called '{name}'", hint=hint)


@dataclass
class FileSource:
    """An open graph, and stored queries in `.gq` files."""

    graph: Graph
    paths: tuple[Path, ...]
    exposure: Exposure
    bounds: ReadBounds = field(default_factory=ReadBounds)
    _known: tuple[_Version, QueryCatalogue] | None = None

    def read(self) -> GraphToolbox:
        """The tools of now; files are compiled again when they or the schema changed."""
        files = [each for path in self.paths for each in _list_files(path)]
        snapshot = self.graph.branch().snapshot()
        stamps = [_stamp(each) for each in files]
        version = (snapshot.at.schema, *stamps)
        if self._known is None or self._known[0] != version:
            self._known = version, QueryCatalogue(_compile(files, snapshot.view.catalog))
        scope = ToolScope(self.graph, self._known[1], self.exposure, self.bounds, self.graph)
        return GraphToolbox(scope, has_health=True)


def _list_files(path: Path) -> list[Path]:
    try:
        return list_query_files(path)
    except OSError as error:
        raise InvalidArgumentError("queries", f"{path}: {error.strerror}") from error


def _stamp(path: Path) -> tuple[str, int, int]:
    """What differs once a file has changed."""
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidArgumentError("queries", f"{path}: {error.strerror}") from error
    return str(path), found.st_mtime_ns, found.st_size


def _compile(files: list[Path], catalog: Catalog) -> Mapping[str, StoredText]:
    found: dict[str, StoredText] = {}
    for path in files:
        data = path.read_bytes()
        for entry in compile_file(data, catalog, file=path.name):
            if entry.name in found:
                known = found[entry.name].entry.file
                reason = f"{path.name} and {known} both declare '{entry.name}'"
                raise InvalidArgumentError("queries", reason)
            found[entry.name] = StoredText(entry, data.decode())
    return found


@dataclass
class ClusterSource:
    """A graph of a cluster, with the queries and the policy of its newest revision."""

    root: str
    graph_id: str
    # Opened without a policy; every scope has that of its revision.
    graph: Graph
    exposure: Exposure
    bounds: ReadBounds = field(default_factory=ReadBounds)
    _known: tuple[_Version, ToolScope] | None = None

    def read(self) -> GraphToolbox:
        """The tools of now; queries are compiled again when the revision or the schema changed."""
        cluster = open_cluster(self.root)
        version = (cluster.revision, self.graph.branch().snapshot().at.schema)
        if self._known is None or self._known[0] != version:
            self._known = version, self._build_scope(cluster)
        return GraphToolbox(self._known[1], has_health=True)

    def _build_scope(self, cluster: Cluster) -> ToolScope:
        queries = cluster.queries(self.graph_id)
        texts = {
            each.name: StoredText(each, cluster.query_text(self.graph_id, each.name))
            for each in queries
        }
        gate: Gate | None = cluster.policy(self.graph_id)
        if self.exposure.is_read_only:
            gate = ReadOnlyGate(gate)
        return ToolScope(
            Graph(self.graph.branch().session.guard_by(gate)),
            QueryCatalogue(texts),
            replace(self.exposure, is_managed=True),
            self.bounds,
            self.graph,
        )
