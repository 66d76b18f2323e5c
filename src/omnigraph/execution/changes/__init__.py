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
    compute_difference,
    compute_differences,
)
from omnigraph.execution.changes.comparison import compare_rows
from omnigraph.execution.changes.equality import compare_columns
from omnigraph.execution.changes.pairing import (
    ColumnPair,
    TypePair,
    compute_type_id,
    is_heavy,
    pair_types,
)
from omnigraph.execution.changes.rows import fetch_keys, fetch_rows, read_all_ids
from omnigraph.execution.changes.texts import decode_images, encode_difference_images, encode_images
from omnigraph.execution.changes.writes import (
    WrittenIds,
    collect_writes,
    find_candidates,
    read_bulk_ids,
)

__all__ = [
    "ALL_CHANGES",
    "ChangeFilter",
    "ColumnPair",
    "Counts",
    "Op",
    "TypeDifference",
    "TypePair",
    "WrittenIds",
    "are_copies_shared",
    "collect_writes",
    "compare_columns",
    "compare_rows",
    "compute_difference",
    "compute_differences",
    "compute_type_id",
    "decode_images",
    "encode_difference_images",
    "encode_images",
    "fetch_keys",
    "fetch_rows",
    "find_candidates",
    "is_heavy",
    "pair_types",
    "read_all_ids",
    "read_bulk_ids",
]
