"""Correlated blocks: run once for all rows together, and told apart by the row they extend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.exact import compare_constant, flat, numpy_of
from omnigraph.execution.expressions import constant, evaluate
from omnigraph.execution.groups import Groups, aggregated
from omnigraph.execution.numbers import NO_NUMBERS
from omnigraph.execution.pattern.hops import Hops, hops_of
from omnigraph.execution.pattern.rows import Kept, filtered, pruned
from omnigraph.execution.reading import Mask, Reading
from omnigraph.execution.source import Numbers, Places
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.plan import CompareBlock, Exists, Expand, Operator
from omnigraph.query.typed import NodeValue, SystemValue
from omnigraph.query.walk import chain_of, used_variables, variables_of

# From the rows around a block to its own rows, some at a time.
RowsOfBlock: TypeAlias = Callable[[Batch], Iterator[Batch]]

_VALUE_BYTES = 16


class BlockRunner(Protocol):
    """Whoever runs the operators of blocks."""

    @property
    def reading(self) -> Reading:
        """What is read."""

    def rows_of_block(
        self, operators: Sequence[Operator], *, needed: frozenset[str], is_set: bool = False
    ) -> RowsOfBlock:
        """The rows of a block's operators; of a set, repetitions may be left out."""


class BlockStep(ABC):
    """Keeps the rows for which a block passes.

    A block that reads one node variable is run once for each node, whatever the rows.
    """

    def __init__(self, op: Exists | CompareBlock, kept: Kept) -> None:
        self._used = used_variables(op)
        self._kept = kept
        self._is_known: Mask = np.zeros(0, np.bool_)
        self._is_passed: Mask = np.zeros(0, np.bool_)

    def fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that pass."""
        nodes = {name: each for name, each in batch.nodes.items() if name in self._used}
        edges = {name: each for name, each in batch.edges.items() if name in self._used}
        if len(nodes) == 1 and not edges:
            ((name, numbers),) = nodes.items()
            mask = self._remembered(name, numbers)
        else:
            mask = self.passes(Batch(batch.num_rows, nodes, edges, np.arange(batch.num_rows)))
        return filtered(pruned(batch, self._kept), mask)

    @abstractmethod
    def passes(self, outer: Batch) -> Mask:
        """For which rows around the block it passes; `outer.outer` numbers them."""

    def _remembered(self, name: str, numbers: Numbers) -> Mask:
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
            self._is_passed[asked] = self.passes(outer)
            self._is_known[asked] = True
        return self._is_passed.take(numbers)


class ExistsStep(BlockStep):
    """Keeps the rows for which a block has a row, or has none."""

    def __init__(self, op: Exists, runner: BlockRunner, kept: Kept) -> None:
        super().__init__(op, kept)
        self._is_negated = op.is_negated
        self._rows = _Tally(op, runner, is_set=True)

    def passes(self, outer: Batch) -> Mask:
        """For which rows there is a row, or none."""
        is_there = np.zeros(outer.num_rows, np.bool_)
        for of_row, counts in self._rows.counts(outer):
            is_there[of_row if counts is None else of_row[counts > 0]] = True
        return np.logical_not(is_there) if self._is_negated else is_there


class CompareBlockStep(BlockStep):
    """Keeps the rows for which an aggregate over a block compares true with a constant."""

    def __init__(self, op: CompareBlock, runner: BlockRunner, kept: Kept) -> None:
        super().__init__(op, kept)
        self._op = op
        self._reading = runner.reading
        self._rows: _Tally | None = None
        self._values: RowsOfBlock | None = None
        if _counts_rows(op):
            self._rows = _Tally(op, runner)
        else:
            assert op.argument is not None
            operators = chain_of(op.block)[1:]
            self._values = runner.rows_of_block(operators, needed=variables_of(op.argument))

    def passes(self, outer: Batch) -> Mask:
        """For which rows the comparison is true."""
        value = constant(self._op.value, self._reading.params)
        if value is None:
            return np.zeros(outer.num_rows, np.bool_)
        found = self._aggregates(outer) if self._rows is None else self._counts(outer, self._rows)
        if found is None:
            return np.zeros(outer.num_rows, np.bool_)
        mask: Mask = numpy_of(compare_constant(self._op.op, found, value))
        return mask

    def _counts(self, outer: Batch, rows: _Tally) -> pa.Array:
        total: Places = np.zeros(outer.num_rows, np.int64)
        for of_row, counts in rows.counts(outer):
            if counts is None:
                total += np.bincount(of_row, minlength=outer.num_rows)
            else:
                np.add.at(total, of_row, counts)
        return pa.array(total)

    def _aggregates(self, outer: Batch) -> pa.Array | None:
        """The aggregate for each row; None if it is undefined for all of them."""
        budget = self._reading.budget
        held = 0
        outers: list[Places] = []
        values: list[pa.Array] = []
        try:
            for of_row, found in self._arguments(outer):
                if not len(of_row):
                    continue
                nbytes = of_row.nbytes + found.nbytes
                budget.hold(nbytes)
                held += nbytes
                outers.append(of_row)
                values.append(found)
            if not values:
                # Of nothing, only a count is known.
                is_count = self._op.function is AggregateFunction.COUNT
                return pa.array(np.zeros(outer.num_rows, np.int64)) if is_count else None
            groups = Groups(np.concatenate(outers), np.zeros(outer.num_rows, np.int64))
            budget.require(_VALUE_BYTES * len(groups.of_row))
            return aggregated(self._op.function, pa.concat_arrays(values), groups)
        finally:
            budget.release(held)

    def _arguments(self, outer: Batch) -> Iterator[tuple[Places, pa.Array]]:
        argument, reading = self._op.argument, self._reading
        assert argument is not None
        assert self._values is not None
        for rows in self._values(outer):
            found = evaluate(argument, reading.rows(rows), reading.params)
            if isinstance(found, pa.Scalar):
                found = pa.repeat(found, rows.num_rows)
            yield _outer_of(rows), flat(found)


class _Tally:
    """How many rows a block has for each row around it.

    What a last traversal reaches is not walked to if nothing reads it: its degrees are known.
    """

    def __init__(
        self, op: Exists | CompareBlock, runner: BlockRunner, *, is_set: bool = False
    ) -> None:
        _, *operators = chain_of(op.block)
        self._last = _counted(operators[-1], runner.reading) if operators else None
        needed: frozenset[str] = frozenset()
        if self._last is not None:
            del operators[-1]
            needed = frozenset({self._last.op.source})
        self._rows = runner.rows_of_block(operators, needed=needed, is_set=is_set)

    def counts(self, outer: Batch) -> Iterator[tuple[Places, Places | None]]:
        """Numbers of rows around the block, and how many rows each stands for; None is one."""
        for rows in self._rows(outer):
            last = self._last
            yield _outer_of(rows), None if last is None else last.counts(rows)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A traversal whose matches are counted by what its edges know."""

    op: Expand
    hops: Hops

    def counts(self, rows: Batch) -> Places | None:
        """How many matches each row has."""
        sources = rows.nodes[self.op.source]
        is_bound = self.op.edge_variable is not None
        return self.hops.edge_counts(sources) if is_bound else self.hops.degrees(sources)


def _counted(op: Operator, reading: Reading) -> _Counted | None:
    if not isinstance(op, Expand) or op.target_is_bound or op.conditions or op.is_selection:
        return None
    hops = hops_of(op, reading)
    # Two ways may lead to one node, and one loop may be met on both.
    if not hops.is_single or op.minimum > 1 or len(hops.ways) != 1:
        return None
    counted = _Counted(op, hops)
    nothing = Batch(0, {op.source: NO_NUMBERS})
    return None if counted.counts(nothing) is None else counted


def _counts_rows(op: CompareBlock) -> bool:
    """Whether an aggregate is the number of rows: what it counts is never null."""
    is_count = op.function is AggregateFunction.COUNT
    return op.argument is None or (is_count and isinstance(op.argument, NodeValue | SystemValue))


def _outer_of(rows: Batch) -> Places:
    assert rows.outer is not None
    return rows.outer
