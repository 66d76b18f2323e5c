"""The resources that all handles of a process on one graph share: caches and publishers."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from omnigraph.embedding import ConfiguredEmbedder
from omnigraph.embedding.embedder import EmbedMode, to_batch_embedder
from omnigraph.embedding.text_vectors import TextVectors
from omnigraph.embedding.vector_cache import VectorCache
from omnigraph.engine.auto_cleanup import AutoCleanup, read_policy
from omnigraph.engine.background import Background, TableThreads
from omnigraph.engine.graph_caches import ArrayCache, CompiledQueryCache
from omnigraph.engine.vector_builder import VectorBuilder
from omnigraph.errors import CorruptObjectError, EmbeddingError, FormatTooNewError
from omnigraph.execution.execution_context import Embedder
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.query_budget import Access
from omnigraph.execution.search import share_memory
from omnigraph.execution.sources.source_cache import create_source_cache, find_cache_folder
from omnigraph.lang.lexer import Mode
from omnigraph.rows.view import open_view
from omnigraph.storage import Objects, Tables, open_objects
from omnigraph.versioning import (
    MAIN,
    Branches,
    Committer,
    Compactor,
    History,
    Lineage,
    Log,
    Publishers,
    Record,
    Settings,
    Snapshot,
)
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.proposals import ProposalLog
from omnigraph.versioning.record import GENESIS_SEQ
from omnigraph.versioning.schema_store import Schemas
from omnigraph.versioning.upgrade import UpgradeReport, upgrade_graph
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.maintain import IndexBuilder
from omnigraph.writers.vector_fill import VectorFill


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the bytes of a graph live.

    Storages with equal keys are one and the same; a storage without a key is like no other.
    `reopened` gives tables that know nothing yet of what is stored. `options` and `is_durable` are
    what another process needs besides the address.
    """

    objects: Objects
    tables: Tables
    key: Hashable | None = field(default=None, repr=False)
    reopen: Callable[[], Tables] | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_durable: bool = True


@dataclass(frozen=True, slots=True)
class Environment:
    """What tests replace: the clock in milliseconds, the mode of texts, how commits are made.

    Without settings, the tables of a commit are written at the same time. `access` is where reads
    get nodes and edges from, and `embed` makes vectors of the texts they search for.
    """

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    mode: Mode = Mode.LENIENT
    settings: Settings | None = None
    access: Access = Access.AUTO
    embed: Embedder | None = field(default_factory=lambda: ConfiguredEmbedder(os.environ))


def open_storage(uri: str, *, is_durable: bool, options: Mapping[str, str] | None) -> Storage:
    """The storage at an address."""
    objects = open_objects(uri, is_durable=is_durable, options=options)
    # Hashed, so that no secret can be read from a key.
    credentials = hashlib.sha256(json.dumps(sorted((options or {}).items())).encode()).hexdigest()

    def tables() -> Tables:
        return Tables(objects.uri, is_durable=is_durable, options=options)

    key = (objects.uri, is_durable, credentials)
    return Storage(objects, tables(), key, tables, dict(options or {}), is_durable)


