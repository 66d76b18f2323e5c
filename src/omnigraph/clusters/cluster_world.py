"""The effects of an apply on storage: the only module here that changes graphs.

Everything that adds is done before the revision and is unreachable until it; everything that
removes is done after it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_ledger import ClusterLedger
from omnigraph.clusters.desired import digest_bytes
from omnigraph.clusters.revision import Revision
from omnigraph.engine.gate import Gate
from omnigraph.engine.graph import Graph, create_on, open_on
from omnigraph.engine.resources import Environment, Storage, open_storage
from omnigraph.errors import GraphNotFoundError, StorageError, StorageUnknownError
from omnigraph.storage import Objects, open_objects

# How far back the commit of a migration is looked for, to say who made it.
_COMMITS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """The graph that an effect is about: its folder, its schema, and the key of the request."""

    graph_id: str
    folder: str
    schema: str
    key: str
    actor: str | None


@dataclass(frozen=True, slots=True)
class GraphState:
    """A graph as it was found or made; `is_adopted` if an earlier apply had done the work."""

    schema_digest: str
    version: int
    is_adopted: bool = False
    actor: str | None = None


class SchemaDriftError(Exception):
    """The live schema is neither the one that was planned from nor the desired one."""


class World(Protocol):
    """The five effects of an apply."""

    def put_payload(self, path: str, data: bytes) -> None:
        """Store content by its digest; storing it again is allowed."""

    def create_graph(self, request: GraphRequest) -> GraphState:
        """Create a graph, or adopt the one that the same request made."""

    def migrate(self, request: GraphRequest, *, expected: str | None) -> GraphState:
        """Bring a schema into force, if the live one has the expected digest."""

    def put_revision(self, revision: Revision) -> bool:
        """Commit; False if another revision has the number."""

    def remove_folder(self, folder: str) -> bool:
        """Remove everything in a folder; False if something is left."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a cluster lives, and how its graphs are opened."""

    root: str
    objects: Objects
    open_graph_storage: Callable[[str], Storage]
    environment: Environment | None = None

    @property
    def ledger(self) -> ClusterLedger:
        """Its revisions."""
        return ClusterLedger(self.objects)

    def uri_of(self, folder: str) -> str:
        """The address of a graph."""
        return f"{self.root}/{folder}"

    def open_graph(
        self, folder: str, actor: str | None = None, *, gate: Gate | None = None
    ) -> Graph:
        """The graph in a folder, opened; without a gate, for the work of the cluster itself."""
        storage = self.open_graph_storage(self.uri_of(folder))
        return open_on(storage, actor=actor, environment=self.environment, gate=gate)

    def observe(self, folder: str) -> GraphState | None:
        """The graph in a folder as it is; None where there is none."""
        try:
            with self.open_graph(folder) as graph:
                return _describe(graph)
        except GraphNotFoundError:
            return None


def open_site(root: str) -> Site:
    """The site at a directory, `file://…`, `memory://NAME` or `s3://bucket/prefix`."""
    objects = open_objects(root)
    return Site(objects.uri, objects, _open_graph_storage)


def _open_graph_storage(uri: str) -> Storage:
    return open_storage(uri, is_durable=True, options=None)


class StoredWorld:
    """The effects on a site."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def put_payload(self, path: str, data: bytes) -> None:
        """Store content by its digest; a damaged copy is replaced."""
        objects = self._site.objects
        try:
            is_new = False
            with suppress(StorageUnknownError):
                is_new = objects.put_new(path, data)
            if not is_new and objects.get(path) != data:
                objects.put(path, data)
        except StorageError as error:
            raise ClusterStopped("resource_payload_write_error", path, error.message) from error

    def create_graph(self, request: GraphRequest) -> GraphState:
        """Create a graph, or adopt and bring up to date the one that the same request made."""
        storage = self._site.open_graph_storage(self._site.uri_of(request.folder))
        environment = self._site.environment
        is_there = self._site.observe(request.folder) is not None
        with create_on(
            storage,
            schema=request.schema,
            actor=request.actor,
            environment=environment,
            key=request.key,
        ) as graph:
            return _migrate(graph, request) if is_there else _describe(graph)

    def migrate(self, request: GraphRequest, *, expected: str | None) -> GraphState:
        """Bring a schema into force; one that is in force already was brought by an earlier run."""
        with self._site.open_graph(request.folder, request.actor) as graph:
            return _migrate(graph, request, expected=expected)

    def put_revision(self, revision: Revision) -> bool:
        """Commit a revision."""
        return self._site.ledger.put(revision)

    def remove_folder(self, folder: str) -> bool:
        """Remove every object of a graph that no revision names."""
        objects = self._site.open_graph_storage(self._site.uri_of(folder)).objects
        try:
            if paths := [entry.path for entry in objects.list("")]:
                objects.delete(paths)
            return self.is_empty(folder)
        except StorageError:
            return False

    def is_empty(self, folder: str) -> bool:
        """Whether no object is left in a folder."""
        objects = self._site.open_graph_storage(self._site.uri_of(folder)).objects
        return next(iter(objects.list("")), None) is None


def _migrate(graph: Graph, request: GraphRequest, *, expected: str | None = None) -> GraphState:
    main = graph.branch()
    live, wanted = digest_bytes(main.schema.encode()), digest_bytes(request.schema.encode())
    if live == wanted:
        return _describe(graph, is_adopted=True, key=request.key)
    if expected is not None and live != expected:
        raise SchemaDriftError(f"the live schema has the digest {live}, and {expected} was planned")
    main.apply_schema(request.schema, key=request.key, if_schema=live)
    return _describe(graph)


def _describe(graph: Graph, *, is_adopted: bool = False, key: str | None = None) -> GraphState:
    main = graph.branch()
    made = (each for each in main.commits(limit=_COMMITS_MAX) if each.key == key)
    commit = next(made, None) if key is not None else None
    return GraphState(
        digest_bytes(main.schema.encode()),
        main.version,
        is_adopted,
        None if commit is None else commit.actor,
    )
