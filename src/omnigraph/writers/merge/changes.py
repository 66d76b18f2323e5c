"""Verdicts as a change of the target, and the tables that can be adopted as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.execution.changes import is_heavy
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.view import table_types_of
from omnigraph.schema.accepted import TypeKind
from omnigraph.storage.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.change import (
    COPIES,
    EDGE_COPIES,
    TypeChange,
    WriteMode,
)
from omnigraph.writers.merge.schemas import MergedSchema, MergedType, conform_rows
from omnigraph.writers.merge.sides import MergeSides
from omnigraph.writers.merge.verdicts import LocatedRows, RowOutcomes


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
