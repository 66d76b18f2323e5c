"""Rows of bound variables, as numbers, and how rows are cut, joined, weighed and pruned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.operators.checked_ints import (
    CheckedInts,
    Weights,
    add_at,
    choose_at,
    concatenate_weights,
)
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sorted_arrays import pack_pairs, sort_distinct_pairs, unpack_pairs
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.rows.group_aggregates import Groups, make_single_group

# The variables that something above still reads; None is all of them.
KeptVariables = frozenset[str] | None

_NODE_BYTES = 4
_EDGE_BYTES = 6
_INDEX_BYTES = 8


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

    `values` are those of variables that are neither nodes nor edges. `outer` says, inside a
    correlated block, which row of the input of the block each row extends. `scores` holds the score
    of each row once a rank has given it, under its expression's type. `weights` say how many
    matches each row stands for; without them, each stands for one.
    """

    num_rows: int
    nodes: Mapping[str, DenseIds] = field(default_factory=dict)
    edges: Mapping[str, BoundEdges] = field(default_factory=dict)
    outer: RowIndices | None = None
    scores: pa.Array | None = None
    weights: Weights | None = None
    values: Mapping[str, pa.Array] = field(default_factory=dict)

    def take(self, places: RowIndices) -> Batch:
        """Some rows, in the order of the places."""
        return Batch(
            len(places),
            {name: numbers[places] for name, numbers in self.nodes.items()},
            {name: edges.take(places) for name, edges in self.edges.items()},
            None if self.outer is None else self.outer.take(places),
            None if self.scores is None else self.scores.take(pa.array(places)),
            None if self.weights is None else self.weights.take(places),
            self._take_values(places) if self.values else self.values,
        )

    def _take_values(self, places: RowIndices) -> dict[str, pa.Array]:
        chosen = pa.array(places)
        return {name: each.take(chosen) for name, each in self.values.items()}


def prune_variables(batch: Batch, kept: KeptVariables) -> Batch:
    """The rows without the variables that nothing reads any more."""
    if kept is None or kept.issuperset((*batch.nodes, *batch.edges, *batch.values)):
        return batch
    return Batch(
        batch.num_rows,
        {name: numbers for name, numbers in batch.nodes.items() if name in kept},
        {name: edges for name, edges in batch.edges.items() if name in kept},
        batch.outer,
        batch.scores,
        batch.weights,
        {name: values for name, values in batch.values.items() if name in kept},
    )


def add_variables(
    batch: Batch,
    *,
    nodes: Mapping[str, DenseIds] | None = None,
    edges: Mapping[str, BoundEdges] | None = None,
    values: Mapping[str, pa.Array] | None = None,
    kept: KeptVariables = None,
) -> Batch:
    """The rows with more variables, as far as anything reads them."""

    def is_kept(name: str) -> bool:
        return kept is None or name in kept

    return Batch(
        batch.num_rows,
        {**batch.nodes, **{name: each for name, each in (nodes or {}).items() if is_kept(name)}},
        {**batch.edges, **{name: each for name, each in (edges or {}).items() if is_kept(name)}},
        batch.outer,
        batch.scores,
        batch.weights,
        {**batch.values, **{name: each for name, each in (values or {}).items() if is_kept(name)}},
    )


def filter_rows(batch: Batch, mask: npt.NDArray[np.bool_]) -> Batch:
    """The rows that a mask keeps."""
    return batch if mask.all() else batch.take(np.flatnonzero(mask))


def slice_batch(batch: Batch, start: int, end: int) -> Batch:
    """Rows that follow each other; nothing is copied."""
    return Batch(
        end - start,
        {name: numbers[start:end] for name, numbers in batch.nodes.items()},
        {
            name: BoundEdges(each.types, each.type_indices[start:end], each.dense_ids[start:end])
            for name, each in batch.edges.items()
        },
        None if batch.outer is None else batch.outer[start:end],
        None if batch.scores is None else batch.scores.slice(start, end - start),
        None if batch.weights is None else batch.weights.take(np.arange(start, end)),
        {name: values.slice(start, end - start) for name, values in batch.values.items()},
    )


