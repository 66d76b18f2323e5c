"""The row rules: what becomes of every entity that theirs changed since the base.

Values decide. What theirs left alone stays as ours has it; what only theirs changed becomes
theirs; what both left in the same state stays; anything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.row_comparison import compare_stored_rows
from omnigraph.changes.rows_by_id import fetch_keys
from omnigraph.changes.type_pairs import ColumnPair, is_heavy
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import (
    COPIES,
    EDGE_COPIES,
    TypeChange,
    WriteMode,
)
from omnigraph.writers.merge.conflict_kinds import (
    DELETE_VS_UPDATE,
    DIVERGENT_INSERT,
    DIVERGENT_UPDATE,
    THEIRS,
)
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import MergedSchema, MergedType, SideType, conform_rows

Mask: TypeAlias = npt.NDArray[np.bool_]
RowIds: TypeAlias = npt.NDArray[np.uint64]

# So many rows are read as fast as some ids are looked up in an index.
NEW_ROWS_MAX: Final = 16_384

# The order in which `RowOutcomes.kinds` numbers them.
KINDS: Final = (DIVERGENT_INSERT, DIVERGENT_UPDATE, DELETE_VS_UPDATE)


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

    def select_row_ids(self, places: npt.NDArray[np.intp]) -> pa.Array:
        """The row ids at some places."""
        return pa.array(self.row_ids[places])

    def select_rows(self, places: npt.NDArray[np.intp]) -> LocatedRows:
        """The same for some of the ids."""
        return replace(self, is_there=self.is_there[places], row_ids=self.row_ids[places])


@dataclass(frozen=True)
class RowOutcomes:
    """What becomes of the entities of a type that theirs changed, in the order of ids.

    `is_taken` are those that become what theirs made of them. `kinds` has for every conflict the
    place of its kind in KINDS, and -1 for the others; `is_open` are undecided conflicts.
    """

    type_: MergedType
    ids: pa.Array
    base: LocatedRows
    ours: LocatedRows
    theirs: LocatedRows
    is_taken: Mask
    is_open: Mask
    kinds: npt.NDArray[np.int8]

    @property
    def is_written(self) -> Mask:
        """Those that get the values of theirs."""
        return self.is_taken & self.theirs.is_there

    @property
    def is_deleted(self) -> Mask:
        """Those that end on ours."""
        return self.is_taken & ~self.theirs.is_there & self.ours.is_there

    def list_preferred(self, preferences: Mapping[str, str]) -> set[str]:
        """The kinds of conflicts that a preference decided."""
        decided = {KINDS[kind] for kind in np.unique(self.kinds[self.kinds >= 0]).tolist()}
        return decided & preferences.keys()


def resolve_rows(
    type_: MergedType, sides: MergeSides, ids: pa.Array, preferences: Mapping[str, str]
) -> RowOutcomes:
    """The verdicts on the candidates of one type; those that theirs did not change have none."""
    ordered = ids.take(pc.sort_indices(ids)).cast(pa.utf8())
    base = _locate_rows(sides.base, type_.base, ordered)
    theirs = _locate_on_theirs(type_, sides, ordered)
    is_changed = compare_rows(type_, base, theirs, shares_copies=sides.do_theirs_descend)
    places = np.flatnonzero(is_changed)
    changed, base, theirs = (
        ordered.take(pa.array(places)),
        base.select_rows(places),
        theirs.select_rows(places),
    )
    ours = _locate_on_ours(type_, sides, changed, base)
    is_ours_changed = compare_rows(type_, base, ours, shares_copies=sides.do_ours_descend)
    is_conflict = is_ours_changed.copy()
    both = np.flatnonzero(is_ours_changed)
    is_conflict[both] = compare_rows(type_, ours.select_rows(both), theirs.select_rows(both))
    kinds = _classify_conflicts(base, ours, theirs, is_conflict)
    sides_of = np.array([preferences.get(kind, "") for kind in (*KINDS, "")])[kinds]
    return RowOutcomes(
        type_,
        changed,
        base,
        ours,
        theirs,
        is_taken=~is_ours_changed | (is_conflict & (sides_of == THEIRS)),
        is_open=is_conflict & (sides_of == ""),
        kinds=kinds,
    )


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


def _locate_rows(view: View, there: SideType | None, ids: pa.Array) -> LocatedRows:
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


def _locate_on_theirs(type_: MergedType, sides: MergeSides, ids: pa.Array) -> LocatedRows:
    """The ids on theirs: a copy written since the base is in a fragment that the base lacks."""
    if type_.base is None or type_.theirs is None or not sides.do_theirs_descend:
        return _locate_rows(sides.theirs, type_.theirs, ids)
    before, now = sides.base.open_table(type_.base.key), sides.theirs.open_table(type_.theirs.key)
    new = set(now.fragment_ids).difference(before.fragment_ids)
    if before.pin.path != now.pin.path or now.count_rows_in(new) > NEW_ROWS_MAX:
        return _locate_rows(sides.theirs, type_.theirs, ids)
    rows = now.scan_fragments(new, columns=[ID_COLUMN, ROW_ID])
    located = _locate_found(sides.theirs, type_.theirs, ids, rows)
    return _with_others(located, ids, np.flatnonzero(~located.is_there))


def _with_others(known: LocatedRows, ids: pa.Array, places: npt.NDArray[np.intp]) -> LocatedRows:
    """The same with the ids at some places looked for in the whole table."""
    others = _locate_rows(known.view, known.side_type, ids.take(pa.array(places)))
    is_there, row_ids = known.is_there.copy(), known.row_ids.copy()
    is_there[places], row_ids[places] = others.is_there, others.row_ids
    return replace(known, is_there=is_there, row_ids=row_ids)


def _locate_on_ours(
    type_: MergedType, sides: MergeSides, ids: pa.Array, base: LocatedRows
) -> LocatedRows:
    """The ids on ours: looked for only if ours may have them elsewhere than the base."""
    if type_.base is None or type_.ours is None:
        return _locate_rows(sides.ours, type_.ours, ids)
    before = sides.base.snapshot.pins[str(type_.base.key)]
    now = sides.ours.snapshot.pins[str(type_.ours.key)]
    alike = replace(base, view=sides.ours, side_type=type_.ours)
    if now == before:
        return alike
    written = sides.find_written_ids(now.path) if now.path == before.path else None
    if written is None:
        return _locate_rows(sides.ours, type_.ours, ids)
    places = np.flatnonzero(to_numpy(pc.is_in(ids, value_set=written.to_array().cast(ids.type))))
    return _with_others(alike, ids, places)


def _classify_conflicts(
    base: LocatedRows, ours: LocatedRows, theirs: LocatedRows, is_conflict: Mask
) -> npt.NDArray[np.int8]:
    is_delete = ~(ours.is_there & theirs.is_there)
    kinds = np.where(~base.is_there, 0, np.where(is_delete, 2, 1))
    return np.where(is_conflict, kinds, -1).astype(np.int8)


def find_adoptable(type_: MergedType, merged: MergedSchema, sides: MergeSides) -> Pin | None:
    """The table of theirs, if the type may simply become it.

    It may if ours has left its own as it was at the base, and if theirs was made from that: a row
    id goes on meaning one row along every branch. So it is with a type that is new on ours, if
    that has not had another version of the table. The rules must be those theirs was written by.
    """
    if type_.theirs is None or not type_.is_adoptable:
        return None
    types = table_types_of(merged.accepted.catalog)
    if types[type_.key] != sides.theirs.types[type_.theirs.key]:
        return None
    pin = sides.theirs.snapshot.pins[str(type_.theirs.key)]
    if type_.ours is None:
        return pin if sides.may_adopt_table(pin) else None
    if type_.base is None or not sides.do_theirs_descend:
        return None
    mine = sides.ours.snapshot.pins[str(type_.ours.key)]
    is_untouched = mine == sides.base.snapshot.pins[str(type_.base.key)]
    return pin if is_untouched and pin.path == mine.path else None


def build_type_change(verdicts: RowOutcomes, *, adopted: Pin | None) -> TypeChange | None:
    """What a merge does to one type; None if nothing is left to do."""
    written, deleted = np.flatnonzero(verdicts.is_written), np.flatnonzero(verdicts.is_deleted)
    if not len(written) and not len(deleted):
        return None
    return TypeChange(
        shape=verdicts.type_.shape,
        mode=WriteMode.UPSERT,
        rows=_read_rows(verdicts, verdicts.theirs, written, is_light=adopted is not None),
        deleted=verdicts.ids.take(pa.array(deleted)),
        known_copies=_build_copies(verdicts, np.concatenate([written, deleted])),
        adopted=adopted,
    )


def _read_rows(
    verdicts: RowOutcomes,
    side: LocatedRows,
    places: np.ndarray[tuple[int], np.dtype[np.intp]],
    *,
    is_light: bool,
) -> pa.Table:
    """Rows of a side in the shape of the merged type; light ones come without vectors and blobs."""
    shape = verdicts.type_.shape
    kept = [field.name for field in shape.schema if not (is_light and is_heavy(field))]
    if not len(places):
        return shape.schema.empty_table().select(kept)
    assert side.side_type is not None
    system = [name for name in (ID_COLUMN, SOURCE_COLUMN, TARGET_COLUMN) if name in kept]
    columns = [there for name, there in side.side_type.columns.items() if name in kept]
    found = side.table.take(side.select_row_ids(places), columns=[*system, *columns])
    shaped = conform_rows(found, side.side_type, shape)
    fields = [shape.schema.field(name) for name in kept]
    return pa.table([shaped[name] for name in kept], schema=pa.schema(fields))


def _build_copies(
    verdicts: RowOutcomes, places: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> pa.Table:
    """The copies of ours that the change replaces or ends."""
    is_edge = verdicts.type_.key.kind is TypeKind.EDGE
    schema = EDGE_COPIES if is_edge else COPIES
    known = places[verdicts.ours.is_there[places]]
    if not len(known):
        return schema.empty_table()
    row_ids = verdicts.ours.select_row_ids(known)
    columns = [verdicts.ids.take(pa.array(known)), row_ids]
    if is_edge:
        ends = verdicts.ours.table.take(row_ids, columns=[SOURCE_COLUMN, TARGET_COLUMN])
        columns += [ends[SOURCE_COLUMN], ends[TARGET_COLUMN]]
    return pa.table(columns, schema=schema)
