"""The row rules: what becomes of every entity that theirs changed since the base.

Values decide. What theirs left alone stays as ours has it; what only theirs changed becomes
theirs; what both left in the same state stays. What both changed is decided by the property rules,
or is a conflict if entities are merged whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.type_pairs import is_heavy
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.view import table_types_of
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import TypeChange, WriteMode
from omnigraph.writers.merge.conflict_kinds import (
    DELETE_VS_UPDATE,
    DIVERGENT_INSERT,
    DIVERGENT_UPDATE,
    THEIRS,
)
from omnigraph.writers.merge.counted_bases import find_counter_base, list_counters
from omnigraph.writers.merge.decided_sides import DecidedSides
from omnigraph.writers.merge.located_rows import (
    LocatedRows,
    Mask,
    Places,
    compare_rows,
    locate_on_ours,
    locate_on_theirs,
    locate_rows,
    read_copies,
)
from omnigraph.writers.merge.merge_choices import MergeBy, MergeChoices
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import MergedSchema, MergedType, conform_rows
from omnigraph.writers.merge.property_rules import MixedRows, ThreeRows, mix_rows, read_mixed_rows

# The order in which `RowOutcomes.kinds` numbers them.
KINDS: Final = (DIVERGENT_INSERT, DIVERGENT_UPDATE, DELETE_VS_UPDATE)


@dataclass(frozen=True)
class RowOutcomes:
    """What becomes of the entities of a type that theirs changed, in the order of ids.

    `is_taken` are those that become what theirs made of them. `kinds` has for every conflict the
    place of its kind in KINDS, and -1 for the others; `is_open` are undecided conflicts. `mixed`
    are those that both sides changed, if they are merged by property.
    """

    type_: MergedType
    ids: pa.Array
    rows: ThreeRows
    is_taken: Mask
    is_open: Mask
    kinds: npt.NDArray[np.int8]
    mixed: MixedRows

    @property
    def ours(self) -> LocatedRows:
        """The entities on ours."""
        return self.rows.ours

    @property
    def theirs(self) -> LocatedRows:
        """The entities on theirs."""
        return self.rows.theirs

    @property
    def is_written(self) -> Mask:
        """Those that get values of theirs."""
        found = self.is_taken & self.theirs.is_there
        found[self.mixed.places] = self.mixed.is_written
        return found

    @property
    def is_deleted(self) -> Mask:
        """Those that end on ours."""
        return self.is_taken & ~self.theirs.is_there & self.ours.is_there

    def list_preferred(self, preferences: Mapping[str, str]) -> set[str]:
        """The kinds of conflicts that a preference decided."""
        decided = {KINDS[kind] for kind in np.unique(self.kinds[self.kinds >= 0]).tolist()}
        return decided & preferences.keys()


def resolve_rows(
    type_: MergedType,
    merged: MergedSchema,
    sides: MergeSides,
    ids: pa.Array,
    choices: MergeChoices,
) -> RowOutcomes:
    """The verdicts on the candidates of one type; those that theirs did not change have none."""
    changed, rows = _find_changed(type_, merged, sides, ids, choices)
    is_ours_changed = compare_rows(type_, rows.base, rows.ours, shares_copies=sides.do_ours_descend)
    if rows.counted is not None:
        is_ours_changed |= rows.counted.find_other_counts(type_, rows.ours)
    is_conflict = is_ours_changed.copy()
    both = np.flatnonzero(is_ours_changed)
    own = rows.select_rows(both)
    is_conflict[both] = compare_rows(type_, own.ours, own.theirs)
    if rows.counted is not None:
        is_conflict[both] |= own.find_equal_counts(type_) & own.ours.is_there & own.theirs.is_there
    kinds = _classify_conflicts(rows, is_conflict)
    mixed = _mix_conflicts(type_, rows, is_conflict, choices)
    kinds[mixed.places[~mixed.is_conflict]] = -1
    sides_of = np.array([choices.prefer.get(kind, "") for kind in (*KINDS, "")])[kinds]
    if decisions := choices.list_decisions(type_.key):
        decided = DecidedSides(decisions, changed, rows, mixed)
        whole = np.where(kinds >= 0, decided.whole, "")
        mixed = decided.decide_parts(mixed.select_rows(whole[mixed.places] == ""), type_)
        sides_of = np.where(whole == "", sides_of, whole)
    is_theirs, is_decided = sides_of == THEIRS, sides_of != ""
    mixed = mixed.decide_sides(is_theirs[mixed.places], is_decided[mixed.places])
    is_taken = ~is_ours_changed | ((kinds >= 0) & is_theirs)
    is_taken[mixed.places] = False
    is_open = (kinds >= 0) & ~is_decided
    is_open[mixed.places] = mixed.is_open
    return RowOutcomes(type_, changed, rows, is_taken, is_open, kinds, mixed)


def _find_changed(
    type_: MergedType,
    merged: MergedSchema,
    sides: MergeSides,
    ids: pa.Array,
    choices: MergeChoices,
) -> tuple[pa.Array, ThreeRows]:
    """The candidates that theirs changed, in the order of ids, as all sides have them."""
    ordered = ids.take(pc.sort_indices(ids)).cast(pa.utf8())
    base = locate_rows(sides.base, type_.base, ordered)
    theirs = locate_on_theirs(type_, sides, ordered)
    is_changed = compare_rows(type_, base, theirs, shares_copies=sides.do_theirs_descend)
    counted = None
    if choices.by is MergeBy.PROPERTY:
        counted = find_counter_base(type_, merged, sides, ordered, base)
    if counted is not None:
        is_changed |= counted.find_other_counts(type_, theirs)
        counted = counted.select_rows(np.flatnonzero(is_changed))
    places = np.flatnonzero(is_changed)
    changed, base = ordered.take(pa.array(places)), base.select_rows(places)
    ours = locate_on_ours(type_, sides, changed, base)
    return changed, ThreeRows(base, ours, theirs.select_rows(places), counted)


def _mix_conflicts(
    type_: MergedType, rows: ThreeRows, is_conflict: Mask, choices: MergeChoices
) -> MixedRows:
    is_mixed = is_conflict & rows.ours.is_there & rows.theirs.is_there
    if choices.by is MergeBy.ENTITY:
        is_mixed &= _find_filled(type_, rows, is_mixed)
    return mix_rows(type_, rows, np.flatnonzero(is_mixed))


def _find_filled(type_: MergedType, rows: ThreeRows, is_asked: Mask) -> Mask:
    """The entities of which one side changed nothing but vectors that are made of texts."""
    found = np.zeros_like(is_asked)
    places = np.flatnonzero(is_asked & rows.base.is_there)
    if not type_.embedded or not len(places):
        return found
    kept = [field for field in type_.shape.schema if field.name not in type_.embedded]
    light = replace(type_, shape=replace(type_.shape, schema=pa.schema(kept)))
    own = rows.select_rows(places)
    found[places] = ~compare_rows(light, own.base, own.ours)
    found[places] |= ~compare_rows(light, own.base, own.theirs)
    return found


def _classify_conflicts(rows: ThreeRows, is_conflict: Mask) -> npt.NDArray[np.int8]:
    is_delete = ~(rows.ours.is_there & rows.theirs.is_there)
    kinds = np.where(~rows.base.is_there, 0, np.where(is_delete, 2, 1))
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
    # No state has what both sides share: ours may differ from it as the base has it.
    if list_counters(type_) and sides.is_crossed:
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
        rows=_read_written_rows(verdicts, is_light=adopted is not None),
        deleted=verdicts.ids.take(pa.array(deleted)),
        known_copies=read_copies(
            verdicts.type_.key, verdicts.ids, verdicts.ours, np.concatenate([written, deleted])
        ),
        adopted=adopted,
    )


def _read_written_rows(verdicts: RowOutcomes, *, is_light: bool) -> pa.Table:
    """The merged entities in the order of ids; light ones come without vectors and blobs."""
    theirs = np.flatnonzero(verdicts.is_taken & verdicts.theirs.is_there)
    rows = _read_rows(verdicts, theirs, is_light=is_light)
    mixed = verdicts.mixed.places[verdicts.mixed.is_written]
    if not len(mixed):
        return rows
    assert not is_light, "a table is adopted only where ours changed nothing"
    more = read_mixed_rows(verdicts.mixed, verdicts.type_.shape, verdicts.ours, verdicts.theirs)
    order = np.argsort(np.concatenate([theirs, mixed]))
    return pa.concat_tables([rows, more]).take(pa.array(order))


def _read_rows(verdicts: RowOutcomes, places: Places, *, is_light: bool) -> pa.Table:
    """Rows of theirs in the shape of the merged type."""
    side, shape = verdicts.theirs, verdicts.type_.shape
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
