"""Where the entities of a merge lie on a side, their rows, and whether two sides are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.row_comparison import compare_stored_rows
from omnigraph.changes.rows_by_id import fetch_keys
from omnigraph.changes.type_pairs import ColumnPair, is_heavy
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import copies_schema_of
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import MergedType, SideType, conform_rows

Mask: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.intp]
RowIds: TypeAlias = npt.NDArray[np.uint64]

# So many rows are read as fast as some ids are looked up in an index.
NEW_ROWS_MAX: Final = 16_384
_SYSTEM_COLUMNS: Final = (ID_COLUMN, SOURCE_COLUMN, TARGET_COLUMN)


@dataclass(frozen=True)
class LocatedRows:
    """Some ids on one side: which of them exist, and their row ids; 0 for the others."""

    view: View
    side_type: SideType | None
    is_there: Mask
    row_ids: RowIds

    @property
    def table(self) -> Table:
        """The table of the type on this side."""
        assert self.side_type is not None, "no row exists without a table"
        return self.view.open_table(self.side_type.key)

    def select_row_ids(self, places: Places) -> pa.Array:
        """The row ids at some places."""
        return pa.array(self.row_ids[places])

    def select_rows(self, places: Places) -> LocatedRows:
        """The same for some of the ids."""
        return replace(self, is_there=self.is_there[places], row_ids=self.row_ids[places])


def compare_rows(
    type_: MergedType, left: LocatedRows, right: LocatedRows, *, shares_copies: bool = False
) -> Mask:
    """Which of the ids are not in the same state on two sides."""
    found: Mask = left.is_there != right.is_there
    is_open = left.is_there & right.is_there
    if shares_copies and is_open.any() and left.table.pin.path == right.table.pin.path:
        is_open &= left.row_ids != right.row_ids
    places = np.flatnonzero(is_open)
    if not len(places):
        return found
    pairs, lost = pair_columns(type_, left, right)
    ours, theirs = (
        (left.table, left.select_row_ids(places)),
        (right.table, right.select_row_ids(places)),
    )
    found[places] = compare_stored_rows(ours, theirs, pairs)
    if lost:
        # A property that only the left side knows: it differs where it holds a value.
        found[places] |= compare_stored_rows(theirs, ours, lost)
    return found


def pair_columns(
    type_: MergedType, left: LocatedRows, right: LocatedRows
) -> tuple[list[ColumnPair], list[ColumnPair]]:
    """The columns of both sides that mean the same, and those that only the left side has."""
    assert left.side_type is not None
    assert right.side_type is not None
    ours, theirs = left.side_type.columns, right.side_type.columns
    ends = (SOURCE_COLUMN, TARGET_COLUMN) if type_.key.kind is TypeKind.EDGE else ()
    pairs = [ColumnPair(end, end) for end in ends]
    lost: list[ColumnPair] = []
    for field in type_.shape.schema:
        name = field.name
        if name in theirs:
            pairs.append(ColumnPair(ours.get(name), theirs[name], is_heavy(field)))
        elif name in ours:
            lost.append(ColumnPair(None, ours[name], is_heavy(field)))
    return pairs, lost


def read_columns(side: LocatedRows, shape: TableShape, names: Sequence[str]) -> pa.Table:
    """Columns of a merged table as a side has them: null where it lacks the row or the property."""
    fields = pa.schema([shape.schema.field(name) for name in names])
    there, places = side.side_type, np.flatnonzero(side.is_there)
    known = {} if there is None else dict.fromkeys(_SYSTEM_COLUMNS) | dict(there.columns)
    columns = [known[name] or name for name in names if name in known]
    if there is None or not columns or not len(places):
        return pa.table([pa.nulls(len(side.is_there), each.type) for each in fields], schema=fields)
    found = conform_rows(
        side.table.take(side.select_row_ids(places), columns=columns), there, shape
    ).select(names)
    if len(places) < len(side.is_there):
        spread = np.cumsum(side.is_there) - 1
        found = found.take(pa.array(spread, mask=~side.is_there))
    return pa.table([found[name] for name in names], schema=fields)


def read_copies(type_key: TypeKey, ids: pa.Array, ours: LocatedRows, places: Places) -> pa.Table:
    """The committed copies of the entities at some places, as far as ours has them."""
    known = places[ours.is_there[places]]
    is_edge = type_key.kind is TypeKind.EDGE
    if not len(known):
        none = copies_schema_of(type_key).empty_table()
        return none if is_edge else none.select([ID_COLUMN, ROW_ID])
    row_ids = ours.select_row_ids(known)
    rows = pa.table([ids.take(pa.array(known)), row_ids], [ID_COLUMN, ROW_ID])
    if is_edge:
        names = [ROW_ADDRESS, SOURCE_COLUMN, TARGET_COLUMN]
        read = ours.table.take(row_ids, columns=names)
        rows = pa.table([*rows.columns, *read.columns], schema=copies_schema_of(type_key))
    return rows


def locate_rows(view: View, there: SideType | None, ids: pa.Array) -> LocatedRows:
    """Where some ids are on a side."""
    if there is None or not len(ids):
        return LocatedRows(view, there, np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.uint64))
    return _locate_found(view, there, ids, fetch_keys(view, there.key, ids))


def _locate_found(view: View, there: SideType, ids: pa.Array, found: pa.Table) -> LocatedRows:
    """Where the ids are, given the rows of those that were found."""
    found = found.combine_chunks()
    places = pc.index_in(ids, value_set=found[ID_COLUMN].cast(ids.type))
    is_there: Mask = to_numpy(places.is_valid())
    row_ids = found[ROW_ID].combine_chunks().cast(pa.uint64()).take(places)
    return LocatedRows(view, there, is_there, to_numpy(row_ids.fill_null(0)).astype(np.uint64))


def locate_on_theirs(type_: MergedType, sides: MergeSides, ids: pa.Array) -> LocatedRows:
    """The ids on theirs: a copy written since the base is in a fragment that the base lacks."""
    if type_.base is None or type_.theirs is None or not sides.do_theirs_descend:
        return locate_rows(sides.theirs, type_.theirs, ids)
    before, now = sides.base.open_table(type_.base.key), sides.theirs.open_table(type_.theirs.key)
    new = set(now.fragment_ids).difference(before.fragment_ids)
    if before.pin.path != now.pin.path or now.count_rows_in(new) > NEW_ROWS_MAX:
        return locate_rows(sides.theirs, type_.theirs, ids)
    rows = now.scan_fragments(new, columns=[ID_COLUMN, ROW_ID])
    located = _locate_found(sides.theirs, type_.theirs, ids, rows)
    return _with_others(located, ids, np.flatnonzero(~located.is_there))


def _with_others(known: LocatedRows, ids: pa.Array, places: Places) -> LocatedRows:
    """The same with the ids at some places looked for in the whole table."""
    others = locate_rows(known.view, known.side_type, ids.take(pa.array(places)))
    is_there, row_ids = known.is_there.copy(), known.row_ids.copy()
    is_there[places], row_ids[places] = others.is_there, others.row_ids
    return replace(known, is_there=is_there, row_ids=row_ids)


def locate_on_ours(
    type_: MergedType, sides: MergeSides, ids: pa.Array, base: LocatedRows
) -> LocatedRows:
    """The ids on ours: looked for only if ours may have them elsewhere than the base."""
    if type_.base is None or type_.ours is None:
        return locate_rows(sides.ours, type_.ours, ids)
    before = sides.base.snapshot.pins[str(type_.base.key)]
    now = sides.ours.snapshot.pins[str(type_.ours.key)]
    alike = replace(base, view=sides.ours, side_type=type_.ours)
    if now == before:
        return alike
    written = sides.find_written_ids(now.path) if now.path == before.path else None
    if written is None:
        return locate_rows(sides.ours, type_.ours, ids)
    places = np.flatnonzero(to_numpy(pc.is_in(ids, value_set=written.to_array().cast(ids.type))))
    return _with_others(alike, ids, places)
