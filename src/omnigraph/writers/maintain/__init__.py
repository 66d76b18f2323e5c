"""Maintenance: what makes tables faster to read, and changes no answer.

In: the newest view of a branch. Out: commits of maintenance, one for all tables of a run.
Guarantee: no entity changes; whoever writes meanwhile loses nothing and waits for nothing but the
commit itself; a crash at any step leaves files that nothing refers to; a run that finds nothing to
do makes no commit.

An index is derived state. The schema says which ones a graph should have; each version of a table
says which ones it has and which fragments they cover. Rows of other fragments are read as if there
were no index, so an answer never depends on one.

What the kinds are for:

    BTREE     look-ups of ids and of the ends of edges, and filters on properties that have an
              order. The tables use them by themselves, whenever they meet such a filter.
    INVERTED  words of texts. Lance cuts words almost as `execution.text.analyze` does, but not
              at underscores, and it stems before it takes accents away: it misses rows that a
              search has to find.
    VECTOR    which partitions of the vectors are near (metric L2). It finds most of the nearest
              rows, not all of them.

Searches must give the same answer with an index absent, stale or fresh, so they read texts and
vectors themselves and ask neither of the last two. Those serve other programs that open the same
tables. Whoever wants to use one where that is safe finds its kind, column and coverage in
`Table.indexes`: rows that it does not cover have to be read besides.

    declared    the indexes that a schema asks for
    status      what a version of each table has of them
    work        compactions and index segments, written but in no version yet
    run         from the newest view to a commit: `ensure_indices`, `optimize`
    keeper      the same after commits, when much has been written
"""

from omnigraph.writers.maintain.keeper import IndexKeeper
from omnigraph.writers.maintain.run import (
    BuiltIndex,
    Ensured,
    Newest,
    Optimized,
    OptimizedTable,
    ensure_indices,
    optimize,
)
from omnigraph.writers.maintain.status import (
    IndexState,
    IndexStatus,
    PendingIndex,
    index_status,
)

__all__ = [
    "BuiltIndex",
    "Ensured",
    "IndexKeeper",
    "IndexState",
    "IndexStatus",
    "Newest",
    "Optimized",
    "OptimizedTable",
    "PendingIndex",
    "ensure_indices",
    "index_status",
    "optimize",
]
