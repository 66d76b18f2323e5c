"""What changed between two commits, by the ids that their records name and the images of those.

In: two views and their lineage. Out: per type the entities that were inserted, updated or deleted,
with their rows before and after. Guarantee: only real changes; the cost follows what was written
between the two commits, never the tables, and vectors and blobs are read only where nothing else
decides.

    pairing      which types and columns of two schemas are the same ones
    writes       the ids that records name, and the candidates of two views
    rows         rows of ids at a view
    equality     which values of two columns differ
    comparison   which rows of two tables differ
    changed      the real changes of one type, and of all types in order
    texts        images as JSON text
"""

from omnigraph.execution.changes.changed import (
    ALL_CHANGES,
    ChangeFilter,
    Counts,
    Op,
    TypeDifference,
    are_copies_shared,
    difference,
    differences,
)
from omnigraph.execution.changes.comparison import compare
from omnigraph.execution.changes.equality import differing
from omnigraph.execution.changes.pairing import ColumnPair, TypePair, is_heavy, pair_types, type_id
from omnigraph.execution.changes.rows import all_ids, keys_at, rows_at
from omnigraph.execution.changes.texts import decoded, image_texts, images
from omnigraph.execution.changes.writes import Touched, bulk_ids, candidates, touched

__all__ = [
    "ALL_CHANGES",
    "ChangeFilter",
    "ColumnPair",
    "Counts",
    "Op",
    "Touched",
    "TypeDifference",
    "TypePair",
    "all_ids",
    "are_copies_shared",
    "bulk_ids",
    "candidates",
    "compare",
    "decoded",
    "difference",
    "differences",
    "differing",
    "image_texts",
    "images",
    "is_heavy",
    "keys_at",
    "pair_types",
    "rows_at",
    "touched",
    "type_id",
]
