"""Running a chain of operators: from a leaf through steps, a morsel at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern.blocks import RowsOfBlock
from omnigraph.execution.pattern.build import steps_of
from omnigraph.execution.pattern.rows import (
    Kept,
    concatenated,
    row_bytes,
    sliced,
    without_repetitions,
)
from omnigraph.execution.pattern.steps import Step
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Places
from omnigraph.query import plan as plans
from omnigraph.query.walk import chain_of, used_variables

# Rows that a step makes at once: with fewer, steps cost more than rows; more leave the caches.
MORSEL_ROWS = 1_000_000
# To find the first rows, morsels start small, and grow by this factor.
_FIRST_MORSEL_ROWS = 1_024
_MORSEL_GROWTH = 4
# From so many rows on it pays to leave out repetitions.
_REPETITIONS_MIN = 1_000


def run_pattern(
    operator: plans.Operator,
    reading: Reading,
    outer: Batch | None = None,
    *,
    limit: int | None = None,
    needed: Kept = None,
) -> Batch:
    """The rows of a chain of operators; with a limit, any so many of them.

    `outer` are the rows around a block. `needed` names the variables that are read afterwards;
    None keeps all of them.
    """
    batches = stream_pattern(operator, reading, outer, limit=limit, needed=needed)
    return collected(batches, reading, limit=limit)


def stream_pattern(
    operator: plans.Operator,
    reading: Reading,
    outer: Batch | None = None,
    *,
    limit: int | None = None,
    needed: Kept = None,
) -> Iterator[Batch]:
    """The same rows some at a time, and at least one batch; more may come than a limit says."""
    leaf, *operators = chain_of(operator)
    start = Batch(1)
    if isinstance(leaf, plans.Outer):
        assert outer is not None, "a block needs the rows around it"
        start = outer
    ranks = [place for place, each in enumerate(operators) if isinstance(each, plans.Rank)]
    if ranks:
        above = operators[ranks[-1] :]
        start = _ranked(above, reading, outer, needed)
        operators = above[1:]
    is_first = isinstance(leaf, plans.Unit) and not ranks
    steps = steps_of(operators, _Chains(reading), needed=needed, is_first=is_first)
    yield from _Stream(reading, steps, _Pace(limit)).rows(0, start)


def collected(batches: Iterable[Batch], reading: Reading, *, limit: int | None = None) -> Batch:
    """All rows of batches, or the first of them, in one."""
    budget = reading.budget
    found: list[Batch] = []
    held = rows = 0
    try:
        for batch in batches:
            nbytes = batch.num_rows * row_bytes(batch)
            budget.hold(nbytes)
            held += nbytes
            rows += batch.num_rows
            found.append(batch)
            if limit is not None and rows >= limit:
                break
        parts = [each for each in found if each.num_rows] or found[:1]
        if len(parts) > 1:
            budget.require(held)
        batch = concatenated(parts)
    finally:
        budget.release(held)
    return batch if limit is None or rows <= limit else sliced(batch, 0, limit)


def _ranked(
    above: Sequence[plans.Operator], reading: Reading, outer: Batch | None, needed: Kept
) -> Batch:
    """The rows of a rank, which is the first of some operators."""
    rank = above[0]
    assert isinstance(rank, plans.Rank)
    if needed is not None:
        needed = needed.union(*map(used_variables, above))
    # Imported when it is needed: most queries do not search.
    from omnigraph.execution import search  # noqa: PLC0415

    return search.rank(rank, run_pattern(rank.input, reading, outer, needed=needed), reading)


@dataclass(frozen=True, slots=True)
class _Chains:
    """Runs the chains of operators inside others."""

    reading: Reading

    def rows_of_block(
        self, operators: Sequence[plans.Operator], *, needed: frozenset[str], is_set: bool = False
    ) -> RowsOfBlock:
        """The rows of a block's operators; of a set, repetitions may be left out."""
        steps = steps_of(operators, self, needed=needed, is_first=False)
        return partial(_Stream(self.reading, steps, _Pace(None), is_set=is_set).rows, 0)

    def component(self, operators: Sequence[plans.Operator], needed: Kept) -> Batch:
        """The rows of operators that start with a scan."""
        steps = steps_of(operators, self, needed=needed, is_first=True)
        return collected(_Stream(self.reading, steps, _Pace(None)).rows(0, Batch(1)), self.reading)


class _Cut(NamedTuple):
    """Rows that a step gets in pieces, what is left of the pieces, and what the rows take."""

    number: int
    batch: Batch
    pieces: Iterator[tuple[int, int]]
    nbytes: int


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows through steps; a step that would make too many at once gets its rows in pieces."""

    reading: Reading
    steps: Sequence[Step]
    pace: _Pace
    is_set: bool = False

    def rows(self, first: int, batch: Batch) -> Iterator[Batch]:
        """What rows become by the steps from one on."""
        # Rows that are cut, the innermost last: a stack, as a pattern may have very many steps.
        cut: list[_Cut] = []
        budget = self.reading.budget
        number: int | None = first
        try:
            while number is not None:
                budget.check()
                if number == len(self.steps):
                    yield batch
                    number, batch = self._next_piece(cut)
                    continue
                pieces = self.pace.pieces(self.steps[number].fan_out(batch), batch.num_rows)
                if pieces is None:
                    batch = self._stepped(number, batch)
                    number += 1
                else:
                    nbytes = batch.num_rows * row_bytes(batch)
                    budget.hold(nbytes)
                    cut.append(_Cut(number, batch, pieces, nbytes))
                    number, batch = self._next_piece(cut)
        finally:
            budget.release(sum(each.nbytes for each in cut))

    def _next_piece(self, cut: list[_Cut]) -> tuple[int | None, Batch]:
        """The next piece of the innermost rows that have one, after its step."""
        while cut:
            last = cut[-1]
            for start, end in last.pieces:
                piece = self._stepped(last.number, sliced(last.batch, start, end))
                return last.number + 1, piece
            self.reading.budget.release(cut.pop().nbytes)
        return None, Batch(0)

    def _stepped(self, number: int, batch: Batch) -> Batch:
        return self._without_repetitions(self.steps[number].run(batch))

    def _without_repetitions(self, batch: Batch) -> Batch:
        is_large = batch.num_rows >= _REPETITIONS_MIN
        return without_repetitions(batch) if self.is_set and is_large else batch


class _Pace:
    """How many rows a step may make at once."""

    def __init__(self, limit: int | None) -> None:
        self._is_limited = limit is not None
        self._rows = MORSEL_ROWS
        if limit is not None:
            self._rows = min(max(_MORSEL_GROWTH * limit, _FIRST_MORSEL_ROWS), MORSEL_ROWS)

    def pieces(self, fan_out: Places | None, rows: int) -> Iterator[tuple[int, int]] | None:
        """Where to cut rows, from each place to the next; None if they need not be cut."""
        if fan_out is None:
            if not self._is_limited or rows <= self._rows:
                return None
            fan_out = np.ones(rows, np.int64)
        ends = np.cumsum(fan_out)
        return None if not rows or ends[-1] <= self._rows else self._cut(ends)

    def _cut(self, ends: Places) -> Iterator[tuple[int, int]]:
        place = made = 0
        while place < len(ends):
            after = int(np.searchsorted(ends, made + self._rows, side="right"))
            after = max(after, place + 1)
            yield place, after
            place, made = after, int(ends[after - 1])
            # Only after a piece went through all steps, so that the first rows come soon.
            self._rows = min(self._rows * _MORSEL_GROWTH, MORSEL_ROWS)
