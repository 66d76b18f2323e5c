"""Enumerating the variables that are needed, a morsel at a time, with the weights of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.batch_operations import (
    add_variables,
    multiply_weights,
    prune_variables,
    slice_batch,
)
from omnigraph.execution.operators.checked_ints import Weights
from omnigraph.execution.operators.factorize_operator import Factorizer
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.operators.profiler import NULL_PROFILER, Profiler
from omnigraph.execution.operators.traversal_hops import traversal_of
from omnigraph.execution.optimizer.factor_trees import FactorTree
from omnigraph.execution.optimizer.pattern_graph import Variable
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.logical_plan import Expand, Operator, Outer
from omnigraph.query.tree_walk import link_chain

# Rows that a traversal makes at once: fewer cost more steps, more leave the caches.
MORSEL_ROWS: Final = 1_000_000

# Of a query that may be stopped, so that it is asked often enough whether it is.
STOPPABLE_ROWS: Final = 2**17
_ROW_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class EnumerationStep:
    """An operator over rows, and the variables that are still read after it."""

    operator: Operator
    # The variable that it binds, if it binds one.
    variable: Variable | None
    kept: frozenset[str]
    is_plain: bool
    # Whether it is several hops over one edge type, to nodes that are not bound yet.
    is_bounded: bool


@dataclass(frozen=True, slots=True)
class EnumerationPlan:
    """An order of enumeration: a start, then steps; `trees` weigh the variables when bound."""

    start: Variable
    steps: tuple[EnumerationStep, ...]
    trees: Mapping[str, FactorTree]


@dataclass(frozen=True, slots=True)
class _Morsel:
    """Rows that follow each other, and how many rows a traversal makes of them."""

    first: int
    last: int
    made: int

    def slice_rows(self, rows: Batch) -> Batch:
        is_all = self.last - self.first == rows.num_rows
        return rows if is_all else slice_batch(rows, self.first, self.last)


def factor_key_of(variable: str) -> tuple[str, str]:
    """The part of a run that weighs the nodes of a variable."""
    return "weights", variable


class Enumerator:
    """The rows of one read."""

    def __init__(
        self,
        core: EnumerationPlan,
        weighing: Factorizer,
        reading: ExecutionContext,
        watch: Profiler = NULL_PROFILER,
    ) -> None:
        self._core = core
        self._weighing = weighing
        self._reading = reading
        self._watch = watch
        # How many nodes there were to start from.
        self.starts = 0

    def iter_rows(self) -> Iterator[Batch]:
        """All rows in morsels, and at least one morsel; none of them stands for nothing."""
        start, watch = self._core.start, self._watch
        watch.start()
        found = self._weighing.find_candidates(start)
        watch.record(start.name, len(found))
        self.starts = len(found)
        is_whole = len(found) == self._weighing.get_nodes(start).size
        rows = Batch(len(found), {start.name: found})
        if self._has_weight(start.name):
            weights = self._compute_weights(start.name, None if is_whole else found)
            rows = multiply_weights(rows, weights)
            watch.record(factor_key_of(start.name), rows.num_rows)
        yield from self._run_steps(rows, 0)

    def _run_steps(self, rows: Batch, done: int) -> Iterator[Batch]:
        for number in range(done, len(self._core.steps)):
            self._reading.budget.check_interrupts()
            step = self._core.steps[number]
            pieces = self._split_morsels(step, rows)
            for piece in pieces[:-1]:
                yield from self._run_steps(
                    self._run_step(step, piece.slice_rows(rows), piece), number + 1
                )
            rows = self._run_step(step, pieces[-1].slice_rows(rows), pieces[-1])
        yield rows
        # Whatever the rows were used for is not part of the next step.
        self._watch.start()

    def _split_morsels(self, step: EnumerationStep, batch: Batch) -> Sequence[_Morsel]:
        """Where to cut rows, so that a traversal does not make too many at once."""
        count = batch.num_rows
        if not step.is_plain or count <= 1:
            return [_Morsel(0, count, 0)]
        assert isinstance(step.operator, Expand)
        adjacency = self._weighing.get_adjacency(step.operator.steps[0])
        most = STOPPABLE_ROWS if self._reading.budget.may_be_stopped else MORSEL_ROWS
        if adjacency.is_functional and count <= most:
            return [_Morsel(0, count, count)]
        degrees = adjacency.count_neighbours(batch.nodes[step.operator.source])
        ends = np.cumsum(degrees, dtype=np.int64)
        pieces: list[_Morsel] = []
        first = made = 0
        while first < count:
            reached = int(np.searchsorted(ends, made + most, side="right"))
            last = min(max(reached, first + 1), count)
            pieces.append(_Morsel(first, last, int(ends[last - 1]) - made))
            first, made = last, int(ends[last - 1])
        return pieces

    def _run_step(self, step: EnumerationStep, rows: Batch, piece: _Morsel) -> Batch:
        self._reading.budget.check_interrupts()
        self._reading.budget.require_memory(piece.made * _ROW_BYTES)
        if step.is_plain:
            found = self._expand_plain(step, rows)
        elif step.is_bounded and rows.num_rows == 1:
            found = self._expand_bounded(step, rows)
        else:
            found = self._run_operator(step, rows)
        self._watch.record(id(step), found.num_rows)
        variable = step.variable
        if variable is not None and self._has_weight(variable.name):
            more = self._compute_weights(variable.name, found.nodes[variable.name])
            found = multiply_weights(found, more)
            self._watch.record(factor_key_of(variable.name), found.num_rows)
        return prune_variables(found, step.kept)

    def _expand_plain(self, step: EnumerationStep, batch: Batch) -> Batch:
        """One hop to distinct neighbours."""
        operator, variable = step.operator, step.variable
        assert isinstance(operator, Expand)
        assert variable is not None
        adjacency = self._weighing.get_adjacency(operator.steps[0])
        places, ends = adjacency.expand_neighbours(batch.nodes[operator.source])
        return self._bind_variable(batch, variable, places, ends)

    def _expand_bounded(self, step: EnumerationStep, batch: Batch) -> Batch:
        """Several hops from the one row there is."""
        operator, variable = step.operator, step.variable
        assert isinstance(operator, Expand)
        assert variable is not None
        ends = traversal_of(operator, self._reading).find_around(batch.nodes[operator.source])
        return self._bind_variable(batch, variable, np.zeros(len(ends), np.int64), ends)

    def _bind_variable(
        self, batch: Batch, variable: Variable, places: RowIndices, ends: DenseIds
    ) -> Batch:
        mask = self._weighing.evaluate_mask(variable, ends)
        if mask is not None:
            kept = np.flatnonzero(mask)
            places, ends = places.take(kept), ends.take(kept)
        return add_variables(batch.take(places), nodes={variable.name: ends})

    def _run_operator(self, step: EnumerationStep, batch: Batch) -> Batch:
        """Any other operator, and then the blocks of the variable that it binds."""
        found = run_pattern(link_chain([Outer(), step.operator]), self._reading, batch)
        if step.variable is not None and step.variable.blocks:
            kept = self._weighing.filter_by_blocks(step.variable, found.nodes[step.variable.name])
            found = found.take(kept)
        return found

    def _has_weight(self, name: str) -> bool:
        return not self._core.trees[name].is_bare

    def _compute_weights(self, name: str, at: DenseIds | None) -> Weights:
        return self._weighing.compute_weights(self._core.trees[name], at)
