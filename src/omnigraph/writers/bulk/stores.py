"""The graph of a load as a worker sees it: the one it belongs to, or opened once in a process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from omnigraph.storage.objects import Objects, open_objects
from omnigraph.storage.tables import Tables
from omnigraph.versioning.schemas import Schemas, StoredSchema
from omnigraph.writers.bulk.units import GraphLocation, LoadJob

# Graphs that one worker keeps open.
_OPEN_STORES_MAX: Final = 8


@dataclass(frozen=True)
class Stores:
    """Where the rows and the notes of a load are written, and the schemas of its graph."""

    tables: Tables
    # What is written here is of no use after a crash.
    objects: Objects
    schemas: Schemas

    def get_schema(self, job: LoadJob) -> StoredSchema:
        """The schema that a load was planned with."""
        return self.schemas.get(job.schema)


_stores_cache: dict[tuple[object, ...], Stores] = {}
_cache_lock: Final = threading.Lock()


def get_stores(place: GraphLocation) -> Stores:
    """The stores of a graph in this process: those that it is open with, or others."""
    if place.local_stores is not None:
        return place.local_stores
    key = (place.uri, tuple(sorted(place.options.items())), place.is_durable)
    with _cache_lock:
        found = _stores_cache.get(key)
        if found is None:
            while len(_stores_cache) >= _OPEN_STORES_MAX:
                del _stores_cache[next(iter(_stores_cache))]
            found = _stores_cache[key] = _open_stores(place)
        return found


def _open_stores(place: GraphLocation) -> Stores:
    notes = open_objects(place.uri, is_durable=False, options=place.options)
    tables = Tables(place.uri, is_durable=place.is_durable, options=place.options)
    return Stores(tables, notes, Schemas(notes))