def concatenate_batches(batches: Sequence[Batch]) -> Batch:
    """The rows of batches with the same variables, of which there is at least one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    outers = [each.outer for each in batches if each.outer is not None]
    scores = [each.scores for each in batches if each.scores is not None]
    return Batch(
        sum(each.num_rows for each in batches),
        {name: np.concatenate([each.nodes[name] for each in batches]) for name in first.nodes},
        {
            name: BoundEdges(
                edges.types,
                np.concatenate([each.edges[name].type_indices for each in batches]),
                np.concatenate([each.edges[name].dense_ids for each in batches]),
            )
            for name, edges in first.edges.items()
        },
        np.concatenate(outers) if outers else None,
        pa.concat_arrays(scores) if scores else None,
        _concatenate_weights(batches),
        {name: pa.concat_arrays([each.values[name] for each in batches]) for name in first.values},
    )


def _concatenate_weights(batches: Sequence[Batch]) -> Weights | None:
    if all(each.weights is None for each in batches):
        return None
    return concatenate_weights([(each.weights or Weights(), each.num_rows) for each in batches])


def collect_batches(batches: Iterable[Batch], budget: Budget, *, limit: int | None = None) -> Batch:
    """All rows of batches, or the first of them, in one."""
    found: list[Batch] = []
    held = rows = 0
    try:
        for batch in batches:
            nbytes = batch.num_rows * count_row_bytes(batch)
            budget.allocate(nbytes)
            held += nbytes
            rows += batch.num_rows
            found.append(batch)
            if limit is not None and rows >= limit:
                break
        parts = [each for each in found if each.num_rows] or found[:1]
        if len(parts) > 1:
            budget.require_memory(held)
        batch = concatenate_batches(parts)
    finally:
        budget.release(held)
    return batch if limit is None or rows <= limit else slice_batch(batch, 0, limit)


def multiply_weights(batch: Batch, more: Weights) -> Batch:
    """The rows with more that hangs from them, without those that then stand for nothing."""
    weights = more if batch.weights is None else batch.weights.multiply(more)
    found = replace(batch, weights=weights)
    if weights.counts is None:
        return found
    kept = np.flatnonzero(weights.counts.values)
    return found if len(kept) == batch.num_rows else found.take(kept)


def merge_groups(batch: Batch, groups: Groups) -> Batch:
    """One row for each group of entities, which stands for all that its rows stand for."""
    is_plain = batch.outer is None and batch.scores is None and not batch.values
    assert is_plain, "what differs between the rows of a group would be lost"
    of_row, count, most = groups.of_row, groups.count, max(batch.num_rows, 1)
    weights = (batch.weights or Weights()).sum_into(
        lambda amount: add_at(amount, of_row, count, most),
        lambda item, codes: choose_at(item, codes, of_row, count),
        lambda: CheckedInts(np.bincount(of_row, minlength=count), most),
    )
    rows = Batch(batch.num_rows, batch.nodes, batch.edges).take(groups.first_rows)
    return Batch(rows.num_rows, rows.nodes, rows.edges, weights=weights)


def sum_weights(batches: Sequence[Batch]) -> Weights:
    """What all rows together stand for, as the weights of one row."""
    rows = concatenate_batches([Batch(each.num_rows, weights=each.weights) for each in batches])
    weights = merge_groups(rows, make_single_group(rows.num_rows)).weights
    assert weights is not None
    return weights


def find_bound_rows(batch: Batch, variable: str) -> npt.NDArray[np.bool_]:
    """Which rows have a variable that an optional block may have left out; a value may be null."""
    if variable in batch.values:
        return np.ones(batch.num_rows, np.bool_)
    numbers = batch.nodes.get(variable)
    found = batch.edges[variable].dense_ids if numbers is None else numbers
    is_bound: npt.NDArray[np.bool_] = found >= 0
    return is_bound


def number_rows(batch: Batch) -> Batch:
    """The rows of a batch as the rows around a block, each of them by its place."""
    return Batch(
        batch.num_rows,
        batch.nodes,
        batch.edges,
        np.arange(batch.num_rows),
        values=batch.values,
    )


def select_variables(batch: Batch, names: frozenset[str]) -> Batch:
    """Some variables of the rows around a block, each row by its place."""
    return number_rows(
        prune_variables(Batch(batch.num_rows, batch.nodes, batch.edges, values=batch.values), names)
    )


def count_row_bytes(batch: Batch) -> int:
    """How many bytes a row takes."""
    places = _INDEX_BYTES * ((batch.outer is not None) + (batch.scores is not None))
    own: int = sum(each.nbytes for each in batch.values.values())
    places += own // max(batch.num_rows, 1)
    return _NODE_BYTES * len(batch.nodes) + _EDGE_BYTES * len(batch.edges) + places


def outer_of(batch: Batch) -> RowIndices:
    """Which row around a block each row of the block extends."""
    assert batch.outer is not None, "these are the rows of a block"
    return batch.outer


def without_repetitions(batch: Batch) -> Batch:
    """The distinct rows of a block, if they are cheap to find; else all of them."""
    outer = outer_of(batch)
    if batch.edges or batch.values or len(batch.nodes) > 1:
        return batch
    if not batch.nodes:
        found: RowIndices = np.flatnonzero(np.bincount(outer))
        return Batch(len(found), outer=found)
    ((name, numbers),) = batch.nodes.items()
    # The number of a node that a row lacks is -1, which has no place in a pair.
    pairs = pack_pairs(outer, numbers + 1)
    outer, kept = unpack_pairs(sort_distinct_pairs(pairs))
    return Batch(len(outer), {name: kept - 1}, outer=outer)
