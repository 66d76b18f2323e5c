"""Maintenance: index builds and compaction, which make reads faster and change no answer.

In: the newest view of a branch. Out: maintenance commits, one for all tables of a run. Guarantee:
no entity changes; concurrent writers lose nothing and wait only for the commit itself; a crash at
any step leaves files that nothing refers to; a run that finds nothing to do makes no commit.

An index is derived state. The schema declares which indexes a graph should have; each version of a
table states which ones it has and which fragments they cover. Rows of other fragments are scanned,
so an answer never depends on an index.

Every declared index is one that reads use: an ordered one (BTREE) on ids, on the ends of edges, and
on properties that have an order, including texts. Tables use it whenever a filter allows it. Large
tables get theirs without a command, except those on texts. Nothing is built for words and vectors:
Lance splits words differently from `rows.text_analysis`, and its vector index finds most of the
nearest, not all of them. Searches keep what they need in memory and in the cache of the machine
(`execution.search`).

    index_status         the indexes that a schema declares, and what each table has of them
    maintenance_commit   from the newest view to a commit: `ensure_indices`, `optimize_tables`
    index_builder        builds and extends indexes after commits, in steps
"""

from omnigraph.writers.maintain.index_builder import IndexBuilder
from omnigraph.writers.maintain.index_status import (
    IndexState,
    IndexStatus,
    PendingIndex,
    list_index_status,
)
from omnigraph.writers.maintain.maintenance_commit import (
    BuiltIndex,
    EnsuredIndexes,
    MaintenanceWorkers,
    NewestView,
    OptimizedTable,
    OptimizeResult,
    ensure_indices,
    optimize_tables,
    rebuild_damaged_indexes,
)

__all__ = [
    "BuiltIndex",
    "EnsuredIndexes",
    "IndexBuilder",
    "IndexState",
    "IndexStatus",
    "MaintenanceWorkers",
    "NewestView",
    "OptimizeResult",
    "OptimizedTable",
    "PendingIndex",
    "ensure_indices",
    "list_index_status",
    "optimize_tables",
    "rebuild_damaged_indexes",
]
