"""Correlated blocks: run once for all rows together, each match with the row it extends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    filter_rows,
    outer_of,
    prune_variables,
    select_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.traversal_hops import Traversal, traversal_of
from omnigraph.execution.sorted_arrays import NO_DENSE_IDS
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.logical_plan import BlockColumn, CompareBlock, Exists, Expand, Operator
from omnigraph.query.tree_walk import chain_of, used_variables_of, variables_of
from omnigraph.query.typed_tree import AggregateValue, is_never_null
from omnigraph.rows.comparison import compare_constant, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import Params, evaluate, evaluate_constant
from omnigraph.rows.group_aggregates import Groups, aggregate_groups
from omnigraph.rows.row_filter import Mask

# From the rows around a block to its own rows, some at a time.
BlockRows: TypeAlias = Callable[[Batch], Iterator[Batch]]

_VALUE_BYTES = 16


class BlockRunner(Protocol):
    """Runs the operators of blocks."""

    @property
    def context(self) -> ExecutionContext:
        """What is read."""

    def compile_block(
        self, operators: Sequence[Operator], *, needed: frozenset[str], is_set: bool = False
    ) -> BlockRows:
        """The rows of a block's operators; of a set, repetitions may be left out."""


class BlockOperator(ABC):
    """Keeps the rows for which a block passes.

    A block that reads one node variable is run once for each node, whatever the rows.
    """

    def __init__(
        self, op: Exists | CompareBlock, context: ExecutionContext, kept: KeptVariables
    ) -> None:
        self._used = used_variables_of(op)
        self._nullable = self._used & context.nullable
        self._kept = kept
        self._is_known: Mask = np.zeros(0, np.bool_)
        self._is_passed: Mask = np.zeros(0, np.bool_)

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that pass."""
        nodes = {name: each for name, each in batch.nodes.items() if name in self._used}
        if len(nodes) == len(self._used) == 1 and not self._nullable:
            ((name, numbers),) = nodes.items()
            mask = self._evaluate_cached_mask(name, numbers)
        else:
            mask = self.evaluate_mask(select_variables(batch, self._used))
        return filter_rows(prune_variables(batch, self._kept), mask)

    @abstractmethod
    def evaluate_mask(self, outer: Batch) -> Mask:
        """For which rows around the block it passes; `outer.outer` numbers them."""

    def _evaluate_cached_mask(self, name: str, numbers: DenseIds) -> Mask:
        size = int(numbers.max(initial=-1)) + 1
        if size > len(self._is_known):
            more = np.zeros(size - len(self._is_known), np.bool_)
            self._is_known = np.concatenate([self._is_known, more])
            self._is_passed = np.concatenate([self._is_passed, more])
        is_asked = np.zeros(len(self._is_known), np.bool_)
        is_asked[numbers] = True
        asked = np.flatnonzero(is_asked & ~self._is_known).astype(np.int32)
        if len(asked):
            outer = Batch(len(asked), {name: asked}, outer=np.arange(len(asked)))
            self._is_passed[asked] = self.evaluate_mask(outer)
            self._is_known[asked] = True
        return self._is_passed.take(numbers)


class SemiJoinOperator(BlockOperator):
    """Keeps the rows for which a block has a row, or has none."""

    def __init__(self, op: Exists, runner: BlockRunner, kept: KeptVariables) -> None:
        super().__init__(op, runner.context, kept)
        self._is_negated = op.is_negated
        self._rows = BlockCounter(op, runner, is_set=True)

    def evaluate_mask(self, outer: Batch) -> Mask:
        """For which rows there is a row, or none."""
        is_there = self._rows.find_matched(outer)
        return np.logical_not(is_there) if self._is_negated else is_there


class CompareBlockOperator(BlockOperator):
    """Keeps the rows for which an aggregate over a block compares true with a constant."""

    def __init__(self, op: CompareBlock, runner: BlockRunner, kept: KeptVariables) -> None:
        super().__init__(op, runner.context, kept)
        self._op = op
        self._context = runner.context
        self._rows: BlockCounter | None = None
        self._values: BlockRows | None = None
        if is_row_count(op):
            self._rows = BlockCounter(op, runner)
        else:
            assert op.argument is not None
            operators = chain_of(op.block)[1:]
            self._values = runner.compile_block(operators, needed=variables_of(op.argument))

    def evaluate_mask(self, outer: Batch) -> Mask:
        """For which rows the comparison is true."""
        params = self._context.params
        if evaluate_constant(self._op.value, params) is None:
            return np.zeros(outer.num_rows, np.bool_)
        found = (
            self._compute_aggregates(outer)
            if self._rows is None
            else pa.array(self._rows.count_rows(outer))
        )
        if found is None:
            return np.zeros(outer.num_rows, np.bool_)
        return compare_aggregates(self._op, found, params)

    def _compute_aggregates(self, outer: Batch) -> pa.Array | None:
        """The aggregate for each row; None if it is undefined for all of them."""
        budget = self._context.budget
        held = 0
        outers: list[RowIndices] = []
        values: list[pa.Array] = []
        try:
            for of_row, found in self._iter_arguments(outer):
                if not len(of_row):
                    continue
                nbytes = of_row.nbytes + found.nbytes
                budget.allocate(nbytes)
                held += nbytes
                outers.append(of_row)
                values.append(found)
            if not values:
                # Of nothing, only a count is known.
                is_count = self._op.function is AggregateFunction.COUNT
                return pa.array(np.zeros(outer.num_rows, np.int64)) if is_count else None
            groups = Groups(np.concatenate(outers), np.zeros(outer.num_rows, np.int64))
            budget.require_memory(_VALUE_BYTES * len(groups.of_row))
            return aggregate_groups(self._op.function, pa.concat_arrays(values), groups)
        finally:
            budget.release(held)

    def _iter_arguments(self, outer: Batch) -> Iterator[tuple[RowIndices, pa.Array]]:
        argument, context = self._op.argument, self._context
        assert argument is not None
        assert self._values is not None
        for rows in self._values(outer):
            found = evaluate(argument, context.rows_of(rows), context.params)
            if isinstance(found, pa.Scalar):
                found = pa.repeat(found, rows.num_rows)
            yield outer_of(rows), flatten_chunks(found)


class BlockCounter:
    """How many rows a block has for each row around it.

    What a last traversal reaches is not walked to if nothing reads it: its degrees are known.
    """

    def __init__(
        self, op: Exists | CompareBlock | BlockColumn, runner: BlockRunner, *, is_set: bool = False
    ) -> None:
        _, *operators = chain_of(op.block)
        self._last = _make_degree_counter(operators[-1], runner.context) if operators else None
        needed: frozenset[str] = frozenset()
        if self._last is not None:
            del operators[-1]
            needed = frozenset({self._last.op.source})
        self._rows = runner.compile_block(operators, needed=needed, is_set=is_set)

    def find_matched(self, outer: Batch) -> Mask:
        """Which rows have a row of the block."""
        is_there = np.zeros(outer.num_rows, np.bool_)
        for of_row, counts in self.iter_counts(outer):
            is_there[of_row if counts is None else of_row[counts > 0]] = True
        return is_there

    def count_rows(self, outer: Batch) -> RowIndices:
        """How many rows of the block each row has."""
        total: RowIndices = np.zeros(outer.num_rows, np.int64)
        for of_row, counts in self.iter_counts(outer):
            if counts is None:
                total += np.bincount(of_row, minlength=outer.num_rows)
            else:
                np.add.at(total, of_row, counts)
        return total

    def iter_counts(self, outer: Batch) -> Iterator[tuple[RowIndices, RowIndices | None]]:
        """Numbers of rows around the block, and how many rows each stands for; None is one."""
        for rows in self._rows(outer):
            last = self._last
            yield outer_of(rows), None if last is None else last.count_matches(rows)


@dataclass(frozen=True, slots=True)
class _DegreeCounter:
    """A traversal whose matches are counted by what its edges know."""

    op: Expand
    hops: Traversal

    def count_matches(self, rows: Batch) -> RowIndices | None:
        """How many matches each row has."""
        sources = rows.nodes[self.op.source]
        is_bound = self.op.edge_variable is not None
        return self.hops.count_edges(sources) if is_bound else self.hops.count_neighbours(sources)


def _make_degree_counter(op: Operator, context: ExecutionContext) -> _DegreeCounter | None:
    if not isinstance(op, Expand) or op.target_is_bound or op.conditions or op.is_selection:
        return None
    if op.source in context.nullable:
        return None
    hops = traversal_of(op, context)
    # Two ways may lead to one node, and one loop may be met on both.
    if not hops.is_single or op.minimum > 1 or len(hops.directions) != 1:
        return None
    counted = _DegreeCounter(op, hops)
    nothing = Batch(0, {op.source: NO_DENSE_IDS})
    return None if counted.count_matches(nothing) is None else counted


def is_row_count(call: CompareBlock | AggregateValue) -> bool:
    """Whether an aggregate is the number of rows: what it counts is never null."""
    if isinstance(call, AggregateValue) and call.is_distinct:
        return False
    is_count = call.function is AggregateFunction.COUNT
    return call.argument is None or (is_count and is_never_null(call.argument))


def compare_aggregates(op: CompareBlock, aggregates: pa.Array, params: Params) -> Mask:
    """Where the aggregate over a block compares true with its constant."""
    value = evaluate_constant(op.value, params)
    if value is None:
        return np.zeros(len(aggregates), np.bool_)
    mask: Mask = to_numpy(compare_constant(op.op, aggregates, value))
    return mask
