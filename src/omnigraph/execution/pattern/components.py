"""Scans: a first one gives the rows to start with, later ones are joined to the rows there are.

What only reads variables of the new component is matched apart, once, and not for each row that is
there already. Then the two are joined: by the values of equal expressions, by id where that finds
single nodes, or else each row with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.exact import numpy_of
from omnigraph.execution.numbers import NO_NUMBERS, runs
from omnigraph.execution.pattern.conditions import NodeConditions
from omnigraph.execution.pattern.join_keys import Equality, JoinKeys
from omnigraph.execution.pattern.rows import Kept, extended, pruned, row_bytes
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Places
from omnigraph.query.plan import Scan
from omnigraph.query.typed import Expr, SystemName, SystemValue

_NUMBER_BYTES = 4
_PLACES_BYTES = 24
# So few rows are worth a search for their values, so many times.
_NARROWED_ROWS_MAX = 64
_NARROWED_TIMES_MAX = 4


class ScanStep:
    """The one row there is with each node of a type that satisfies the conditions."""

    def __init__(self, op: Scan, reading: Reading, kept: Kept) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept

    def fan_out(self, _batch: Batch) -> None:
        """One scan cannot be cut."""
        return

    def run(self, batch: Batch) -> Batch:
        """The nodes, ascending."""
        op, kept = self._op, self._kept
        nodes = self._reading.source.nodes(op.type_name)
        if not op.conditions:
            self._reading.budget.require(nodes.count * _NUMBER_BYTES)
        found = nodes.where(op.conditions, self._reading.params) if batch.num_rows else None
        columns = {op.variable: np.zeros(0, np.int32) if found is None else found}
        return extended(Batch(len(columns[op.variable])), nodes=columns, kept=kept)


class FindStep:
    """Each row with the node whose id an expression gives, if it satisfies the conditions."""

    def __init__(self, op: Scan, reading: Reading, equality: Equality, kept: Kept) -> None:
        self._op = op
        self._reading = reading
        self._equality = equality
        self._kept = kept
        conditions = op.conditions
        self._conditions = NodeConditions(reading, op.variable, conditions) if conditions else None

    def fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows whose node there is."""
        ids = self._equality.left_values(self._reading, batch)
        places = np.flatnonzero(numpy_of(ids.is_valid()))
        found = self._reading.source.nodes(self._op.type_name).find(ids.drop_null())
        places, found = places[found >= 0], found[found >= 0]
        if self._conditions is not None:
            mask = self._conditions.mask(found)
            places, found = places[mask], found[mask]
        rows = pruned(batch, self._kept).take(places)
        return extended(rows, nodes={self._op.variable: found}, kept=self._kept)

    @staticmethod
    def is_for(op: Scan, equality: Equality) -> bool:
        """Whether an equality gives the id of the scanned node."""
        return equality.right == SystemValue(op.variable, SystemName.ID)


class JoinStep:
    """Each row with each row of another component that has the same values.

    The component is matched once, for all rows. Only while few rows come, it is matched for their
    values alone, which an index may find.
    """

    def __init__(
        self,
        reading: Reading,
        variables: frozenset[str],
        component: Callable[[tuple[Expr, ...]], Batch],
        equalities: Sequence[Equality],
        *,
        kept: Kept,
    ) -> None:
        self._reading = reading
        self._variables = variables
        self._component = component
        self._equalities = equalities
        self._kept = kept
        self._whole: _Other | None = None
        self._narrow: tuple[Batch, _Other] | None = None
        self._narrowed_times = 0

    def fan_out(self, batch: Batch) -> Places | None:
        """How many rows each row becomes, exactly."""
        return self._matches(batch)[0] if batch.num_rows else None

    def run(self, batch: Batch) -> Batch:
        """The joined rows."""
        if not batch.num_rows:
            return self._no_rows(batch)
        counts, codes = self._matches(batch)
        other = self._other(batch)
        bytes_each = row_bytes(batch) + row_bytes(other.rows) + _PLACES_BYTES
        self._reading.budget.require(int(counts.sum()) * bytes_each)
        places, matches = runs(counts)
        if other.keys is not None:
            matches = other.keys.places(codes.take(places), matches)
        rows = pruned(batch, self._kept).take(places)
        more = pruned(other.rows, self._kept).take(matches)
        return extended(rows, nodes=more.nodes, edges=more.edges)

    def _matches(self, batch: Batch) -> tuple[Places, Places]:
        """How many rows each row becomes, and the number of its key."""
        other = self._other(batch)
        if other.keys is None:
            codes: Places = np.zeros(batch.num_rows, np.int64)
            return np.full(batch.num_rows, other.rows.num_rows, np.int64), codes
        codes = other.keys.codes(batch)
        return other.keys.counts(codes), codes

    def _other(self, batch: Batch) -> _Other:
        """The rows to join with some rows; only when these need them, as they may be many."""
        if self._whole is not None:
            return self._whole
        if self._narrow is not None and self._narrow[0] is batch:
            return self._narrow[1]
        if batch.num_rows <= _NARROWED_ROWS_MAX and self._narrowed_times < _NARROWED_TIMES_MAX:
            given = [each.given(self._reading, batch) for each in self._equalities]
            conditions = tuple(each for each in given if each is not None)
            if conditions:
                self._narrowed_times += 1
                self._narrow = batch, self._made(conditions)
                return self._narrow[1]
        self._whole = self._made(())
        return self._whole

    def _made(self, conditions: tuple[Expr, ...]) -> _Other:
        rows = self._component(conditions)
        equalities = self._equalities
        return _Other(rows, JoinKeys(self._reading, equalities, rows) if equalities else None)

    def _no_rows(self, batch: Batch) -> Batch:
        reading = self._reading
        nodes = {name: NO_NUMBERS for name in self._variables if name in reading.nodes_of}
        edges = {
            name: BoundEdges(reading.edges_of[name], np.zeros(0, np.int16), NO_NUMBERS)
            for name in self._variables
            if name in reading.edges_of
        }
        return extended(pruned(batch, self._kept), nodes=nodes, edges=edges, kept=self._kept)


class _Other(NamedTuple):
    """Rows to join with, and the rows of each key if there are keys."""

    rows: Batch
    keys: JoinKeys | None
