"""Ranks: the score of each row, by the texts of the whole field or the distance of its vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.exact import numpy_of
from omnigraph.execution.expressions import constant
from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.bm25 import bm25_scores
from omnigraph.execution.search.embedded import embedded, required
from omnigraph.execution.search.fields import fields_of
from omnigraph.execution.search.fusion import fused
from omnigraph.execution.search.nearest import Vector, nearest, squared_distances
from omnigraph.execution.search.scored import Scored, in_order, least, nothing
from omnigraph.execution.search.streamed import streamed
from omnigraph.execution.search.vector_segment import matrix_of
from omnigraph.execution.source import Nodes, Numbers, Places
from omnigraph.execution.text_predicates import option
from omnigraph.query.plan import Rank
from omnigraph.query.typed import Bm25Score, NearestScore, RrfScore

if TYPE_CHECKING:
    from omnigraph.execution.reading import Reading

RRF_K: Final = 60
# So few vectors are fetched one by one, unless all of them are in memory already.
FEW_VECTORS: Final = 1_000
# What a node costs while it is ranked: its row, its place, its score, and their order.
_NODE_BYTES: Final = 48


def rank(op: Rank, batch: Batch, reading: Reading, *, limit: int | None = None) -> Batch:
    """The rows that have a score, with it.

    With a limit, rows may be left out that are not among the first so many by score; rows with
    equal scores are either all there, or none.
    """
    score = op.score
    variable = score.first.variable if isinstance(score, RrfScore) else score.variable
    numbers, of_rows = _distinct(batch.nodes[variable])
    type_name = reading.nodes_of[variable]
    ranked = _Ranked(reading, type_name, reading.source.nodes(type_name), numbers)
    with reading.budget.reserve(len(numbers) * _NODE_BYTES):
        if isinstance(score, RrfScore):
            found = ranked.fused(score, window=op.window, limit=limit)
        else:
            found = ranked.scored(score, limit=limit)
        return _rows(batch, of_rows, found, count=len(numbers))


def _distinct(numbers: Numbers) -> tuple[Numbers, Places | None]:
    """The distinct nodes of rows, and which of them each row has; None if each has its own."""
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    return np.unique(numbers, return_inverse=True)


def _rows(batch: Batch, of_rows: Places | None, found: Scored, *, count: int) -> Batch:
    if of_rows is None:
        return replace(batch.take(found.places), scores=pa.array(found.scores))
    places = np.full(count, -1, np.int64)
    places[found.places] = np.arange(len(found.places))
    of_rows = places.take(of_rows)
    kept = np.flatnonzero(of_rows >= 0)
    return replace(batch.take(kept), scores=pa.array(found.scores.take(of_rows.take(kept))))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Distinct nodes of one type, to be ranked."""

    reading: Reading
    type_name: str
    nodes: Nodes
    numbers: Numbers

    def scored(self, score: NearestScore | Bm25Score, *, limit: int | None) -> Scored:
        """The nodes that have a score, or the best so many of them and their equals."""
        if isinstance(score, Bm25Score):
            return self._by_text(score, limit)
        return self._by_distance(score, limit)

    def fused(self, score: RrfScore, *, window: int | None, limit: int | None) -> Scored:
        """The nodes that an arm ranks."""
        params = self.reading.params
        k = option(score.k, lambda expr: constant(expr, params), default=RRF_K, minimum=1)
        arms = [self._arm(arm, window) for arm in (score.first, score.second)]
        found = fused(arms, count=len(self.numbers), k=k)
        kept = least(-found.scores, limit)
        return Scored(found.places[kept], found.scores[kept])

    def _arm(self, score: NearestScore | Bm25Score, window: int | None) -> Places:
        """The nodes of an arm, the best first; only `nearest` keeps to the window."""
        is_text = isinstance(score, Bm25Score)
        places, scores = self.scored(score, limit=None if is_text else window)
        ids = self.nodes.ranks(self.numbers.take(places))
        order = in_order(-scores if is_text else scores, ids)
        return places[order][: None if is_text else window]

    def _by_text(self, score: Bm25Score, limit: int | None) -> Scored:
        query = constant(score.query, self.reading.params)
        assert query is None or isinstance(query, str)
        if query is None or not len(self.numbers):
            return nothing()
        asked = self._asked(score.property)
        field = fields_of(asked.view).text(asked, check=self.reading.budget.check)
        scores = bm25_scores(field, query).astype(np.float32)
        scores = scores.take(field.places(self.nodes.row_ids(self.numbers)))
        found = np.flatnonzero(scores)
        kept = found[least(-scores[found], limit)]
        return Scored(kept, scores[kept])

    def _by_distance(self, score: NearestScore, limit: int | None) -> Scored:
        query = self._query_vector(score)
        if query is None:
            return nothing()
        asked = self._asked(score.property)
        fields = fields_of(asked.view)
        if len(self.numbers) <= FEW_VECTORS and not fields.has(asked):
            return self._of_few(score, query, limit)
        field = fields.vectors(asked)
        row_ids, check = self.nodes.row_ids(self.numbers), self.reading.budget.check
        if field is None:
            return streamed(asked, row_ids, query, limit=limit, check=check)
        places = field.places(row_ids)
        known = np.flatnonzero(places >= 0)
        found = nearest(field, places[known], query, limit=limit, check=check)
        return Scored(known[found.places], found.scores)

    def _of_few(self, score: NearestScore, query: Vector, limit: int | None) -> Scored:
        vectors = self.nodes.values(score.property, self.numbers)
        known = np.flatnonzero(numpy_of(vectors.is_valid()))
        distances = squared_distances(
            matrix_of(vectors.drop_null()), query, np.arange(len(known)), self.reading.budget.check
        )
        kept = least(distances, limit)
        return Scored(known[kept], distances[kept])

    def _query_vector(self, score: NearestScore) -> Vector | None:
        """What to be near to; None if it is null, or if there is nothing that could be near it."""
        query = constant(score.query, self.reading.params)
        if isinstance(query, str):
            required(self.reading.embed)
        if query is None or not len(self.numbers):
            return None
        if isinstance(query, str):
            type_ = self.reading.view.catalog.nodes[self.type_name]
            return embedded(query, type_.properties[score.property], self.reading.embed)
        with np.errstate(over="ignore"):
            return np.array(query, np.float64).astype(np.float32)

    def _asked(self, property_: str) -> Asked:
        return Asked(self.reading.view, self.type_name, property_)
