"""Decisions on entities in the change of a merge: values that no side has, and deletions.

What a decision takes from a side is chosen with the rows; here entities become as at the base, get
a value, or end. They need not be entities that theirs changed: a broken rule may be mended in any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.comparison import comparable_type_of, to_numpy
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import TypeChange, WriteMode
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer
from omnigraph.writers.merge.conflict_decisions import Decision, Take
from omnigraph.writers.merge.located_rows import (
    LocatedRows,
    locate_rows,
    read_columns,
    read_copies,
)
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import MergedType
from omnigraph.writers.merge.property_rules import list_parts

EDITS: Final = (Take.BASE, Take.VALUE, Take.DELETE)
_ENDS: Final = {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}


@dataclass(frozen=True)
class _EditedType:
    """A type whose entities are edited: the names of its columns, and how values are read."""

    declared: NodeType | EdgeType
    type_: MergedType

    @property
    def shape(self) -> TableShape:
        return self.type_.shape

    def find_column(self, decision: Decision, name: str) -> str:
        """The column of a property; one of the key is not edited."""
        ends = _ENDS if self.type_.key.kind is TypeKind.EDGE else {}
        column = {**self.shape.columns, **ends}.get(name)
        if column is None:
            raise _refuse(decision, f"{self.type_.key.name} has no property '{name}'")
        if name in (self.declared.key or ()):
            raise _refuse(decision, f"'{name}' is part of the key, which no entity changes")
        return column

    def read_value(self, decision: Decision, name: str, value: object) -> Any:  # Any: as kept
        """A value as the column of a property keeps it."""
        if name in _ENDS:
            if not isinstance(value, str):
                raise _refuse(decision, f"{name} is the id of a node, a text")
            return value
        try:
            return make_coercer(self.declared.properties[name].type, is_strict=True)(value)
        except MisfitError as misfit:
            raise _refuse(decision, f"{name}: {misfit}") from misfit


def edit_type_change(
    change: TypeChange | None,
    declared: NodeType | EdgeType,
    type_: MergedType,
    sides: MergeSides,
    decisions: Sequence[Decision],
) -> TypeChange | None:
    """The change of a type after decisions; None if nothing is left of it."""
    edited = _EditedType(declared, type_)
    ids = pa.array(sorted({each.entity_id for each in decisions}), pa.utf8())
    ours = locate_rows(sides.ours, type_.ours, ids)
    before = _start_change(change, type_, ids, ours)
    rows = _edit_rows(edited, sides, ids, _read_rows(before, type_, ids, ours), decisions)
    is_other = pc.invert(pc.is_in(before.written, value_set=ids))
    written = pa.concat_tables([before.rows.filter(is_other), rows])
    order = pc.sort_indices(written[ID_COLUMN])
    gone = ids.filter(pc.invert(pc.is_in(ids, value_set=rows[ID_COLUMN].combine_chunks())))
    ended = gone.filter(pc.is_in(gone, value_set=ids.filter(pa.array(ours.is_there))))
    kept = before.deleted.cast(pa.utf8())
    kept = kept.filter(pc.invert(pc.is_in(kept, value_set=ids)))
    deleted = pa.concat_arrays([kept, ended])
    if not len(written) and not len(deleted):
        return None
    return replace(before, rows=written.take(order), deleted=deleted.take(pc.sort_indices(deleted)))


def _start_change(
    change: TypeChange | None, type_: MergedType, ids: pa.Array, ours: LocatedRows
) -> TypeChange:
    """The change with the copies of all entities that are edited."""
    copies = read_copies(type_.key, ids, ours, np.arange(len(ids)))
    if change is None:
        return TypeChange(
            shape=type_.shape,
            mode=WriteMode.UPSERT,
            rows=type_.shape.schema.empty_table(),
            deleted=pa.array([], pa.utf8()),
            known_copies=copies,
        )
    assert change.known_copies is not None, "a merge knows what it replaces"
    is_new = pc.invert(pc.is_in(copies[ID_COLUMN], value_set=change.known_copies[ID_COLUMN]))
    return replace(
        change, known_copies=pa.concat_tables([change.known_copies, copies.filter(is_new)])
    )


def _read_rows(change: TypeChange, type_: MergedType, ids: pa.Array, ours: LocatedRows) -> pa.Table:
    """The merged entities among some: those that are written, and those that stay on ours."""
    written = change.rows.filter(pc.is_in(change.written, value_set=ids))
    touched = pa.concat_arrays(
        [written[ID_COLUMN].combine_chunks(), change.deleted.cast(pa.utf8())]
    )
    is_kept = to_numpy(pc.invert(pc.is_in(ids, value_set=touched))) & ours.is_there
    kept = ours.select_rows(np.flatnonzero(is_kept))
    return pa.concat_tables([written, read_columns(kept, type_.shape, type_.shape.schema.names)])


def _edit_rows(
    edited: _EditedType,
    sides: MergeSides,
    ids: pa.Array,
    rows: pa.Table,
    decisions: Sequence[Decision],
) -> pa.Table:
    """The rows after decisions, which are few: each is a row of Python values meanwhile."""
    shape = edited.shape
    base = locate_rows(sides.base, edited.type_.base, ids)
    there = read_columns(base.select_rows(np.flatnonzero(base.is_there)), shape, shape.schema.names)
    old, found = ({row[ID_COLUMN]: row for row in _list_rows(each)} for each in (there, rows))
    for decision in decisions:
        id_ = decision.entity_id
        row = _edit_row(edited, decision, found.pop(id_, None), old.get(id_))
        if row is not None:
            found[id_] = row
    listed = [found[id_] for id_ in sorted(found)]
    return pa.Table.from_pylist(listed, schema=shape.schema)


def _list_rows(rows: pa.Table) -> list[Mapping[str, Any]]:
    """Rows of plain values; a date or a time is a number, as Python's `date` has no time of day."""
    columns = [each.cast(_plain_type_of(each.type)) for each in rows.columns]
    found: list[Mapping[str, Any]] = pa.table(columns, rows.column_names).to_pylist()
    return found


def _plain_type_of(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_plain_type_of(kind.value_type))
    return comparable_type_of(kind)


def _edit_row(
    edited: _EditedType,
    decision: Decision,
    row: Mapping[str, Any] | None,
    old: Mapping[str, Any] | None,
) -> Mapping[str, Any] | None:
    """What becomes of one entity; None if it ends."""
    if decision.take is Take.DELETE or (decision.take is Take.BASE and decision.property is None):
        return None if decision.take is Take.DELETE else old
    if row is None:
        raise _refuse(decision, "the entity is not in the merged state")
    if decision.take is Take.BASE:
        assert decision.property is not None, "an entity as at the base is above"
        column = edited.find_column(decision, decision.property)
        # Properties that are one value become as at the base together; a key stays.
        [part] = [each for each in list_parts(edited.type_) if column in each]
        columns = set(part).difference(edited.shape.key.values())
        return {**row} | {each: (old or {}).get(each) for each in columns}
    name = decision.property
    values = decision.value if name is None else {name: decision.value}
    assert isinstance(values, Mapping), "a value without a property is an object"
    return {**row} | {
        edited.find_column(decision, each): edited.read_value(decision, each, value)
        for each, value in values.items()
    }


def _refuse(decision: Decision, what: str) -> InvalidArgumentError:
    return InvalidArgumentError("resolve", f"{decision}: {what}")
