"""Distances of vectors that are too many to keep: read from the table, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.execution.search.asked import FieldRef
from omnigraph.execution.search.field import make_single_segment
from omnigraph.execution.search.nearest import Vector, find_nearest
from omnigraph.execution.search.scored import ScoredNodes, make_empty, select_least
from omnigraph.execution.search.segment_types import RowIds
from omnigraph.execution.search.vector_segment import build_vector_segment
from omnigraph.storage.row_ids import ROW_ID


def stream_nearest(
    asked: FieldRef,
    row_ids: RowIds,
    query: Vector,
    *,
    limit: int | None,
    check: Callable[[], None] = lambda: None,
) -> ScoredNodes:
    """The squared distances of the vectors of some rows, or of the nearest so many of them."""
    order = np.argsort(row_ids)
    ordered = row_ids[order]
    found = make_empty()
    table = asked.view.open_table(asked.type_key)
    for batch in table.scan_batches(columns=[ROW_ID, asked.column]):
        check()
        here = build_vector_segment(batch.column(ROW_ID).to_numpy(), batch.column(asked.column))
        places = np.searchsorted(ordered, here.row_ids)
        places = np.minimum(places, len(ordered) - 1)
        wanted = np.flatnonzero(ordered.take(places) == here.row_ids)
        near = find_nearest(make_single_segment(here), wanted, query, limit=limit)
        found = ScoredNodes(
            np.concatenate([found.indices, order.take(places.take(wanted.take(near.indices)))]),
            np.concatenate([found.scores, near.scores]),
        )
        kept = select_least(found.scores, limit)
        found = ScoredNodes(found.indices[kept], found.scores[kept])
    return found
