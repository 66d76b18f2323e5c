"""The vectors of some nodes: from memory, or, if they are few, from the table."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from omnigraph.execution.search.field_cache import field_cache_of
from omnigraph.execution.search.field_index import Mask, RowIds
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.nearest_vectors import take_vectors
from omnigraph.execution.search.vector_segment import Matrix, matrix_of
from omnigraph.rows.comparison import Poll, flatten_chunks, to_numpy

# So few vectors are read by themselves, unless all of them are in memory.
FEW_VECTORS: Final = 1_000


class StoredVectors(NamedTuple):
    """The vectors of those rows that have one, and which rows those are."""

    matrix: Matrix
    is_known: Mask


def fetch_vectors(asked: FieldRef, row_ids: RowIds, check: Poll) -> StoredVectors:
    """The vectors of rows, in their order."""
    fields = field_cache_of(asked.view)
    field = None
    if len(row_ids) > FEW_VECTORS or fields.has_field(asked):
        field = fields.get_vectors(asked, check=check)
    if field is None:
        return _read_vectors(asked, row_ids, check)
    places = field.find_row_indices(row_ids)
    is_known = places >= 0
    return StoredVectors(take_vectors(field, places[is_known]), is_known)


def _read_vectors(asked: FieldRef, row_ids: RowIds, check: Poll) -> StoredVectors:
    distinct, of_rows = np.unique(row_ids, return_inverse=True)
    vectors = flatten_chunks(asked.read_rows(distinct, check=check)[1])
    has_vector = to_numpy(vectors.is_valid())
    places = (np.cumsum(has_vector) - 1).take(of_rows) if len(of_rows) else of_rows
    is_known: Mask = has_vector[of_rows]
    return StoredVectors(matrix_of(vectors.drop_null())[places[is_known]], is_known)
