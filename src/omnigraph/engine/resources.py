"""What all handles of a process on one graph share: caches, publishers and compaction."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from omnigraph.engine.background import Background
from omnigraph.engine.plans import Plans
from omnigraph.storage import Objects, Tables, open_objects
from omnigraph.syntax import Mode
from omnigraph.versioning import (
    MAIN,
    Branches,
    Committer,
    Compactor,
    History,
    Log,
    Publishers,
    Settings,
)
from omnigraph.versioning.schemas import Schemas
from omnigraph.writers.keys import Keys

# A commit touches a few tables; writing them at the same time costs as much as the slowest one.
TABLE_WRITERS: Final = 8


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the bytes of a graph live.

    Storages with equal keys are one and the same; a storage without a key is like no other.
    `reopened` gives tables that know nothing yet of what is stored.
    """

    objects: Objects
    tables: Tables
    key: Hashable | None = None
    reopened: Callable[[], Tables] | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """What tests replace: the clock in milliseconds, the mode of texts, how commits are made.

    Without settings, the tables of a commit are written at the same time.
    """

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    mode: Mode = Mode.LENIENT
    settings: Settings | None = None


def storage_at(uri: str, *, is_durable: bool, options: Mapping[str, str] | None) -> Storage:
    """The storage at an address."""
    objects = open_objects(uri, is_durable=is_durable, options=options)
    credentials = tuple(sorted((options or {}).items()))

    def tables() -> Tables:
        return Tables(objects.uri, is_durable=is_durable, options=options)

    return Storage(objects, tables(), (objects.uri, is_durable, credentials), tables)


class Resources:
    """One graph in one process, shared by all who opened it there."""

    _shared: Final[weakref.WeakValueDictionary[Hashable, Resources]] = weakref.WeakValueDictionary()
    _sharing: Final = threading.Lock()

    def __init__(self, storage: Storage, environment: Environment | None = None) -> None:
        self.storage = storage
        self.environment = environment or Environment()
        self._is_shared = environment is None and storage.key is not None
        self.log = Log(storage.objects)
        self.schemas = Schemas(storage.objects)
        settings = self.environment.settings or _parallel()
        self.committer = Committer(self.log, storage.tables, settings)
        self.branches = Branches(self.committer)
        self.history = History(self.log, self.branches)
        self.keys = Keys(self.log)
        self.plans = Plans(self.environment.mode)
        self._key: Hashable | None = None
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    def joined(self, user: object) -> Resources:
        """The resources of this process for the graph that is at the storage, found or these.

        An address may come to hold another graph, so the graph is told by the domain of its schema.
        Nothing is shared with an environment of its own.
        """
        key = None
        if self._is_shared:
            schema = self.schemas.get(self.log.head(MAIN).snapshot.schema)
            key = (self.storage.key, schema.accepted.domain)
        with self._sharing:
            found = self._shared.get(key) or self
            found.users.add(user)
            if found is self:
                self._start(key)
            return found

    def leave(self, user: object) -> None:
        """End the use by one handle; the last one stops what runs behind the scenes."""
        with self._sharing:
            self.users.discard(user)
            if self.users:
                return
            if self._shared.get(self._key) is self:
                del self._shared[self._key]
        self.background.shutdown()

    def _start(self, key: Hashable | None) -> None:
        self._key = key
        if key is None:
            self.publishers = Publishers(self.committer)
        else:
            self._shared[key] = self
            self.publishers = Publishers.shared(self.committer, key=key)
        self.background = Background()
        self.compactor = Compactor(self.publishers, self.background)


def _parallel() -> Settings:
    pool = ThreadPoolExecutor(TABLE_WRITERS, thread_name_prefix="omnigraph-write")
    return Settings(executor=pool)
