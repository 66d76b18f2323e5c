"""Vectors to be near to that rows have: the same for all of them, a few, or one for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import Batch
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.nearest_vectors import BLOCK_ROWS, VectorSearch
from omnigraph.execution.search.scored_nodes import ScoredNodes
from omnigraph.execution.search.stored_vectors import StoredVectors, fetch_vectors
from omnigraph.execution.search.vector_metrics import Vector, measure_vectors
from omnigraph.execution.search.vector_segment import Matrix, matrix_of
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.typed_tree import Expr, NearestScore, PropertyValue
from omnigraph.rows.comparison import flatten_chunks, to_numpy
from omnigraph.rows.evaluator import evaluate

if TYPE_CHECKING:
    from omnigraph.execution.execution_context import ExecutionContext

# From so many rows on with the same query, their vectors are searched together.
_ROWS_PER_QUERY_MIN: Final = 64
# Rows whose vectors are fetched together.
_BLOCK_PAIRS: Final = 2**15


@dataclass(frozen=True, slots=True)
class RowQueries:
    """The distinct vectors of rows, and which of them each row has; -1 for none."""

    matrix: Matrix
    of_rows: npt.NDArray[np.int64]

    def are_few(self, rows: int) -> bool:
        """Whether so many rows are searched faster by query than one by one."""
        return len(self.matrix) <= 1 or len(self.matrix) * _ROWS_PER_QUERY_MIN <= rows

    def iter_groups(self) -> Iterator[tuple[Vector, RowIndices]]:
        """Each vector with the rows that have it."""
        order = np.argsort(self.of_rows, kind="stable")
        ends = np.searchsorted(self.of_rows[order], np.arange(len(self.matrix) + 1))
        for at, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                yield self.matrix[at], order[start:end]


def find_row_queries(query: Expr, batch: Batch, context: ExecutionContext) -> RowQueries:
    """The vectors that rows have by an expression; those of one node are one."""
    if not isinstance(query, PropertyValue) or not _is_stored(query, context):
        vectors = flatten_chunks(evaluate(query, context.rows_of(batch), context.params))
        known = to_numpy(vectors.is_valid())
        return RowQueries(matrix_of(vectors.drop_null()), np.where(known, np.cumsum(known) - 1, -1))
    numbers, of_rows = np.unique(batch.nodes[query.variable], return_inverse=True)
    # The number of a node that a row lacks is -1.
    is_bound = numbers >= 0
    found = _fetch_property(query, numbers[is_bound], context)
    is_bound[is_bound] = found.is_known
    places = np.where(is_bound, np.cumsum(is_bound) - 1, -1)
    return RowQueries(found.matrix, places.take(of_rows))


def _is_stored(query: PropertyValue, context: ExecutionContext) -> bool:
    """Whether the property is one of nodes in a table, not a value that a stage carries."""
    return context.nodes_of.get(query.variable, "") in context.view.catalog.nodes


def _fetch_property(
    value: PropertyValue, numbers: DenseIds, context: ExecutionContext
) -> StoredVectors:
    type_name = context.nodes_of[value.variable]
    row_ids = context.source.get_nodes(type_name).fetch_row_ids(numbers)
    asked = FieldRef(context.view, type_name, value.property)
    return fetch_vectors(asked, row_ids, context.budget.check_interrupts)


def measure_pairs(
    score: NearestScore,
    queries: RowQueries,
    batch: Batch,
    context: ExecutionContext,
    *,
    limit: int | None,
) -> ScoredNodes:
    """How far each row's vector is from its own query, a block of rows at a time."""
    search = VectorSearch(score.metric, context.budget.check_interrupts)
    asked = PropertyValue(score.variable, score.property, score.type)
    parts = [ScoredNodes(np.empty(0, np.int64), np.empty(0, np.float32))]
    numbers = batch.nodes[score.variable]
    both = np.flatnonzero((queries.of_rows >= 0) & (numbers >= 0))
    for start in range(0, len(both), _BLOCK_PAIRS):
        search.check()
        rows = both[start : start + _BLOCK_PAIRS]
        found = _fetch_property(asked, numbers.take(rows), context)
        rows = rows[found.is_known]
        for at in range(0, len(rows), BLOCK_ROWS):
            search.check()
            here = rows[at : at + BLOCK_ROWS]
            there = queries.matrix[queries.of_rows[here]].astype(np.float64)
            near = measure_vectors(score.metric, found.matrix[at : at + BLOCK_ROWS], there)
            parts.append(ScoredNodes(here, near))
    indices, scores = map(np.concatenate, zip(*parts, strict=True))
    return search.select(ScoredNodes(indices, scores), limit)
