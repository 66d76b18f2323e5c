"""Maintenance: what makes tables faster to read, and changes no answer.

In: the newest view of a branch. Out: commits of maintenance, one for all tables of a run.
Guarantee: no entity changes; whoever writes meanwhile loses nothing and waits for nothing but the
commit itself; a crash at any step leaves files that nothing refers to; a run that finds nothing to
do makes no commit.

An index is derived state. The schema says which ones a graph should have; each version of a table
says which ones it has and which fragments they cover. Rows of other fragments are read as if there
were no index, so an answer never depends on one.

Every declared index is one that reads use: an ordered one (BTREE) on ids, on the ends of edges, and
on properties that have an order, texts among them. The tables ask it by themselves whenever they
meet a filter it serves. Large tables get theirs without a command, except those of texts. Nothing
is built for words and vectors: Lance cuts words in another way than `execution.text.analyze`, and
its index of vectors finds most of the nearest, not all of them. Searches keep what they need in
memory and in the cache of the machine (`execution.search`).

    declared    the indexes that a schema asks for
    status      what a version of each table has of them
    work        compactions and index segments, written but in no version yet
    run         from the newest view to a commit: `ensure_indices`, `optimize`
    keeper      builds and extends indexes after commits, in pieces
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
]
