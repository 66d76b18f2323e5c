"""Where the bytes of a graph are: objects by path, and tables by pinned version.

In: the address of a graph, bytes, and Arrow data. Out: objects, listings, pins and Arrow data.
Guarantee: an object is visible as a whole or not at all; one caller creates a path; a table version
never changes; an acknowledged write on a durable local store survives a power loss; what a failed
or killed writer leaves is not visible. Errors are `StorageError` (it did not happen),
`StorageRefusedError` (it cannot happen until something changes) and `StorageUnknownError` (it may
have happened).

    objects   the object store, its layout of paths, and injected faults
    tables    Lance tables: detached versions, deletion vectors, compaction, indexes, digests
"""

from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects, open_objects, require_exclusive_puts
from omnigraph.storage.tables.fragment_compaction import Compacted, Compaction
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.storage.tables.table_reader import Table

__all__ = [
    "Compacted",
    "Compaction",
    "Entry",
    "Objects",
    "Pin",
    "Staged",
    "Table",
    "Tables",
    "open_objects",
    "require_exclusive_puts",
]
