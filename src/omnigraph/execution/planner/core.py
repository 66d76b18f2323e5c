"""Enumerating the variables that are needed, a morsel at a time, with the weights of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern import run_pattern
from omnigraph.execution.pattern.rows import pruned
from omnigraph.execution.planner.amounts import Weights
from omnigraph.execution.planner.bounded import reached_within
from omnigraph.execution.planner.graph import Variable
from omnigraph.execution.planner.rows import Rows, numbered
from omnigraph.execution.planner.trees import Tree
from omnigraph.execution.planner.watch import NOBODY, Watch
from omnigraph.execution.planner.weights import Weighing
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Numbers, Places
from omnigraph.query.plan import Expand, Operator, Outer
from omnigraph.query.walk import link

# Rows that a traversal makes at once: fewer cost more steps, more leave the caches.
MORSEL_ROWS: Final = 1_000_000
# Of a query that may be stopped, so that it is asked often enough whether it is.
STOPPABLE_ROWS: Final = 2**17
_ROW_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class CoreStep:
    """An operator over rows, and the variables that are still read after it."""

    operator: Operator
    # The variable that it binds, if it binds one.
    variable: Variable | None
    kept: frozenset[str]
    is_plain: bool
    # Whether it is several hops over one edge type, to nodes that are not bound yet.
    is_bounded: bool


@dataclass(frozen=True, slots=True)
class Core:
    """An order of enumeration: a start, then steps; `trees` weigh the variables when bound."""

    start: Variable
    steps: tuple[CoreStep, ...]
    trees: Mapping[str, Tree]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that follow each other, and how many rows a traversal makes of them."""

    first: int
    last: int
    made: int

    def of(self, rows: Rows) -> Rows:
        return rows if self.last - self.first == rows.count else rows.sliced(self.first, self.last)


def weighing_of(variable: str) -> tuple[str, str]:
    """The part of a run that weighs the nodes of a variable."""
    return "weights", variable


class Enumeration:
    """The rows of one read."""

    def __init__(
        self, core: Core, weighing: Weighing, reading: Reading, watch: Watch = NOBODY
    ) -> None:
        self._core = core
        self._weighing = weighing
        self._reading = reading
        self._watch = watch
        # How many nodes there were to start from.
        self.starts = 0

    def rows(self) -> Iterator[Rows]:
        """All rows in morsels, and at least one morsel; none of them stands for nothing."""
        start, watch = self._core.start, self._watch
        watch.start()
        found = self._weighing.candidates(start)
        watch.note(start.name, len(found))
        self.starts = len(found)
        is_whole = len(found) == self._weighing.nodes(start).size
        rows = Rows(Batch(len(found), {start.name: found}))
        if self._has_weight(start.name):
            rows = rows.weighted(self._weigh(start.name, None if is_whole else found))
            watch.note(weighing_of(start.name), rows.count)
        yield from self._after(rows, 0)

    def _after(self, rows: Rows, done: int) -> Iterator[Rows]:
        for number in range(done, len(self._core.steps)):
            self._reading.budget.check()
            step = self._core.steps[number]
            pieces = self._pieces(step, rows.batch)
            for piece in pieces[:-1]:
                yield from self._after(self._stepped(step, piece.of(rows), piece), number + 1)
            rows = self._stepped(step, pieces[-1].of(rows), pieces[-1])
        yield rows
        # Whatever the rows were used for is not part of the next step.
        self._watch.start()

    def _pieces(self, step: CoreStep, batch: Batch) -> Sequence[_Piece]:
        """Where to cut rows, so that a traversal does not make too many at once."""
        count = batch.num_rows
        if not step.is_plain or count <= 1:
            return [_Piece(0, count, 0)]
        assert isinstance(step.operator, Expand)
        adjacency = self._weighing.adjacency(step.operator.steps[0])
        most = STOPPABLE_ROWS if self._reading.budget.may_be_stopped else MORSEL_ROWS
        if adjacency.is_functional and count <= most:
            return [_Piece(0, count, count)]
        degrees = adjacency.degrees_at(batch.nodes[step.operator.source])
        ends = np.cumsum(degrees, dtype=np.int64)
        pieces: list[_Piece] = []
        first = made = 0
        while first < count:
            reached = int(np.searchsorted(ends, made + most, side="right"))
            last = min(max(reached, first + 1), count)
            pieces.append(_Piece(first, last, int(ends[last - 1]) - made))
            first, made = last, int(ends[last - 1])
        return pieces

    def _stepped(self, step: CoreStep, rows: Rows, piece: _Piece) -> Rows:
        self._reading.budget.check()
        self._reading.budget.require(piece.made * _ROW_BYTES)
        if step.is_plain:
            places, batch = self._plain(step, rows.batch)
        elif step.is_bounded and rows.count == 1:
            places, batch = self._bounded(step, rows.batch)
        else:
            places, batch = self._other(step, rows.batch)
        found = Rows(batch, rows.weights.take(places))
        self._watch.note(id(step), found.count)
        variable = step.variable
        if variable is not None and self._has_weight(variable.name):
            more = self._weigh(variable.name, batch.nodes[variable.name])
            found = found.weighted(more)
            self._watch.note(weighing_of(variable.name), found.count)
        return Rows(pruned(found.batch, step.kept), found.weights)

    def _plain(self, step: CoreStep, batch: Batch) -> tuple[Places, Batch]:
        """One hop to distinct neighbours."""
        operator, variable = step.operator, step.variable
        assert isinstance(operator, Expand)
        assert variable is not None
        adjacency = self._weighing.adjacency(operator.steps[0])
        places, ends = adjacency.reach(batch.nodes[operator.source])
        return self._bound(batch, variable, places, ends)

    def _bounded(self, step: CoreStep, batch: Batch) -> tuple[Places, Batch]:
        """Several hops from the one row there is."""
        operator, variable = step.operator, step.variable
        assert isinstance(operator, Expand)
        assert variable is not None
        (way,) = operator.steps
        ways = [self._weighing.adjacency(way)]
        if operator.is_undirected:
            ways.append(self._weighing.adjacency(way, is_back=True))
        ends = reached_within(
            ways,
            int(batch.nodes[operator.source][0]),
            minimum=operator.minimum,
            maximum=operator.maximum,
            budget=self._reading.budget,
        )
        return self._bound(batch, variable, np.zeros(len(ends), np.int64), ends)

    def _bound(
        self, batch: Batch, variable: Variable, places: Places, ends: Numbers
    ) -> tuple[Places, Batch]:
        mask = self._weighing.holds(variable, ends)
        if mask is not None:
            kept = np.flatnonzero(mask)
            places, ends = places.take(kept), ends.take(kept)
        rows = batch.take(places)
        return places, Batch(len(ends), {**rows.nodes, variable.name: ends}, rows.edges)

    def _other(self, step: CoreStep, batch: Batch) -> tuple[Places, Batch]:
        """Any other operator, and then the blocks of the variable that it binds."""
        operator = link([Outer(), step.operator])
        found = run_pattern(operator, self._reading, numbered(batch))
        places = found.outer
        assert places is not None
        found = Batch(found.num_rows, found.nodes, found.edges)
        if step.variable is not None and step.variable.blocks:
            kept = self._weighing.blocked(step.variable, found.nodes[step.variable.name])
            places, found = places.take(kept), found.take(kept)
        return places, found

    def _has_weight(self, name: str) -> bool:
        return not self._core.trees[name].is_bare

    def _weigh(self, name: str, at: Numbers | None) -> Weights:
        return self._weighing.weights(self._core.trees[name], at)
