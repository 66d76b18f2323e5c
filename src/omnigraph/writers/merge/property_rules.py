"""The property rules: what becomes of the properties of an entity that both sides changed.

Each is compared on its own. What only one side changed is taken from there; what both sides
changed differently is a conflict of that property, unless a rule of the schema joins both values.
Properties that belong together are one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.changes.row_comparison import BLOBS_AT_ONCE, VECTORS_AT_ONCE, compare_columns
from omnigraph.changes.type_pairs import is_heavy
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.comparison import to_numpy
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET, MergeRule
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.merge.counted_bases import CounterBase, list_counters
from omnigraph.writers.merge.joined_values import join_values
from omnigraph.writers.merge.located_rows import LocatedRows, Mask, Places, read_columns
from omnigraph.writers.merge.merged_schema import MergedType


@dataclass(frozen=True)
class ThreeRows:
    """The same entities on all three sides, and the base of what is counted, if anything is."""

    base: LocatedRows
    ours: LocatedRows
    theirs: LocatedRows
    counted: CounterBase | None = None

    def select_rows(self, places: Places) -> ThreeRows:
        """The same for some of the entities."""
        base, ours, theirs = (
            side.select_rows(places) for side in (self.base, self.ours, self.theirs)
        )
        counted = None if self.counted is None else self.counted.select_rows(places)
        return ThreeRows(base, ours, theirs, counted)

    def read_columns(self, shape: TableShape, names: Sequence[str]) -> tuple[pa.Table, ...]:
        """Columns at the base, on ours and on theirs."""
        base, ours, theirs = (
            read_columns(side, shape, names) for side in (self.base, self.ours, self.theirs)
        )
        if self.counted is not None and self.counted.values is not None:
            known = self.counted.values
            for name in set(names).intersection(known.column_names):
                base = base.set_column(base.schema.get_field_index(name), name, known[name])
        return base, ours, theirs

    def find_equal_counts(self, type_: MergedType) -> Mask:
        """Entities that both sides have alike, and with a count that is not the base's.

        Both counted the same: neither count is the other one.
        """
        found = np.zeros_like(self.ours.is_there)
        counters = list_counters(type_)
        if self.counted is not None and counters:
            base, ours, _ = self.read_columns(type_.shape, counters)
            for name in counters:
                is_count = to_numpy(ours[name].is_valid())
                found |= compare_columns(base[name], ours[name]) & is_count
            found &= self.counted.is_known
        return found


@dataclass(frozen=True)
class PartOutcomes:
    """What becomes of one property, or of some that belong together, in rows of both sides.

    `is_ours` and `is_theirs` are rows in which only that side changed it, `is_conflict` those in
    which both did and differ. `is_taken` are rows that get the value of theirs, `is_joined` those
    that get the one of `joined`, `is_open` undecided ones.
    """

    columns: tuple[str, ...]
    is_ours: Mask
    is_theirs: Mask
    is_conflict: Mask
    is_taken: Mask
    is_open: Mask
    is_joined: Mask
    joined: pa.Array | None = None

    @property
    def masks(self) -> dict[str, Any]:  # Any: keywords of `replace`
        """All masks by name."""
        return {name: each for name, each in vars(self).items() if name.startswith("is_")}


@dataclass(frozen=True, slots=True)
class MixedEntity:
    """An entity with values of both sides, and the properties that either of them changed.

    A property in both lists has the joined value of both.
    """

    type_key: TypeKey
    entity_id: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]

    def __str__(self) -> str:
        sides = dict.fromkeys(self.theirs, "theirs") | dict.fromkeys(self.ours, "ours")
        sides |= dict.fromkeys(set(self.ours) & set(self.theirs), "both")
        parts = (f"{name}: {side}" for name, side in sorted(sides.items()))
        return f"{self.type_key.name} '{self.entity_id}' ({', '.join(parts)})"


@dataclass(frozen=True)
class MixedRows:
    """Entities that both sides changed; `places` are theirs among those that theirs changed."""

    places: Places
    parts: tuple[PartOutcomes, ...]

    @property
    def is_conflict(self) -> Mask:
        """Rows with a property that both sides changed differently."""
        return self._fold([part.is_conflict for part in self.parts])

    @property
    def is_open(self) -> Mask:
        """Rows with an undecided property, which stay as ours has them."""
        return self._fold([part.is_open for part in self.parts])

    @property
    def is_written(self) -> Mask:
        """Rows that get a value of theirs, or a joined one."""
        return self._fold([part.is_taken | part.is_joined for part in self.parts]) & ~self.is_open

    @property
    def is_of_both(self) -> Mask:
        """Written rows that keep a change of ours, too."""
        kept = [
            part.is_ours | part.is_joined | (part.is_conflict & ~part.is_taken)
            for part in self.parts
        ]
        return self.is_written & self._fold(kept)

    def decide_sides(self, takes_theirs: Mask, is_decided: Mask) -> MixedRows:
        """The same with the conflicts of some rows decided, each for one side."""
        parts = (
            replace(
                part,
                is_taken=part.is_taken | (part.is_open & takes_theirs),
                is_open=part.is_open & ~is_decided,
            )
            for part in self.parts
        )
        return replace(self, parts=tuple(parts))

    def select_rows(self, is_kept: Mask) -> MixedRows:
        """The same without some of the rows."""
        if is_kept.all():
            return self
        kept = pa.array(is_kept)
        parts = (
            replace(
                part,
                **{name: mask[is_kept] for name, mask in part.masks.items()},
                joined=None if part.joined is None else part.joined.filter(kept),
            )
            for part in self.parts
        )
        return MixedRows(self.places[is_kept], tuple(parts))

    def _fold(self, masks: list[Mask]) -> Mask:
        found: Mask = np.logical_or.reduce([np.zeros(len(self.places), np.bool_), *masks])
        return found


def mix_rows(type_: MergedType, rows: ThreeRows, places: Places) -> MixedRows:
    """Compare the entities at some places property by property; conflicts stay open."""
    if not len(places):
        return MixedRows(places, ())
    rows = rows.select_rows(places)
    found = _compare_properties(type_.shape, rows)
    parts = []
    for columns in list_parts(type_):
        is_ours, is_theirs, is_other = _find_part_changes(type_, rows, columns, found)
        both = is_ours & is_theirs & is_other
        joinable = _find_joinable(type_, rows, columns[0], (is_ours & is_theirs, is_other))
        is_joined, joined = _join_column(type_, rows, columns[0], joinable)
        both |= joinable
        parts.append(
            PartOutcomes(
                columns=columns,
                is_ours=is_ours & ~is_theirs,
                is_theirs=is_theirs & ~is_ours,
                is_conflict=both & ~is_joined,
                is_taken=is_theirs & ~is_ours,
                is_open=both & ~is_joined,
                is_joined=is_joined,
                joined=joined,
            )
        )
    return MixedRows(places, tuple(parts))


def _find_part_changes(
    type_: MergedType,
    rows: ThreeRows,
    columns: tuple[str, ...],
    found: dict[str, tuple[Mask, Mask, Mask]],
) -> tuple[Mask, Mask, Mask]:
    """Where ours changed a part, where theirs did, and where both are different.

    A vector follows the text that it is made of. Where both sides have the same text, one of their
    vectors is taken, and is never a conflict.
    """
    vectors = [name for name in columns if name in type_.embedded]
    others = [name for name in columns if name not in type_.embedded]
    is_ours, is_theirs, is_other = _unite_changes(found, others or columns)
    if not vectors or not others:
        return is_ours, is_theirs, is_other
    is_same = (is_ours == is_theirs) & ~(is_ours & is_other)
    mine, other, differs = _unite_changes(found, vectors)
    is_taken = other & ~mine
    doubtful = np.flatnonzero(is_same & mine & other & differs)
    if len(doubtful):
        own = read_columns(rows.ours.select_rows(doubtful), type_.shape, vectors)
        lacks = np.logical_or.reduce([to_numpy(own[name].is_null()) for name in vectors])
        is_taken[doubtful] = lacks
    is_ours = np.where(is_same, mine & ~is_taken, is_ours)
    is_theirs = np.where(is_same, is_taken, is_theirs)
    return is_ours, is_theirs, is_other


def _unite_changes(
    found: dict[str, tuple[Mask, Mask, Mask]], columns: Sequence[str]
) -> tuple[Mask, Mask, Mask]:
    ours, theirs, both = (
        np.logical_or.reduce([found[name][number] for name in columns]) for number in range(3)
    )
    return ours, theirs, both


def _find_joinable(
    type_: MergedType, rows: ThreeRows, column: str, changes: tuple[Mask, Mask]
) -> Mask:
    """The rows whose value a rule is to join: equal counts are two counts."""
    both, is_other = changes
    rule = type_.rules.get(column)
    if rule is None:
        return np.zeros_like(both)
    if rule is not MergeRule.COUNTER or rows.counted is None or not both.any():
        return both & is_other
    # What both sides cleared was counted by neither.
    is_count: Mask = to_numpy(read_columns(rows.ours, type_.shape, [column])[column].is_valid())
    return both & rows.counted.is_known & (is_other | is_count)


def _join_column(
    type_: MergedType, rows: ThreeRows, column: str, both: Mask
) -> tuple[Mask, pa.Array | None]:
    """The rows whose value a rule joins, and the values by row; null where none is joined."""
    rule = type_.rules.get(column)
    if rule is None or not both.any():
        return np.zeros_like(both), None
    places = np.flatnonzero(both)
    sides = rows.select_rows(places).read_columns(type_.shape, [column])
    base, ours, theirs = (side[column] for side in sides)
    values, is_there = join_values(rule, base, ours, theirs)
    is_joined = np.zeros_like(both)
    is_joined[places[is_there]] = True
    order = np.full(len(both), -1, np.int64)
    order[places] = np.arange(len(places))
    return is_joined, values.take(pa.array(order, mask=order < 0))


def list_parts(type_: MergedType) -> list[tuple[str, ...]]:
    """The columns of a type, those that belong together in one tuple."""
    parts: dict[str, tuple[str, ...]] = {
        name: (name,) for name in type_.shape.schema.names if name != ID_COLUMN
    }
    for group in type_.groups:
        joined = tuple(dict.fromkeys(column for name in group for column in parts[name]))
        parts.update(dict.fromkeys(joined, joined))
    return list(dict.fromkeys(parts.values()))


def read_mixed_rows(
    mixed: MixedRows, shape: TableShape, ours: LocatedRows, theirs: LocatedRows
) -> pa.Table:
    """The merged entities that are written, in the order of their places."""
    kept = np.flatnonzero(mixed.is_written)
    places = mixed.places[kept]
    ours, theirs = ours.select_rows(places), theirs.select_rows(places)
    taken = {name: part.is_taken[kept] for part in mixed.parts for name in part.columns}
    none = np.zeros(len(kept), np.bool_)
    columns: dict[str, pa.ChunkedArray] = {}
    for names in _group_columns(shape, shape.schema.names):
        is_taken = taken.get(names[0], none)
        if len(names) == 1 and is_heavy(shape.schema.field(names[0])):
            columns[names[0]] = _read_heavy_column(shape, names[0], (ours, theirs), is_taken)
            continue
        mine, other = (read_columns(side, shape, names) for side in (ours, theirs))
        columns |= {
            name: _mix_columns(mine[name], other[name], taken.get(name, none)) for name in names
        }
    for part in mixed.parts:
        if part.joined is not None:
            name = part.columns[0]
            joined = pa.chunked_array([part.joined.take(pa.array(kept))])
            columns[name] = _mix_columns(columns[name], joined, part.is_joined[kept])
    return pa.table([columns[each.name] for each in shape.schema], schema=shape.schema)


def name_columns(shape: TableShape) -> dict[str, str]:
    """What people call the columns of a table: its ends and properties."""
    ends = {SOURCE_COLUMN: SOURCE, TARGET_COLUMN: TARGET}
    return ends | {column: name for name, column in shape.columns.items()}


def list_mixed_entities(
    mixed: MixedRows, type_: MergedType, ids: pa.Array, *, listed_max: int
) -> Iterator[MixedEntity]:
    """The first of the entities that get values of theirs and keep those that ours changed."""
    names = name_columns(type_.shape)
    for row in np.flatnonzero(mixed.is_of_both)[:listed_max].tolist():
        sides: tuple[list[str], list[str]] = ([], [])
        for part in mixed.parts:
            is_kept = bool(part.is_ours[row] or part.is_conflict[row])
            called = [names[column] for column in part.columns]
            if part.is_taken[row] or part.is_joined[row]:
                sides[1].extend(called)
            if part.is_joined[row] or (is_kept and not part.is_taken[row]):
                sides[0].extend(called)
        ours, theirs = (tuple(sorted(each)) for each in sides)
        yield MixedEntity(type_.key, ids[int(mixed.places[row])].as_py(), ours, theirs)


def _compare_properties(shape: TableShape, rows: ThreeRows) -> dict[str, tuple[Mask, Mask, Mask]]:
    """Of each column: where ours differs from the base, theirs from the base, and both."""
    found: dict[str, tuple[Mask, Mask, Mask]] = {}
    count = len(rows.base.is_there)
    names = [name for name in shape.schema.names if name != ID_COLUMN]
    for group in _group_columns(shape, names):
        step = _count_rows_at_once(shape, group, count)
        parts = [
            _compare_columns(
                shape, rows.select_rows(np.arange(start, min(start + step, count))), group
            )
            for start in range(0, count, step)
        ]
        for name in group:
            ours, theirs, both = (
                np.concatenate([part[name][number] for part in parts]) for number in range(3)
            )
            found[name] = (ours, theirs, both)
    return found


def _compare_columns(
    shape: TableShape, rows: ThreeRows, names: Sequence[str]
) -> dict[str, tuple[Mask, Mask, Mask]]:
    base, ours, theirs = rows.read_columns(shape, names)
    return {
        name: (
            compare_columns(base[name], ours[name]),
            compare_columns(base[name], theirs[name]),
            compare_columns(ours[name], theirs[name]),
        )
        for name in names
    }


def _group_columns(shape: TableShape, names: Sequence[str]) -> list[list[str]]:
    """The light columns together, and each heavy one alone."""
    heavy = [name for name in names if is_heavy(shape.schema.field(name))]
    light = [name for name in names if name not in heavy]
    return [light, *([name] for name in heavy)] if light else [[name] for name in heavy]


def _count_rows_at_once(shape: TableShape, names: Sequence[str], rows: int) -> int:
    field = shape.schema.field(names[0])
    if not is_heavy(field):
        return rows
    return BLOBS_AT_ONCE if is_blob(field) else VECTORS_AT_ONCE


def _mix_columns(ours: pa.ChunkedArray, theirs: pa.ChunkedArray, is_taken: Mask) -> pa.ChunkedArray:
    """Each value from one of two columns; of nested types too."""
    if not is_taken.any():
        return ours
    both = pa.chunked_array([*ours.chunks, *theirs.chunks], ours.type)
    return both.take(pa.array(np.arange(len(is_taken)) + len(is_taken) * is_taken))


def _read_heavy_column(
    shape: TableShape, name: str, sides: tuple[LocatedRows, LocatedRows], is_taken: Mask
) -> pa.ChunkedArray:
    """A column of vectors or blobs: each value is read on the side that it is taken from."""
    parts = [
        read_columns(side.select_rows(np.flatnonzero(chosen)), shape, [name])[name]
        for side, chosen in zip(sides, (~is_taken, is_taken), strict=True)
    ]
    both = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    order = np.argsort(np.concatenate([np.flatnonzero(~is_taken), np.flatnonzero(is_taken)]))
    return both.take(pa.array(order))
