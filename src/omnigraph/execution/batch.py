"""Rows of bound variables, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.operators.checked_ints import Weights
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices


@dataclass(frozen=True, slots=True)
class BoundEdges:
    """An edge per row: its type, as a place in `types`, and its number in that type."""

    types: tuple[str, ...]
    type_indices: npt.NDArray[np.int16]
    dense_ids: DenseIds

    def take(self, places: RowIndices) -> BoundEdges:
        """The edges of some rows."""
        return BoundEdges(self.types, self.type_indices.take(places), self.dense_ids.take(places))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that bind variables; what nothing above reads any more may be left out.

    `outer` says, inside a correlated block, which row of the input of the block each row extends.
    `scores` holds the score of each row once a rank has given it, under its expression's type.
    `weights` say how many matches each row stands for; without them, each stands for one.
    """

    num_rows: int
    nodes: Mapping[str, DenseIds] = field(default_factory=dict)
    edges: Mapping[str, BoundEdges] = field(default_factory=dict)
    outer: RowIndices | None = None
    scores: pa.Array | None = None
    weights: Weights | None = None

    def take(self, places: RowIndices) -> Batch:
        """Some rows, in the order of the places."""
        return Batch(
            len(places),
            {name: numbers.take(places) for name, numbers in self.nodes.items()},
            {name: edges.take(places) for name, edges in self.edges.items()},
            None if self.outer is None else self.outer.take(places),
            None if self.scores is None else self.scores.take(pa.array(places)),
            None if self.weights is None else self.weights.take(places),
        )