class Resources:
    """One graph in one process, shared by all its handles."""

    _shared: Final[weakref.WeakValueDictionary[Hashable, Resources]] = weakref.WeakValueDictionary()
    _shared_lock: Final = threading.Lock()

    def __init__(self, storage: Storage, environment: Environment | None = None) -> None:
        self.storage = storage
        self.environment = environment or Environment()
        self._is_shared = environment is None and storage.key is not None
        self._key: Hashable | None = None
        self._table_threads = TableThreads()
        settings = self.environment.settings or Settings(executor=self._table_threads)
        self.log = Log(storage.objects)
        self.schemas = Schemas(storage.objects)
        self.committer = Committer(self.log, storage.tables, settings)
        self.branches = Branches(self.committer)
        self.history = History(self.log, self.branches)
        self.lineage = Lineage(self.log, self.branches, self.schemas)
        self.proposals = ProposalLog(storage.objects, self.committer.settings.now_us)
        self.plans = CompiledQueryCache(self.environment.mode)
        sources = create_source_cache(self.log, os.environ)
        share_memory(storage.tables, sources.memory, sources.files)
        self.reads = QueryExecutor(sources, embed=self.environment.embed)
        self.publishers = Publishers(self.committer)
        self.background = Background()
        self.keys = KeyCache(self.log, self.background)
        self.compactor = Compactor(self.publishers, self.background)
        self.index_builder = _create_index_maintainer(
            self.publishers, self.background, self.schemas, storage.tables
        )
        self.auto_cleanup = self._create_auto_cleanup(read_policy(os.environ))
        # A provider may take long: nothing else waits for it.
        self.fills = Background()
        self.vector_builder = VectorBuilder(self)
        self.candidate_ids = ArrayCache()
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    def create_fill(self, mode: EmbedMode) -> VectorFill | None:
        """What a write does about the vectors of its texts; None if it does nothing."""
        if mode is EmbedMode.NEVER:
            return None
        return VectorFill(mode, self.texts.embedder, self.texts.embed)

    @cached_property
    def texts(self) -> TextVectors:
        """The embedder of documents, with the vectors that it made before."""
        if self.environment.embed is None:
            raise EmbeddingError(
                "no embedder is configured to make vectors of texts",
                reason="not_configured",
                hint="set OMNIGRAPH_EMBED_PROVIDER and a key, or write with embed 'never'",
            )
        return _open_texts(self.environment.embed)

    def find_failures(self, texts: list[str], dimension: int) -> dict[int, str]:
        """Why the provider refused texts, by their places; nothing if there is no provider."""
        try:
            return self.texts.find_failures(texts, dimension)
        except EmbeddingError:
            # Without its settings, nothing is known of it.
            return {}

    def create_collector(self) -> Collector:
        """What cleans the graph up."""
        storage = self.storage
        return Collector(
            storage.objects,
            storage.tables,
            tracer=storage.reopen or (lambda: storage.tables),
            settings=self.committer.settings,
        )

    def upgrade(self, *, is_dry: bool) -> UpgradeReport:
        """Bring the graph to the current format."""
        storage, now_us = self.storage, self.committer.settings.now_us
        report = upgrade_graph(storage.objects, storage.tables, now_us=now_us, is_dry=is_dry)
        # From now on, a record without a digest is damage for this process, too.
        self.log.require_format()
        return report

    def _create_auto_cleanup(self, policy: Policy | None) -> AutoCleanup | None:
        if policy is None:
            return None
        cleanup = AutoCleanup(
            self.storage.objects,
            self.background,
            clean=lambda: self.create_collector().collect(policy, is_dry=False),
            now_us=self.committer.settings.now_us,
        )
        _add_commit_listener(self.publishers, cleanup.consider)
        return cleanup

    def join_shared(self, user: object) -> Resources:
        """The resources of this process for the graph that is at the storage, found or these.

        Resources without users are not found: an address may come to hold an older copy of the
        graph. Nothing is shared with an environment of its own.
        """
        key = self._read_identity() if self._is_shared else None
        known = None if key is None else self._shared.get(key)
        is_current = known is not None and self._is_consistent_with(known)
        with self._shared_lock:
            found = None if key is None else self._shared.get(key)
            if found is None or not found.users or (found is known and not is_current):
                found = self
                if key is not None:
                    self._key = key
                    self._shared[key] = self
            found.users.add(user)
            return found

    def leave(self, user: object) -> None:
        """End the use by one handle; the last one stops the background work."""
        with self._shared_lock:
            self.users.discard(user)
            if self.users:
                return
            if self._key is not None and self._shared.get(self._key) is self:
                del self._shared[self._key]
        self.fills.shutdown()
        self.background.shutdown()
        self.reads.sources.close()
        self._table_threads.shutdown(wait=False)

    def _read_identity(self) -> Hashable | None:
        """The identity of this graph among those that were or will be at its address.

        None, so that nothing is shared, where the first record cannot be read.
        """
        try:
            genesis = self.log.read(MAIN.id, GENESIS_SEQ)
        except (CorruptObjectError, FormatTooNewError):
            return None
        return (self.storage.key, genesis.commit) if isinstance(genesis, Record) else None

    def _is_consistent_with(self, known: Resources) -> bool:
        """Whether what other resources know of the graph is what is stored."""
        head = known.log.get_known_head(MAIN)
        if head is None:
            return True
        try:
            stored = self.log.read(MAIN.id, head.snapshot.seq)
        except (CorruptObjectError, FormatTooNewError):
            return False
        return isinstance(stored, Record) and stored.commit == head.snapshot.commit


def _create_index_maintainer(
    publishers: Publishers, background: Background, schemas: Schemas, tables: Tables
) -> IndexBuilder:
    """Create the index builder and register it as the last listener of commits."""
    log = publishers.committer.log
    builder = IndexBuilder(
        publishers,
        lambda stream: open_view(log.read_head(stream).snapshot, schemas, tables),
        background,
        background.has_time,
    )
    _add_commit_listener(publishers, builder.consider_snapshot)
    return builder


def _add_commit_listener(publishers: Publishers, listener: Callable[[Snapshot], None]) -> None:
    """Call a listener after each commit, after those that are registered already."""
    first = publishers.on_published

    def notify(snapshot: Snapshot) -> None:
        if first is not None:
            first(snapshot)
        listener(snapshot)

    publishers.on_published = notify


def open_environment_texts() -> TextVectors:
    """The embedder of the environment of the process, with the vectors that it made before."""
    return _open_texts(ConfiguredEmbedder(os.environ))


def _open_texts(embedder: Embedder) -> TextVectors:
    folder = find_cache_folder(os.environ)
    cache = None if folder is None else VectorCache(folder / "vectors")
    return TextVectors(to_batch_embedder(embedder), cache)
