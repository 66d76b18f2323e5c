"""Ranks: the score of each row, by the texts of the whole field or the distance of its vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.embedding.embedder import normalize_vector
from omnigraph.embedding.model_identity import require_model
from omnigraph.errors import EmbeddingError
from omnigraph.execution.batch import Batch, find_bound_rows
from omnigraph.execution.search.bm25 import score_bm25
from omnigraph.execution.search.field_cache import field_cache_of
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.nearest_vectors import (
    VectorSearch,
    find_nearest,
    measure_rows,
    stream_nearest,
)
from omnigraph.execution.search.row_queries import find_row_queries, measure_pairs
from omnigraph.execution.search.scored_nodes import (
    ScoredNodes,
    fuse_ranks,
    make_empty,
    select_least,
    sort_scores,
)
from omnigraph.execution.search.stored_vectors import FEW_VECTORS, fetch_vectors
from omnigraph.execution.search.vector_metrics import Vector
from omnigraph.execution.sources.graph_source import DenseIds, Nodes, RowIndices
from omnigraph.query.logical_plan import Rank
from omnigraph.query.typed_tree import Bm25Score, NearestScore, RrfScore
from omnigraph.rows.evaluator import evaluate_constant, is_constant
from omnigraph.rows.text_predicates import evaluate_option
from omnigraph.schema.catalog import Property
from omnigraph.schema.property_types import VectorType

if TYPE_CHECKING:
    from omnigraph.execution.execution_context import Embedder, ExecutionContext

RRF_K: Final = 60

# What a node costs while it is ranked: its row, its place, its score, and their order.
_NODE_BYTES: Final = 48


def rank_rows(
    op: Rank, batch: Batch, context: ExecutionContext, *, limit: int | None = None
) -> Batch:
    """The rows that have a score, with it.

    With a limit, rows may be left out that are not among the first so many by score; rows with
    equal scores are either all there, or none.
    """
    score = op.score
    if isinstance(score, RrfScore):
        found = _rank_nodes(
            batch,
            context,
            variable=score.arms[0].variable,
            rank=lambda nodes: nodes.fuse_scores(score, window=op.window, limit=limit),
        )
    else:
        found = score_rows(score, batch, context, limit=limit)
    return replace(batch.take(found.indices), scores=pa.array(found.scores))


def score_values(
    score: NearestScore | Bm25Score, batch: Batch, context: ExecutionContext
) -> pa.Array:
    """The score of each row, null for one that has none."""
    found = score_rows(score, batch, context)
    scores, is_known = np.zeros(batch.num_rows, np.float32), np.zeros(batch.num_rows, np.bool_)
    scores[found.indices] = found.scores
    is_known[found.indices] = True
    return pa.array(scores, mask=~is_known)


def score_rows(
    score: NearestScore | Bm25Score,
    batch: Batch,
    context: ExecutionContext,
    *,
    limit: int | None = None,
) -> ScoredNodes:
    """The rows that have a score, as places, or the best so many of them and their equals."""
    if isinstance(score, Bm25Score) or is_constant(score.query):
        return _rank_nodes(
            batch,
            context,
            variable=score.variable,
            rank=lambda nodes: nodes.score_nodes(score, limit=limit),
        )
    return _score_distances_of_rows(score, batch, context, limit)


def _rank_nodes(
    batch: Batch,
    context: ExecutionContext,
    *,
    variable: str,
    rank: Callable[[_NodeRanker], ScoredNodes],
) -> ScoredNodes:
    """The rows that have a score, where those of one node have the same one."""
    rows = np.arange(batch.num_rows)
    if variable in context.nullable:
        rows = np.flatnonzero(find_bound_rows(batch, variable))
    numbers, of_rows = _find_distinct(batch.nodes[variable].take(rows))
    type_name = context.nodes_of[variable]
    ranked = _NodeRanker(context, type_name, context.source.get_nodes(type_name), numbers)
    with context.budget.reserve(len(numbers) * _NODE_BYTES):
        found = rank(ranked)
        if of_rows is None:
            return ScoredNodes(rows.take(found.indices), found.scores)
        places = np.full(len(numbers), -1, np.int64)
        places[found.indices] = np.arange(len(found.indices))
        of_rows = places.take(of_rows)
        kept = np.flatnonzero(of_rows >= 0)
        return ScoredNodes(rows.take(kept), found.scores.take(of_rows.take(kept)))


def _find_distinct(numbers: DenseIds) -> tuple[DenseIds, RowIndices | None]:
    """The distinct nodes of rows, and which of them each row has; None if each has its own."""
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    return np.unique(numbers, return_inverse=True)


def _score_distances_of_rows(
    score: NearestScore, batch: Batch, context: ExecutionContext, limit: int | None
) -> ScoredNodes:
    """The rows whose vector and whose query are there, where rows differ in their queries."""
    queries = find_row_queries(score.query, batch, context)
    if not queries.are_few(batch.num_rows):
        return measure_pairs(score, queries, batch, context, limit=limit)
    parts = [ScoredNodes(np.empty(0, np.int64), np.empty(0, np.float32))]
    for query, rows in queries.iter_groups():
        context.budget.check_interrupts()
        found = _rank_nodes(
            batch.take(rows),
            context,
            variable=score.variable,
            rank=partial(_NodeRanker.score_near, score=score, query=query, limit=limit),
        )
        parts.append(ScoredNodes(rows.take(found.indices), found.scores))
    indices, scores = map(np.concatenate, zip(*parts, strict=True))
    kept = select_least(scores, limit)
    return ScoredNodes(indices[kept], scores[kept])


@dataclass(frozen=True, slots=True)
class _NodeRanker:
    """Distinct nodes of one type, to be ranked."""

    context: ExecutionContext
    type_name: str
    nodes: Nodes
    numbers: DenseIds

    def score_nodes(self, score: NearestScore | Bm25Score, *, limit: int | None) -> ScoredNodes:
        """The nodes that have a score, or the best so many of them and their equals."""
        if isinstance(score, Bm25Score):
            return self._score_texts(score, limit)
        query = self._evaluate_query_vector(score)
        return make_empty() if query is None else self.score_near(score, query, limit)

    def fuse_scores(self, score: RrfScore, *, window: int | None, limit: int | None) -> ScoredNodes:
        """The nodes that an arm ranks."""
        params = self.context.params
        k = evaluate_option(
            score.k, lambda expr: evaluate_constant(expr, params), default=RRF_K, minimum=1
        )
        arms = [self._rank_arm(arm, window) for arm in score.arms]
        found = fuse_ranks(arms, count=len(self.numbers), k=k)
        kept = select_least(-found.scores, limit)
        return ScoredNodes(found.indices[kept], found.scores[kept])

    def _rank_arm(self, score: NearestScore | Bm25Score, window: int | None) -> RowIndices:
        """The nodes of an arm, the best first; only `nearest` keeps to the window."""
        is_text = isinstance(score, Bm25Score)
        places, scores = self.score_nodes(score, limit=None if is_text else window)
        ids = self.nodes.rank_ids(self.numbers.take(places))
        order = sort_scores(-scores if is_text else scores, ids)
        return places[order][: None if is_text else window]

    def _score_texts(self, score: Bm25Score, limit: int | None) -> ScoredNodes:
        query = evaluate_constant(score.query, self.context.params)
        assert query is None or isinstance(query, str)
        if query is None or not len(self.numbers):
            return make_empty()
        asked = self._make_field_ref(score.property)
        check = self.context.budget.check_interrupts
        field = field_cache_of(asked.view).get_texts(asked, check=check)
        scores = score_bm25(field, query, check).astype(np.float32)
        scores = scores.take(field.find_row_indices(self.nodes.fetch_row_ids(self.numbers)))
        found = np.flatnonzero(scores)
        kept = found[select_least(-scores[found], limit)]
        return ScoredNodes(kept, scores[kept])

    def score_near(self, score: NearestScore, query: Vector, limit: int | None) -> ScoredNodes:
        """The nodes that have a vector, or those whose vector is the nearest."""
        asked = self._make_field_ref(score.property)
        fields, check = field_cache_of(asked.view), self.context.budget.check_interrupts
        search = VectorSearch(score.metric, check)
        if len(self.numbers) <= FEW_VECTORS and not fields.has_field(asked):
            return self._score_few(score, query, limit, search)
        field = fields.get_vectors(asked, check=check)
        row_ids = self.nodes.fetch_row_ids(self.numbers)
        if field is None:
            return stream_nearest(asked, row_ids, query, limit=limit, search=search)
        places = field.find_row_indices(row_ids)
        known = np.flatnonzero(places >= 0)
        found = find_nearest(field, places[known], query, limit=limit, search=search)
        return ScoredNodes(known[found.indices], found.scores)

    def _score_few(
        self, score: NearestScore, query: Vector, limit: int | None, search: VectorSearch
    ) -> ScoredNodes:
        asked, row_ids = (
            self._make_field_ref(score.property),
            self.nodes.fetch_row_ids(self.numbers),
        )
        vectors = fetch_vectors(asked, row_ids, search.check)
        known = np.flatnonzero(vectors.is_known)
        distances = measure_rows(vectors.matrix, query, np.arange(len(known)), search)
        return search.select(ScoredNodes(known, distances), limit)

    def _evaluate_query_vector(self, score: NearestScore) -> Vector | None:
        """What to be near to; None if it is null, or if there is nothing that could be near it."""
        query = evaluate_constant(score.query, self.context.params)
        if isinstance(query, str):
            require_embedder(self.context.embed)
        if query is None or not len(self.numbers):
            return None
        if isinstance(query, str):
            type_ = self.context.view.catalog.nodes[self.type_name]
            return embed_query(query, type_.properties[score.property], self.context.embed)
        with np.errstate(over="ignore"):
            return np.array(query, np.float64).astype(np.float32)

    def _make_field_ref(self, property_: str) -> FieldRef:
        return FieldRef(self.context.view, self.type_name, property_)


def embed_query(text: str, property_: Property, embed: Embedder | None) -> Vector:
    """The unit vector of a text, made by the model that made the vectors of a property."""
    embedder = require_embedder(embed)
    assert isinstance(property_.type.value, VectorType)
    require_model(property_, embedder)
    dimension = property_.type.value.dimension
    values = normalize_vector(embedder(text, dimension), dimension=dimension)
    return np.array(values, np.float32)


def require_embedder(embed: Embedder | None) -> Embedder:
    """The embedder, which a search by text cannot do without."""
    if embed is None:
        raise EmbeddingError(
            "no embedder is configured to rank by a text",
            reason="not_configured",
            hint="set OMNIGRAPH_EMBED_PROVIDER and a key, or search by a vector",
        )
    return embed
