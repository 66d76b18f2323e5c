"""The base of `merge counter`: where the counters of both sides stood when they parted.

Counts are added up, so every commit must count once. After merges crosswise no commit has the sum
of what both sides share: it is made of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.row_comparison import compare_columns
from omnigraph.errors import StorageError
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.view import View
from omnigraph.schema.catalog import MergeRule
from omnigraph.versioning.shared_history import WeighedSnapshot
from omnigraph.writers.merge.conflict_kinds import MergeAction
from omnigraph.writers.merge.joined_values import add_weighed
from omnigraph.writers.merge.located_rows import (
    LocatedRows,
    Mask,
    Places,
    locate_rows,
    read_columns,
)
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import (
    MergedSchema,
    MergedType,
    SideType,
    find_side_type,
)


@dataclass(frozen=True)
class CounterBase:
    """Where the counters of some entities stood, by row; without `values` as the base has them.

    Rows that are not known are compared like values without a rule.
    """

    is_known: Mask
    values: pa.Table | None = None

    def select_rows(self, places: Places) -> CounterBase:
        """The same for some of the entities."""
        values = None if self.values is None else self.values.take(pa.array(places))
        return replace(self, is_known=self.is_known[places], values=values)

    def find_other_counts(self, type_: MergedType, side: LocatedRows) -> Mask:
        """The entities that a side has with other counts, as far as the base has not them."""
        found = np.zeros_like(self.is_known)
        if self.values is not None:
            there = read_columns(side, type_.shape, self.values.column_names)
            for name in self.values.column_names:
                found |= compare_columns(self.values[name], there[name])
        return found & self.is_known & side.is_there


@dataclass(frozen=True)
class _CountedState:
    """Some entities in a state that both sides share: which exist, and their counters."""

    shared: WeighedSnapshot
    is_there: Mask
    counts: pa.Table


def list_counters(type_: MergedType) -> list[str]:
    """The columns of a type that are added up."""
    return [name for name, rule in type_.rules.items() if rule is MergeRule.COUNTER]


def find_counter_base(
    type_: MergedType, merged: MergedSchema, sides: MergeSides, ids: pa.Array, base: LocatedRows
) -> CounterBase | None:
    """Where the counters of some entities stood; None where nothing is counted.

    A revert or a pick counts nothing: what it brings may be there already.
    """
    if not list_counters(type_) or sides.action is not MergeAction.MERGE:
        return None
    if not sides.is_crossed:
        return CounterBase(np.ones(len(ids), np.bool_))
    states: list[_CountedState] = []
    for shared in sides.shared_states or ():
        accepted = sides.lineage.read_schema(shared.snapshot)
        view = View(shared.snapshot, accepted, sides.base.tables)
        side_type = find_side_type(view.accepted, merged, type_)
        try:
            states.append(_read_state(type_, shared, view, side_type, ids))
        except StorageError:
            if sides.lineage.is_retained(shared.snapshot):
                raise
            states.clear()
            break
    if not states:
        return CounterBase(np.zeros(len(ids), np.bool_))
    return _add_states(type_, states, base)


def _read_state(
    type_: MergedType,
    shared: WeighedSnapshot,
    view: View,
    side_type: SideType | None,
    ids: pa.Array,
) -> _CountedState:
    rows = locate_rows(view, side_type, ids)
    counts = read_columns(rows, type_.shape, list_counters(type_))
    return _CountedState(shared, rows.is_there, counts)


def _add_states(
    type_: MergedType, states: Sequence[_CountedState], base: LocatedRows
) -> CounterBase:
    is_known = _find_known(states)
    columns = list_counters(type_)
    own = read_columns(base, type_.shape, columns)
    values = {}
    for name in columns:
        found, is_within = _add_column(name, states)
        is_known &= is_within
        values[name] = found
    kept = pa.array(is_known)
    return CounterBase(
        is_known,
        pa.table({name: pc.if_else(kept, values[name], own[name]) for name in columns}),
    )


def _find_known(states: Iterable[_CountedState]) -> Mask:
    """Entities of all bases, of none, or inserted by some: a deletion has no count."""
    bases = np.array([each.is_there for each in states if each.shared.is_base])
    older = np.array([each.is_there for each in states if not each.shared.is_base])
    found: Mask = np.logical_or(bases.all(axis=0), ~bases.any(axis=0))
    return found | (~older.any(axis=0) if len(older) else True)


def _add_column(name: str, states: Sequence[_CountedState]) -> tuple[pa.Array, Mask]:
    """The sum of a counter; null where no base has a count."""
    counts = [(each.counts[name].combine_chunks(), each.shared.weight) for each in states]
    total, is_within = add_weighed(counts)
    bases = [each.counts[name] for each in states if each.shared.is_base]
    is_counted = np.logical_or.reduce([to_numpy(each.is_valid()) for each in bases])
    nothing = pa.scalar(None, total.type)
    return pc.if_else(pa.array(is_counted), total, nothing), is_within | ~is_counted
