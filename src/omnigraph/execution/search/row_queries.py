"""Vectors to be near to that rows have: the same for all of them, a few, or one for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import Batch
from omnigraph.execution.search.nearest_vectors import BLOCK_ROWS, VectorSearch
from omnigraph.execution.search.scored_nodes import ScoredNodes
from omnigraph.execution.search.vector_metrics import Vector, measure_vectors
from omnigraph.execution.search.vector_segment import Matrix, matrix_of
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.typed_tree import Expr, NearestScore, PropertyValue
from omnigraph.rows.comparison import flatten_chunks, to_numpy
from omnigraph.rows.evaluator import evaluate

if TYPE_CHECKING:
    from omnigraph.execution.execution_context import ExecutionContext

# From so many rows on with the same query, their vectors are searched together.
_ROWS_PER_QUERY_MIN: Final = 64


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
    rows, of_rows = batch, np.arange(batch.num_rows)
    if isinstance(query, PropertyValue) and query.variable in batch.nodes:
        numbers, of_rows = np.unique(batch.nodes[query.variable], return_inverse=True)
        rows = Batch(len(numbers), {query.variable: numbers})
    vectors = flatten_chunks(evaluate(query, context.rows_of(rows), context.params))
    is_known = to_numpy(vectors.is_valid())
    places = np.where(is_known, np.cumsum(is_known) - 1, -1)
    return RowQueries(matrix_of(vectors.drop_null()), places.take(of_rows))


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
    for start in range(0, batch.num_rows, BLOCK_ROWS):
        search.check()
        rows = np.arange(start, min(start + BLOCK_ROWS, batch.num_rows))
        rows = rows[queries.of_rows[rows] >= 0]
        values = evaluate(asked, context.rows_of(batch.take(rows)), context.params)
        vectors = flatten_chunks(values)
        rows = rows[to_numpy(vectors.is_valid())]
        there = queries.matrix[queries.of_rows[rows]].astype(np.float64)
        parts.append(
            ScoredNodes(rows, measure_vectors(score.metric, matrix_of(vectors.drop_null()), there))
        )
    indices, scores = map(np.concatenate, zip(*parts, strict=True))
    return search.select(ScoredNodes(indices, scores), limit)
