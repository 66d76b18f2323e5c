"""The graph of a load as a worker sees it: the one it belongs to, or opened once in a process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from omnigraph.storage.objects import Objects, open_objects
from omnigraph.storage.tables import Tables
from omnigraph.versioning.schemas import Schemas, StoredSchema
from omnigraph.writers.bulk.units import GraphPlace, Job

# Graphs that one worker keeps open.
_OPEN_MAX: Final = 8


@dataclass(frozen=True)
class Stores:
    """Where the rows and the notes of a load are written, and the schemas of its graph."""

    tables: Tables
    # What is written here is of no use after a crash.
    notes: Objects
    schemas: Schemas

    def schema(self, job: Job) -> StoredSchema:
        """The schema that a load was planned with."""
        return self.schemas.get(job.schema)


_open: dict[tuple[object, ...], Stores] = {}
_opening: Final = threading.Lock()


def stores_of(place: GraphPlace) -> Stores:
    """The stores of a graph in this process: those that it is open with, or others."""
    if place.here is not None:
        return place.here
    key = (place.uri, tuple(sorted(place.options.items())), place.is_durable)
    with _opening:
        found = _open.get(key)
        if found is None:
            while len(_open) >= _OPEN_MAX:
                del _open[next(iter(_open))]
            found = _open[key] = _opened(place)
        return found


def _opened(place: GraphPlace) -> Stores:
    notes = open_objects(place.uri, is_durable=False, options=place.options)
    tables = Tables(place.uri, is_durable=place.is_durable, options=place.options)
    return Stores(tables, notes, Schemas(notes))
