"""Distances of vectors that are too many to keep: read from the table, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.field import whole
from omnigraph.execution.search.nearest import Vector, nearest
from omnigraph.execution.search.scored import Scored, least, nothing
from omnigraph.execution.search.segment_types import RowIds
from omnigraph.execution.search.vector_segment import vector_segment
from omnigraph.storage.row_ids import ROW_ID


def streamed(
    asked: Asked,
    row_ids: RowIds,
    query: Vector,
    *,
    limit: int | None,
    check: Callable[[], None] = lambda: None,
) -> Scored:
    """The squared distances of the vectors of some rows, or of the nearest so many of them."""
    order = np.argsort(row_ids)
    ordered = row_ids[order]
    found = nothing()
    table = asked.view.table(asked.type_key)
    for batch in table.batches(columns=[ROW_ID, asked.column]):
        check()
        here = vector_segment(batch.column(ROW_ID).to_numpy(), batch.column(asked.column))
        places = np.searchsorted(ordered, here.row_ids)
        places = np.minimum(places, len(ordered) - 1)
        wanted = np.flatnonzero(ordered.take(places) == here.row_ids)
        near = nearest(whole(here), wanted, query, limit=limit)
        found = Scored(
            np.concatenate([found.places, order.take(places.take(wanted.take(near.places)))]),
            np.concatenate([found.scores, near.scores]),
        )
        kept = least(found.scores, limit)
        found = Scored(found.places[kept], found.scores[kept])
    return found
