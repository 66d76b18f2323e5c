"""Enumerating the variables that are needed, a morsel at a time, with the weights of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.execution.batch import (
    Batch,
    add_variables,
    multiply_weights,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.checked_ints import Weights
from omnigraph.execution.operators.factorize_operator import Factorizer
from omnigraph.execution.operators.pattern_executor import (
    STOPPABLE_ROWS,
    OperatorPipeline,
    run_pattern,
)
from omnigraph.execution.operators.profiler import NULL_PROFILER, Profiler
from omnigraph.execution.operators.traversal_hops import traversal_of
from omnigraph.execution.optimizer.factor_trees import FactorTree
from omnigraph.execution.optimizer.pattern_graph import Variable
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.logical_plan import Expand, Operator, Outer
from omnigraph.query.tree_walk import link_chain

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


def factor_key_of(variable: str) -> tuple[str, str]:
    """The part of a run that weighs the nodes of a variable."""
    return "weights", variable


class Enumerator:
    """The rows of one read."""

    def __init__(
        self,
        core: EnumerationPlan,
        weighing: Factorizer,
        context: ExecutionContext,
        watch: Profiler = NULL_PROFILER,
    ) -> None:
        self._core = core
        self._weighing = weighing
        self._context = context
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
        if not self._core.steps:
            yield rows
            return
        steps = [_StepOperator(self, step) for step in self._core.steps]
        for batch in OperatorPipeline(self._context, steps).iter_batches(0, rows):
            yield batch
            # Whatever the rows were used for is not part of the next step.
            watch.start()

    def estimate_fan_out(self, step: EnumerationStep, batch: Batch) -> RowIndices | None:
        """How many rows a plain traversal makes of each row; None where it need not be cut."""
        if not step.is_plain:
            return None
        assert isinstance(step.operator, Expand)
        adjacency = self._weighing.get_adjacency(step.operator.steps[0])
        if adjacency.is_functional and batch.num_rows <= STOPPABLE_ROWS:
            return None
        return adjacency.count_neighbours(batch.nodes[step.operator.source]).astype(np.int64)

    def run_step(self, step: EnumerationStep, rows: Batch) -> Batch:
        """The rows that a step makes of rows, with what hangs from the variable that it binds."""
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
        sources, budget = batch.nodes[operator.source], self._context.budget
        # One row is never cut, and its neighbours are those of one node.
        if len(sources) > 1 and not budget.has_room(
            adjacency.degree_max * len(sources) * _ROW_BYTES
        ):
            made = int(adjacency.count_neighbours(sources).sum(dtype=np.int64))
            budget.require_memory(made * _ROW_BYTES)
        places, ends = adjacency.expand_neighbours(sources)
        return self._bind_variable(batch, variable, places, ends)

    def _expand_bounded(self, step: EnumerationStep, batch: Batch) -> Batch:
        """Several hops from the one row there is."""
        operator, variable = step.operator, step.variable
        assert isinstance(operator, Expand)
        assert variable is not None
        ends = traversal_of(operator, self._context).find_around(batch.nodes[operator.source])
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
        found = run_pattern(link_chain([Outer(), step.operator]), self._context, batch)
        if step.variable is not None and step.variable.blocks:
            kept = self._weighing.filter_by_blocks(step.variable, found.nodes[step.variable.name])
            found = found.take(kept)
        return found

    def _has_weight(self, name: str) -> bool:
        return not self._core.trees[name].is_bare

    def _compute_weights(self, name: str, at: DenseIds | None) -> Weights:
        return self._weighing.compute_weights(self._core.trees[name], at)


@dataclass(frozen=True, slots=True)
class _StepOperator:
    """A step of an enumeration, as an operator of a pipeline."""

    enumerator: Enumerator
    step: EnumerationStep

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """About how many rows each row becomes."""
        return self.enumerator.estimate_fan_out(self.step, batch)

    def run(self, batch: Batch) -> Batch:
        """The rows that the given ones become."""
        return self.enumerator.run_step(self.step, batch)
