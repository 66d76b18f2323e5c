"""Columns of paths: lists of integers, a node, an edge, a node and so on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.typed_tree import PathPart
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy


def select_path_part(paths: Values, part: PathPart) -> Values:
    """Paths, or lists of their nodes or of their edges."""
    if part is PathPart.WHOLE:
        return paths
    lists = flatten_chunks(paths)
    values, lengths = split_lists(lists)
    ends = np.cumsum(lengths)
    within = np.arange(len(values)) - np.repeat(ends - lengths, lengths)
    is_edge = part is PathPart.EDGES
    kept = values[within % 2 == int(is_edge)]
    counts = lengths // 2 if is_edge else (lengths + 1) // 2
    return build_lists(pa.array(kept), counts, lists)


def split_lists(lists: pa.ListArray) -> tuple[np.ndarray, np.ndarray]:
    """The items of all lists, and how many each has; a null list has none."""
    lengths = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    return to_numpy(lists.flatten()), lengths


def build_lists(items: pa.Array, counts: np.ndarray, like: pa.Array) -> pa.ListArray:
    """Lists of so many items each, null where another column is."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    mask = like.is_null() if like.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)
